// Random objects of the kinds of client-go, as lines: the protobuf in hexadecimal digits, a tab, the JSON.
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

func main() {
	source := rand.New(rand.NewSource(7))
	fill := randfill.New().NilChance(0.5).NumElements(0, 3).MaxDepth(12).RandSource(source).Funcs(
		func(s *string, c randfill.Continue) {
			*s = []string{"", "text", "\"q\" \\\n<&>", "ünï\U0001F600"}[c.Intn(4)]
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "500m", "64Mi", "1.5"}[c.Intn(4)])
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(int32(c.Intn(99)) - 5)
			if c.Bool() {
				*v = intstr.FromString("http")
			}
		},
		func(t *metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*t = metav1.NewTime(time.Unix(c.Int63n(1<<33)-1<<31, 0))
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			if c.Bool() {
				*t = metav1.NewMicroTime(time.Unix(c.Int63n(1<<33), c.Int63n(1000)*1e6))
			}
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			if c.Bool() {
				r.Raw = []byte(`{"a":[1,null,"x"]}`)
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.Raw = []byte(`{"f:a":{}}`) },
		func(f *metav1.TypeMeta, c randfill.Continue) {},
	)
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	// In order, so that two runs have the same objects.
	kinds := slices.SortedFunc(maps.Keys(scheme.Scheme.AllKnownTypes()), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
	for _, kind := range kinds {
		// Options and the events of watches have other serializers.
		isServed := kind.Version == "v1" || kind.Version == "v2"
		if !isServed || strings.HasSuffix(kind.Kind, "Options") || kind.Kind == "WatchEvent" {
			continue
		}
		for n := range 6 {
			object := create(kind)
			// The first object is empty.
			if n > 0 {
				fill.Fill(object)
			}
			// A value may have several forms in Go and a single form in JSON.
			object = decode(kind, encode(decode(kind, encode(object))))
			var body bytes.Buffer
			check(serializer.Encode(object, &body))
			fmt.Printf("%s\t%s\n", hex.EncodeToString(body.Bytes()), encode(object))
		}
	}
}

func create(kind schema.GroupVersionKind) runtime.Object {
	object, err := scheme.Scheme.New(kind)
	check(err)
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}

func encode(object runtime.Object) []byte {
	text, err := json.Marshal(object)
	check(err)
	return text
}

func decode(kind schema.GroupVersionKind, text []byte) runtime.Object {
	object := create(kind)
	check(json.Unmarshal(text, object))
	return object
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
