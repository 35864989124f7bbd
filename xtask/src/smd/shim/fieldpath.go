package fieldpath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/structured-merge-diff/v6/internal/windlass"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func encodeElement(e PathElement) any {
	switch {
	case e.FieldName != nil:
		return []any{"f", *e.FieldName}
	case e.Key != nil:
		fields := []any{}
		for _, field := range *e.Key {
			fields = append(fields, []any{field.Name, value.WindlassEncode(field.Value)})
		}
		return []any{"k", fields}
	case e.Value != nil:
		return []any{"v", value.WindlassEncode(*e.Value)}
	case e.Index != nil:
		return []any{"i", *e.Index}
	default:
		return []any{"none"}
	}
}

// WindlassEncodePath makes a path ready for a request.
func WindlassEncodePath(p Path) any {
	out := make([]any, len(p))
	for i := range p {
		out[i] = encodeElement(p[i])
	}
	return out
}

// WindlassEncodeSet makes a set ready for a request.
func WindlassEncodeSet(s *Set) any {
	out := []any{}
	if s != nil {
		walk(s, nil, func(p Path) { out = append(out, WindlassEncodePath(p)) })
	}
	return out
}

func walk(s *Set, prefix Path, visit func(Path)) {
	for _, member := range s.Members.members {
		visit(append(prefix, member))
	}
	for _, node := range s.Children.members {
		walk(node.set, append(prefix, node.pathElement), visit)
	}
}

func decodeElement(raw any) PathElement {
	pair := raw.([]any)
	switch pair[0] {
	case "f":
		return FieldNameElement(pair[1].(string))
	case "k":
		fields := value.FieldList{}
		for _, field := range pair[1].([]any) {
			field := field.([]any)
			fields = append(fields, value.Field{Name: field[0].(string), Value: value.NewValueInterface(field[1])})
		}
		return PathElement{Key: &fields}
	case "v":
		return ValueElement(value.NewValueInterface(pair[1]))
	case "i":
		return IndexElement(pair[1].(int))
	default:
		panic(fmt.Errorf("unknown element %v", pair))
	}
}

// WindlassDecodePath reads a path of a reply.
func WindlassDecodePath(raw json.RawMessage) Path {
	out := Path{}
	for _, element := range windlass.Decode(raw).([]any) {
		out = append(out, decodeElement(element))
	}
	return out
}

// WindlassDecodeSet reads a set of a reply.
func WindlassDecodeSet(raw json.RawMessage) *Set {
	out := NewSet()
	for _, elements := range windlass.Decode(raw).([]any) {
		path := Path{}
		for _, element := range elements.([]any) {
			path = append(path, decodeElement(element))
		}
		out.Insert(path)
	}
	return out
}

// WindlassEncodeFilter makes a filter ready for a request.
func WindlassEncodeFilter(f Filter) any {
	switch f := f.(type) {
	case excludeFilter:
		return windlass.Object{"exclude": WindlassEncodeSet(f.excludeSet)}
	case includeMatcherFilter:
		return windlass.Object{"include": encodeMatcher(f.matcher)}
	default:
		panic(fmt.Errorf("unknown filter %T", f))
	}
}

func encodeMatcher(m *SetMatcher) any {
	if m.wildcard {
		return true
	}
	out := []any{}
	for _, member := range m.members {
		var element any
		if !member.Path.Wildcard {
			element = encodeElement(member.Path.PathElement)
		}
		out = append(out, []any{element, encodeMatcher(member.Child)})
	}
	return out
}

func (s *Set) both(operation string, s2 *Set) windlass.Reply {
	return windlass.Ask(operation, windlass.Object{"left": WindlassEncodeSet(s), "right": WindlassEncodeSet(s2)})
}

// Union is the union.
func (s *Set) Union(s2 *Set) *Set {
	return WindlassDecodeSet(s.both("union", s2)["fields"])
}

// Intersection is the intersection.
func (s *Set) Intersection(s2 *Set) *Set {
	return WindlassDecodeSet(s.both("intersection", s2)["fields"])
}

// Difference is the difference.
func (s *Set) Difference(s2 *Set) *Set {
	return WindlassDecodeSet(s.both("difference", s2)["fields"])
}

// RecursiveDifference is the difference that removes children too.
func (s *Set) RecursiveDifference(s2 *Set) *Set {
	return WindlassDecodeSet(s.both("recursive_difference", s2)["fields"])
}

