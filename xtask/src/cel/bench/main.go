// Measures the compilation and evaluation of rules by Kubernetes. The arguments are a CustomResourceDefinition and an
// object, as JSON; the output is a line with a name and nanoseconds of processor time for each measurement.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

var rules = []string{
	"self.minReplicas <= self.replicas",
	"has(self.a) ? !has(self.b) : has(self.b)",
	"self.l.all(x, x.startsWith('a'))",
	"self.o.all(a, self.o.exists_one(b, a.name == b.name))",
	"self.s.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
	"self.s in ['HTTP', 'HTTPS', 'example.com']",
}

const small = `{"type": "object", "properties": {
	"minReplicas": {"type": "integer"}, "replicas": {"type": "integer"}, "s": {"type": "string"},
	"a": {"type": "string"}, "b": {"type": "string"},
	"l": {"type": "array", "items": {"type": "string"}},
	"o": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
}}`

func main() {
	smallRules()
	var definition v1.CustomResourceDefinition
	read(os.Args[1], &definition)
	var object map[string]any
	read(os.Args[2], &object)
	structural := convert(definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
	measure("compile the definition", func() { cel.NewValidator(structural, true, celconfig.PerCallLimit) })
	validator := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	measure("all rules of the object", func() { validate(validator, structural, object) })
}

func smallRules() {
	object := map[string]any{"minReplicas": int64(1), "replicas": int64(3), "s": "example.com", "a": "x"}
	list, names := []any{}, []any{}
	for i := 0; i < 10; i++ {
		list = append(list, "abc")
	}
	for i := 0; i < 8; i++ {
		names = append(names, map[string]any{"name": fmt.Sprintf("name-%d", i)})
	}
	object["l"], object["o"] = list, names
	for i, rule := range rules {
		props := v1.JSONSchemaProps{}
		if err := json.Unmarshal([]byte(small), &props); err != nil {
			panic(err)
		}
		props.XValidations = v1.ValidationRules{{Rule: rule}}
		structural := convert(&props)
		if i == 0 {
			measure("compile a small rule", func() { cel.NewValidator(structural, false, celconfig.PerCallLimit) })
		}
		validator := cel.NewValidator(structural, false, celconfig.PerCallLimit)
		measure(rule, func() { validate(validator, structural, object) })
	}
}

func read(path string, into any) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		panic(err)
	}
}

func convert(props *v1.JSONSchemaProps) *schema.Structural {
	internal := &apiextensions.JSONSchemaProps{}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		panic(err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		panic(err)
	}
	return structural
}

func validate(validator *cel.Validator, structural *schema.Structural, object any) {
	errors, _ := validator.Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
	if len(errors) > 0 {
		panic(errors.ToAggregate())
	}
}

func processorTime() time.Duration {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func measure(name string, call func()) {
	call()
	calls := int64(0)
	begin := processorTime()
	for start := time.Now(); time.Since(start) < 400*time.Millisecond; {
		for i := 0; i < 8; i++ {
			call()
		}
		calls += 8
	}
	fmt.Printf("%s\t%d\n", name, int64(processorTime()-begin)/calls)
}
