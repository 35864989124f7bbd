// Estimates the costs of validation rules as Kubernetes does. The argument is a file with a CustomResourceDefinition on each
// line, as JSON; the output is a line with JSON for each rule and message expression.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

var environments = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())

type line struct {
	Definition int    `json:"definition"`
	Version    string `json:"version"`
	Path       string `json:"path"`
	Cost       uint64 `json:"cost"`
}

func main() {
	file, err := os.Open(os.Args[1])
	check(err)
	lines := bufio.NewReader(file)
	for index := 0; ; index++ {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var definition v1.CustomResourceDefinition
		check(json.Unmarshal(text, &definition))
		for _, version := range definition.Spec.Versions {
			schema := &apiextensions.JSONSchemaProps{}
			check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, schema, nil))
			visit(schema, validation.RootCELContext(schema), "schema", func(path string, cost uint64) {
				if cost > 0 {
					check(json.NewEncoder(os.Stdout).Encode(line{index, version.Name, path, cost}))
				}
			})
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func visit(schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string, found func(string, uint64)) {
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		values := schema.AdditionalProperties.Schema
		visit(values, context.ChildAdditionalPropertiesContext(values), path+".additionalProperties", found)
	}
	for name, property := range schema.Properties {
		visit(&property, context.ChildPropertyContext(&property, name), fmt.Sprintf("%s.properties[%s]", path, name), found)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		visit(schema.Items.Schema, context.ChildItemsContext(schema.Items.Schema), path+".items", found)
	}
	if len(schema.XValidations) == 0 {
		return
	}
	info, err := context.TypeInfo()
	check(err)
	results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
	check(err)
	for i, result := range results {
		cardinality := result.MaxCardinality
		if context.MaxCardinality != nil {
			cardinality = *context.MaxCardinality
		}
		at := fmt.Sprintf("%s.x-kubernetes-validations[%d]", path, i)
		found(at+".rule", product(result.MaxCost, cardinality))
		found(at+".messageExpression", result.MessageExpressionMaxCost)
	}
}

func product(cost, cardinality uint64) uint64 {
	if cost != 0 && math.MaxUint64/cost < cardinality {
		return math.MaxUint64
	}
	return cost * cardinality
}