// Leaves are the leaves.
func (s *Set) Leaves() *Set {
	return WindlassDecodeSet(s.both("leaves", nil)["fields"])
}

// Size is the number of paths.
func (s *Set) Size() int {
	return s.both("len", nil).Number()
}

// Empty reports whether there are no paths.
func (s *Set) Empty() bool {
	return s.both("empty", nil).Bool()
}

// Equals reports whether the paths are the same.
func (s *Set) Equals(s2 *Set) bool {
	return s.both("equal", s2).Bool()
}

// String prints the set.
func (s *Set) String() string {
	return s.both("text", nil).Text()
}

// Has reports whether a path is in the set.
func (s *Set) Has(p Path) bool {
	return windlass.Ask("contains", windlass.Object{
		"left": WindlassEncodeSet(s),
		"path": WindlassEncodePath(p),
	}).Bool()
}

// Iterate visits the paths.
func (s *Set) Iterate(visit func(Path)) {
	for _, elements := range windlass.Decode(s.both("union", nil)["fields"]).([]any) {
		path := Path{}
		for _, element := range elements.([]any) {
			path = append(path, decodeElement(element))
		}
		visit(path)
	}
}

// EnsureNamedFieldsAreMembers adds named fields.
func (s *Set) EnsureNamedFieldsAreMembers(sc *schema.Schema, tr schema.TypeRef) *Set {
	request := windlass.Type(sc, tr)
	request["fields"] = WindlassEncodeSet(s)
	return WindlassDecodeSet(windlass.Ask("named", request)["fields"])
}

// FilterIncludeMatches selects what matches.
func (s *Set) FilterIncludeMatches(pattern *SetMatcher) *Set {
	return WindlassDecodeSet(windlass.Ask("filter", windlass.Object{
		"left":   WindlassEncodeSet(s),
		"filter": windlass.Object{"include": encodeMatcher(pattern)},
	})["fields"])
}

// ToJSONStream writes the set.
func (s *Set) ToJSONStream(w io.Writer) error {
	_, err := io.WriteString(w, s.both("write", nil).Text())
	return err
}

// ToJSON writes the set.
func (s *Set) ToJSON() ([]byte, error) {
	buffer := bytes.Buffer{}
	err := s.ToJSONStream(&buffer)
	return buffer.Bytes(), err
}

// FromJSON reads the set.
func (s *Set) FromJSON(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	reply, err := windlass.Call("read", windlass.Object{"text": string(text)}, nil)
	if err != nil {
		return err
	}
	*s = *WindlassDecodeSet(reply["fields"])
	return nil
}

// Less is the order.
func (e PathElement) Less(rhs PathElement) bool {
	if e == (PathElement{}) || rhs == (PathElement{}) {
		return e.originalLess(rhs)
	}
	return windlass.Ask("element_order", windlass.Object{
		"left":  encodeElement(e),
		"right": encodeElement(rhs),
	}).Number() < 0
}

// Equals reports whether the elements are the same. Elements of no type exist in Go only.
func (e PathElement) Equals(rhs PathElement) bool {
	if e == (PathElement{}) || rhs == (PathElement{}) {
		return e.originalEquals(rhs)
	}
	return windlass.Ask("element_order", windlass.Object{
		"left":  encodeElement(e),
		"right": encodeElement(rhs),
	}).Number() == 0
}

// String prints the element.
func (e PathElement) String() string {
	return Path{e}.String()
}

// String prints the path.
func (fp Path) String() string {
	return windlass.Ask("path_text", windlass.Object{"path": WindlassEncodePath(fp)}).Text()
}

// SerializePathElement writes an element.
func SerializePathElement(pe PathElement) (string, error) {
	reply, err := windlass.Call("element_write", windlass.Object{"element": encodeElement(pe)}, nil)
	if err != nil {
		return "", err
	}
	return reply.Text(), nil
}

// DeserializePathElement reads an element.
func DeserializePathElement(s string) (PathElement, error) {
	reply, err := windlass.Call("element_read", windlass.Object{"text": s}, nil)
	if err != nil {
		return PathElement{}, err
	}
	if string(reply["element"]) == "null" {
		return PathElement{}, ErrUnknownPathElementType
	}
	return decodeElement(windlass.Decode(reply["element"])), nil
}
