// Package world runs operations with one implementation of structured-merge-diff. The task makes two packages of it:
// one with the original module, and one with the copy that asks windlass-schema.
package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"windlass.test/random/operation"
)

var errMissing = errors.New("no such version")

// World is an object with its managers.
type World struct {
	parser   *typed.Parser
	live     *typed.TypedValue
	managers fieldpath.ManagedFields
	missing  string
	ignored  map[fieldpath.APIVersion]fieldpath.Filter
}

// New starts without an object.
func New(schema string) *World {
	w := &World{managers: fieldpath.ManagedFields{}}
	w.use(schema)
	return w
}

func (w *World) use(schema string) {
	parser, err := typed.NewParser(typed.YAMLObject(schema))
	if err != nil {
		panic(err)
	}
	w.parser = parser
}

// Convert keeps the object as it is.
func (w *World) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	if string(version) == w.missing {
		return nil, errMissing
	}
	if *object.TypeRef().NamedType == string(version) {
		return object, nil
	}
	of := w.parser.Type(string(version))
	return typed.AsTyped(object.AsValue(), of.Schema, of.TypeRef, typed.AllowDuplicates)
}

// IsMissingVersionError reports whether the version is missing.
func (w *World) IsMissingVersionError(err error) bool {
	return err == errMissing
}

// Run runs an operation and describes the result.
func (w *World) Run(o operation.Operation) string {
	switch o.Kind {
	case "schema":
		w.use(o.Schema)
		w.missing = ""
		if w.live == nil {
			return "schema"
		}
		of := w.parser.Type(*w.live.TypeRef().NamedType)
		live, err := typed.AsTyped(w.live.AsValue(), of.Schema, of.TypeRef, typed.AllowDuplicates)
		if err != nil {
			w.live, w.managers = nil, fieldpath.ManagedFields{}
			return describe(err)
		}
		w.live = live
		return "schema"
	case "missing":
		w.missing = o.Version
		return "missing"
	case "ignore":
		w.ignored = map[fieldpath.APIVersion]fieldpath.Filter{
			fieldpath.APIVersion(o.Version): fieldpath.NewExcludeSetFilter(w.fields(o)),
		}
		return "ignored"
	case "pieces":
		return w.pieces(o)
	default:
		return w.write(o)
	}
}

func (w *World) parse(o operation.Operation, object string, duplicates bool) (*typed.TypedValue, error) {
	content := operation.Read(object)
	if duplicates {
		return w.parser.Type(o.Version).FromUnstructured(content, typed.AllowDuplicates)
	}
	return w.parser.Type(o.Version).FromUnstructured(content)
}

// fields are those that an object sets.
func (w *World) fields(o operation.Operation) *fieldpath.Set {
	object, err := w.parse(o, o.Object, true)
	if err != nil {
		return fieldpath.NewSet()
	}
	set, err := object.ToFieldSet()
	if err != nil {
		panic(err)
	}
	return set
}

func (w *World) write(o operation.Operation) string {
	if o.Version == w.missing {
		w.missing = ""
	}
	object, err := w.parse(o, o.Object, o.Kind == "update")
	if err != nil {
		return describe(err)
	}
	if w.live == nil {
		if w.live, err = w.parse(o, "{}", true); err != nil {
			panic(err)
		}
	}
	version := fieldpath.APIVersion(o.Version)
	live, err := w.Convert(w.live, version)
	if err != nil {
		return describe(err)
	}
	updater := merge.Updater{Converter: w, IgnoreFilter: w.ignored}
	before := w.managers.Copy()
	var after fieldpath.ManagedFields
	result := object
	if o.Kind == "update" {
		_, after, err = updater.Update(live, object, version, before, o.Manager)
	} else {
		result, after, err = updater.Apply(live, object, version, before, o.Manager, o.Force)
	}
	if err != nil {
		return describe(err)
	}
	if result != nil {
		w.live = result
	} else {
		w.live = live
	}
	w.managers = after
	return fmt.Sprintf("changed %v\n%s\n%s", result != nil, text(w.live), describeManagers(after))
}

// pieces runs the operations of which updates consist.
func (w *World) pieces(o operation.Operation) string {
	out := []string{}
	left, err := w.parse(o, o.Object, true)
	if err != nil {
		return describe(err)
	}
	right, err := w.parse(o, o.Other, false)
	if err != nil {
		return describe(err)
	}
	fields, err := right.ToFieldSet()
	if err != nil {
		return describe(err)
	}
	out = append(out, "fields "+set(fields))
	if merged, err := left.Merge(right); err != nil {
		out = append(out, "merge "+describe(err))
	} else {
		out = append(out, "merge "+text(merged))
	}
	if changed, err := left.Compare(right); err != nil {
		out = append(out, "compare "+describe(err))
	} else {
		out = append(out, "added "+set(changed.Added), "modified "+set(changed.Modified), "removed "+set(changed.Removed))
	}
	named := fields.EnsureNamedFieldsAreMembers(left.Schema(), left.TypeRef())
	out = append(out,
		"named "+set(named),
		"leaves "+set(fields.Leaves()),
		"remove "+text(left.RemoveItems(fields)),
		"remove named "+text(left.RemoveItems(named)),
		"extract "+text(left.ExtractItems(fields)),
		"extract leaves "+text(left.ExtractItems(fields.Leaves())),
		"extract keys "+text(left.ExtractItems(fields.Leaves(), typed.WithAppendKeyFields())),
	)
	owned, err := left.ToFieldSet()
	if err != nil {
		return describe(err)
	}
	out = append(out,
		"union "+set(owned.Union(fields)),
		"intersection "+set(owned.Intersection(fields)),
		"difference "+set(owned.Difference(fields)),
		"recursive "+set(owned.RecursiveDifference(fields.Leaves())),
		"paths "+owned.String(),
	)
	return strings.Join(out, "\n")
}

func describeManagers(managers fieldpath.ManagedFields) string {
	out := []string{}
	for name, m := range managers {
		out = append(out, fmt.Sprintf("%s %s %v %s", name, m.APIVersion(), m.Applied(), set(m.Set())))
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func set(s *fieldpath.Set) string {
	text, err := s.ToJSON()
	if err != nil {
		panic(err)
	}
	return string(text)
}

func text(object *typed.TypedValue) string {
	if object.AsValue() == nil {
		return "null"
	}
	text, err := value.ToJSON(object.AsValue())
	if err != nil {
		panic(err)
	}
	var sorted any
	if err := json.Unmarshal(text, &sorted); err != nil {
		panic(err)
	}
	text, _ = json.Marshal(sorted)
	return string(text)
}

// describe prints an error. The order of errors is that of a map in Go: by chance.
func describe(err error) string {
	if strings.Contains(err.Error(), "field not declared in schema") {
		return "a field is not declared"
	}
	lines := strings.Split(err.Error(), "\n")
	if _, ok := err.(merge.Conflicts); ok {
		sort.Strings(lines)
		return "conflicts: " + strings.Join(lines, "\n")
	}
	sort.Strings(lines)
	return "error: " + strings.Join(lines, "\n")
}
