// Program random runs random operations with structured-merge-diff and with windlass-schema, and compares the results.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"strings"

	"windlass.test/random/operation"
	"windlass.test/random/original"
	"windlass.test/random/ours"
)

// types are the types of both versions. %[1]s and %[2]s are relationships of list and map elements.
const types = `
- name: struct
  map:
    fields:
    - {name: num, type: {scalar: numeric}}
    - {name: text, type: {scalar: string}}
    - {name: flag, type: {scalar: boolean}}
    - {name: scalar, type: {scalar: untyped}}
    - {name: list, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: %[1]s}}}
    - {name: numbers, type: {list: {elementType: {scalar: numeric}, elementRelationship: associative}}}
    - {name: items, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name]}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}}}
    - {name: map, type: {map: {elementType: {scalar: string}, elementRelationship: %[2]s}}}
    - {name: structs, type: {map: {elementType: {namedType: item}}}}
    - {name: atomic, type: {namedType: item, elementRelationship: atomic}}
    - {name: granular, type: {namedType: whole, elementRelationship: separable}}
    - {name: whole, type: {namedType: whole}}
    - {name: nested, type: {namedType: struct}}
    - {name: any, type: {namedType: __untyped_deduced_}}
    - {name: raw, type: {namedType: __untyped_atomic_}}
    - {name: open, type: {map: {fields: [{name: num, type: {scalar: numeric}}], elementType: {namedType: __untyped_deduced_}}}}
- name: item
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: value, type: {scalar: numeric}}
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: items, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name]}}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: name, type: {scalar: string}}
- name: whole
  map:
    fields:
    - {name: a, type: {scalar: string}}
    - {name: b, type: {scalar: string}}
    elementRelationship: atomic
- name: __untyped_atomic_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
- name: __untyped_deduced_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_deduced_}, elementRelationship: separable}
`

func schema(random *rand.Rand) string {
	list := []string{"associative", "associative", "atomic"}[random.Intn(3)]
	object := []string{"separable", "separable", "atomic"}[random.Intn(3)]
	out := "types:\n"
	for _, version := range []string{"v1", "v2", "v3"} {
		out += fmt.Sprintf("- name: %s\n  map: {fields: [{name: spec, type: {namedType: struct}}, {name: status, type: {namedType: struct}}, {name: data, type: {map: {elementType: {scalar: string}}}}]}\n", version)
	}
	return out + fmt.Sprintf(types[1:], list, object)
}

// maker makes random objects.
type maker struct {
	*rand.Rand
	// wild says that some values do not follow the schema.
	wild bool
}

func (m maker) pick(texts ...string) string {
	return texts[m.Intn(len(texts))]
}

func (m maker) text() any { return m.pick("a", "b", "c", "") }

func (m maker) number() any {
	if m.Intn(8) == 0 {
		return 1.5
	}
	return m.Intn(3)
}

func (m maker) anything(depth int) any {
	switch kind := m.Intn(8); {
	case kind < 2:
		return m.number()
	case kind < 4:
		return m.text()
	case kind == 4:
		return m.Intn(2) == 0
	case kind == 5 && m.Intn(3) == 0:
		return nil
	case kind < 7 && depth > 0:
		out := map[string]any{}
		for range m.Intn(3) {
			out[m.pick("a", "b", "c")] = m.anything(depth - 1)
		}
		return out
	default:
		out := []any{}
		for range m.Intn(3) {
			out = append(out, m.anything(depth-1))
		}
		return out
	}
}

// some returns a value of a schema; now and then, null, or something else.
func (m maker) some(value any) any {
	switch {
	case m.Intn(24) == 0:
		return nil
	case m.wild && m.Intn(60) == 0:
		return m.anything(2)
	default:
		return value
	}
}

// list makes lists with null as an element only if it is wild: a null has no key.
func (m maker) list(item func() any) any {
	out := []any{}
	for range m.Intn(4) {
		if m.wild {
			out = append(out, m.some(item()))
		} else {
			out = append(out, item())
		}
	}
	return m.some(out)
}

func (m maker) object(members map[string]func() any, share int) any {
	out := map[string]any{}
	for _, member := range sorted(members) {
		if m.Intn(share) == 0 {
			out[member.name] = m.some(member.make())
		}
	}
	if m.wild && m.Intn(60) == 0 {
		out["undeclared"] = 1
	}
	return out
}

type member struct {
	name string
	make func() any
}

