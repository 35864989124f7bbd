package strategicpatch

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/windlass"
)

// StrategicMergeMapPatchUsingLookupPatchMeta applies a patch.
func StrategicMergeMapPatchUsingLookupPatchMeta(original, patch JSONMap, schema LookupPatchMeta) (JSONMap, error) {
	reply, err := windlass.Call("strategic", windlass.Object{
		"definition": objectSchema(schema, []any{map[string]any(original), map[string]any(patch)}),
		"original":   windlass.Encode(map[string]any(original)),
		"patch":      windlass.Encode(map[string]any(patch)),
	}, nil)
	if err != nil {
		return nil, err
	}
	return windlass.Decode(reply["value"]).(map[string]any), nil
}

// objectSchema describes what a schema says about the fields of some objects.
func objectSchema(schema LookupPatchMeta, objects []any) windlass.Object {
	values := map[string][]any{}
	for _, object := range objects {
		object, _ := object.(map[string]any)
		for name, value := range object {
			for _, directive := range []string{setElementOrderDirectivePrefix, deleteFromPrimitiveListDirectivePrefix} {
				name = strings.TrimPrefix(name, directive+"/")
			}
			values[name] = append(values[name], value)
		}
	}
	properties := windlass.Object{}
	for name, values := range values {
		if property := propertySchema(schema, name, values); property != nil {
			properties[name] = property
		}
	}
	return windlass.Object{"type": "object", "properties": properties}
}

// propertySchema describes a field. It returns nil if the schema does not have it.
func propertySchema(schema LookupPatchMeta, name string, values []any) windlass.Object {
	items, isList := []any{}, false
	for _, value := range values {
		if list, ok := value.([]any); ok {
			items, isList = append(items, list...), true
		}
	}
	var inner LookupPatchMeta
	var meta PatchMeta
	var err error
	if isList {
		inner, meta, err = schema.LookupPatchMetadataForSlice(name)
	} else {
		inner, meta, err = schema.LookupPatchMetadataForStruct(name)
	}
	if err != nil || inner == nil {
		return nil
	}
	var property windlass.Object
	if isList {
		property = windlass.Object{"type": "array", "items": objectSchema(inner, items)}
	} else {
		property = objectSchema(inner, values)
	}
	if strategies := meta.GetPatchStrategies(); len(strategies) > 0 {
		property["x-kubernetes-patch-strategy"] = strings.Join(strategies, ",")
	}
	if key := meta.GetPatchMergeKey(); key != "" {
		property["x-kubernetes-patch-merge-key"] = key
	}
	return property
}
