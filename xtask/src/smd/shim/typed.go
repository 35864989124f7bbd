package typed

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/internal/windlass"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func (tv TypedValue) call(operation string, more windlass.Object) (windlass.Reply, error) {
	request := windlass.Type(tv.schema, tv.typeRef)
	request["value"] = value.WindlassEncode(tv.value)
	for name, content := range more {
		request[name] = content
	}
	reply, err := windlass.Call(operation, request, nil)
	if err != nil {
		return nil, errorf("%v", err)
	}
	if raw, ok := reply["errors"]; ok {
		found := []struct{ Path, Message string }{}
		if err := json.Unmarshal(raw, &found); err != nil {
			panic(err)
		}
		errs := ValidationErrors{}
		for _, e := range found {
			errs = append(errs, ValidationError{Path: e.Path, ErrorMessage: e.Message})
		}
		return nil, errs
	}
	return reply, nil
}

// Validate checks the value.
func (tv TypedValue) Validate(opts ...ValidationOptions) error {
	_, err := tv.call("validate", windlass.Object{"duplicates": len(opts) > 0})
	return err
}

// ToFieldSet returns the fields.
func (tv TypedValue) ToFieldSet() (*fieldpath.Set, error) {
	reply, err := tv.call("fields", nil)
	if err != nil {
		return nil, err
	}
	return fieldpath.WindlassDecodeSet(reply["fields"]), nil
}

func (tv TypedValue) same(other *TypedValue) error {
	if tv.schema != other.schema {
		return errorf("expected objects with types from the same schema")
	}
	if !tv.typeRef.Equals(&other.typeRef) {
		return errorf("expected objects of the same type, but got %v and %v", tv.typeRef, other.typeRef)
	}
	return nil
}

// WindlassWith returns a value of the same type.
func (tv TypedValue) WindlassWith(raw json.RawMessage) *TypedValue {
	tv.value = value.NewValueInterface(windlass.Decode(raw))
	return &tv
}

// Merge merges.
func (tv TypedValue) Merge(pso *TypedValue) (*TypedValue, error) {
	if err := tv.same(pso); err != nil {
		return nil, err
	}
	reply, err := tv.call("merge", windlass.Object{"other": value.WindlassEncode(pso.value)})
	if err != nil {
		return nil, err
	}
	return tv.WindlassWith(reply["value"]), nil
}

// Compare compares.
func (tv TypedValue) Compare(rhs *TypedValue) (*Comparison, error) {
	if err := tv.same(rhs); err != nil {
		return nil, err
	}
	reply, err := tv.call("compare", windlass.Object{"other": value.WindlassEncode(rhs.value)})
	if err != nil {
		return nil, err
	}
	return &Comparison{
		Added:    fieldpath.WindlassDecodeSet(reply["added"]),
		Modified: fieldpath.WindlassDecodeSet(reply["modified"]),
		Removed:  fieldpath.WindlassDecodeSet(reply["removed"]),
	}, nil
}

// RemoveItems removes.
func (tv TypedValue) RemoveItems(items *fieldpath.Set) *TypedValue {
	reply, err := tv.call("remove", windlass.Object{"fields": fieldpath.WindlassEncodeSet(items)})
	if err != nil {
		panic(err)
	}
	return tv.WindlassWith(reply["value"])
}

// ExtractItems extracts.
func (tv TypedValue) ExtractItems(items *fieldpath.Set, opts ...ExtractItemsOption) *TypedValue {
	options := &extractItemsOptions{}
	for _, opt := range opts {
		opt(options)
	}
	reply, err := tv.call("extract", windlass.Object{
		"fields": fieldpath.WindlassEncodeSet(items),
		"keys":   options.appendKeyFields,
	})
	if err != nil {
		panic(err)
	}
	return tv.WindlassWith(reply["value"])
}

// ReconcileFieldSetWithSchema adapts a set; it returns nil if nothing changes.
func ReconcileFieldSetWithSchema(fieldset *fieldpath.Set, tv *TypedValue) (*fieldpath.Set, error) {
	reply, err := tv.call("reconcile", windlass.Object{"fields": fieldpath.WindlassEncodeSet(fieldset)})
	if err != nil {
		return nil, err
	}
	if string(reply["changed"]) != "true" {
		return nil, nil
	}
	return fieldpath.WindlassDecodeSet(reply["fields"]), nil
}