// sorted returns members in an order that is the same in each run.
func sorted(members map[string]func() any) []member {
	out := []member{}
	for name, make := range members {
		out = append(out, member{name, make})
	}
	for i := range out {
		for j := i; j > 0 && out[j].name < out[j-1].name; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func (m maker) texts(names ...string) any {
	members := map[string]func() any{}
	for _, name := range names {
		members[name] = m.text
	}
	return m.object(members, 2)
}

func (m maker) item(depth int) any {
	out := map[string]func() any{
		"value": m.number,
		"set":   func() any { return m.list(m.text) },
	}
	if depth > 0 {
		out["items"] = func() any { return m.list(func() any { return m.item(depth - 1) }) }
	}
	object := m.object(out, 3).(map[string]any)
	if !m.wild || m.Intn(30) > 0 {
		object["name"] = m.text()
	}
	return object
}

func (m maker) port() any {
	out := m.object(map[string]func() any{
		"protocol": func() any { return m.pick("TCP", "UDP") },
		"name":     m.text,
	}, 3).(map[string]any)
	if !m.wild || m.Intn(12) > 0 {
		out["port"] = m.number()
	}
	return out
}

func (m maker) structure(depth int) any {
	members := map[string]func() any{
		"num":     m.number,
		"text":    m.text,
		"flag":    func() any { return m.Intn(2) == 0 },
		"scalar":  func() any { return m.anything(0) },
		"list":    func() any { return m.list(m.text) },
		"set":     func() any { return m.list(m.text) },
		"numbers": func() any { return m.list(m.number) },
		"items":   func() any { return m.list(func() any { return m.item(1) }) },
		"ports":   func() any { return m.list(m.port) },
		"map":     func() any { return m.texts("a", "b", "c") },
		"structs": func() any {
			return m.object(map[string]func() any{"a": func() any { return m.item(0) }, "b": func() any { return m.item(0) }}, 2)
		},
		"atomic":   func() any { return m.item(0) },
		"granular": func() any { return m.texts("a", "b") },
		"whole":    func() any { return m.texts("a", "b") },
		"any":      func() any { return m.anything(3) },
		"raw":      func() any { return m.anything(2) },
		"open": func() any {
			return m.object(map[string]func() any{"num": m.number, "x": func() any { return m.anything(2) }}, 2)
		},
	}
	if depth > 0 {
		members["nested"] = func() any { return m.structure(depth - 1) }
	}
	return m.object(members, 4)
}

func (m maker) root() string {
	object := m.object(map[string]func() any{
		"spec":   func() any { return m.structure(1) },
		"status": func() any { return m.structure(0) },
		"data":   func() any { return m.texts("a", "b", "c") },
	}, 2)
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (m maker) operation() operation.Operation {
	o := operation.Operation{
		Kind:    m.pick("apply", "apply", "apply", "apply", "update", "update", "pieces", "pieces"),
		Manager: m.pick("one", "two", "three"),
		Version: m.pick("v1", "v1", "v2"),
		Object:  m.root(),
		Other:   m.root(),
		Force:   m.Intn(2) == 0,
	}
	switch m.Intn(40) {
	case 0:
		o.Kind, o.Schema = "schema", schema(m.Rand)
	case 1:
		o.Kind, o.Version = "missing", m.pick("v1", "v2")
	case 2:
		o.Kind = "ignore"
	}
	return o
}

func main() {
	count := flag.Int("count", 1000, "sequences of operations")
	seed := flag.Int64("seed", 1, "the first seed")
	flag.Parse()
	operations, differences, results := 0, 0, map[string]int{}
	for i := *seed; i < *seed+int64(*count); i++ {
		random := rand.New(rand.NewSource(i))
		m := maker{random, random.Intn(3) == 0}
		text := schema(random)
		theirs, mine := original.New(text), ours.New(text)
		history := []operation.Operation{}
		for range 12 {
			o := m.operation()
			history = append(history, o)
			operations++
			expected, actual := theirs.Run(o), mine.Run(o)
			kind, _, _ := strings.Cut(strings.TrimSpace(expected), " ")
			results[o.Kind+" "+kind]++
			if expected == actual {
				continue
			}
			differences++
			fmt.Printf("seed %d: the results differ after %d operations\n", i, len(history))
			for _, o := range history {
				text, _ := json.Marshal(o)
				fmt.Printf("  %s\n", text)
			}
			fmt.Printf("expected\n%s\nactual\n%s\n", expected, actual)
			break
		}
		if differences >= 5 {
			break
		}
	}
	fmt.Printf("%d random operations, %d differences; by result %v\n", operations, differences, results)
	if differences > 0 {
		os.Exit(1)
	}
}
