package windlass

import (
	"fmt"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

const (
	untypedName  = "io.k8s.apimachinery.pkg.runtime.RawExtension"
	untypedAlias = "__untyped_atomic_"
	deducedAlias = "__untyped_deduced_"
)

var (
	schemaLock  sync.Mutex
	schemaIDs   = map[*schema.Schema]int{}
	definitions []Object
)

func definitionsOf(id int) Object {
	schemaLock.Lock()
	defer schemaLock.Unlock()
	return definitions[id]
}

// Type names a type of a schema in a request. An inlined type gets a schema of its own.
func Type(s *schema.Schema, reference schema.TypeRef) Object {
	schemaLock.Lock()
	defer schemaLock.Unlock()
	id, ok := schemaIDs[s]
	if !ok {
		id = len(definitions)
		schemaIDs[s] = id
		definitions = append(definitions, translate(s))
	}
	if reference.NamedType != nil && reference.ElementRelationship == nil {
		return Object{"schema": id, "type": translateName(*reference.NamedType)}
	}
	c := &translator{schema: s, out: Object{}}
	root := c.reference(reference)
	for name, definition := range definitions[id] {
		c.out[name] = definition
	}
	c.out["inlined"] = root
	definitions = append(definitions, c.out)
	return Object{"schema": len(definitions) - 1, "type": "inlined"}
}

// translator turns a schema of structured-merge-diff into definitions of OpenAPI.
type translator struct {
	schema *schema.Schema
	out    Object
}

func translate(s *schema.Schema) Object {
	c := &translator{schema: s, out: Object{
		untypedName:  Object{"type": "object"},
		deducedAlias: Object{},
	}}
	for _, definition := range s.Types {
		if definition.Name != untypedAlias && definition.Name != deducedAlias {
			c.out[definition.Name] = c.atom(definition.Atom)
		}
	}
	return c.out
}

func translateName(name string) string {
	if name == untypedAlias {
		return untypedName
	}
	return name
}

func (c *translator) atom(atom schema.Atom) Object {
	out := Object{}
	switch {
	case atom.Scalar != nil && atom.List == nil && atom.Map == nil:
		switch *atom.Scalar {
		case schema.Numeric:
			out["type"] = "number"
		case schema.String:
			out["type"] = "string"
		case schema.Boolean:
			out["type"] = "boolean"
		default:
			out["type"], out["format"] = "string", "untyped"
		}
	case atom.Scalar == nil && atom.List != nil && atom.Map == nil:
		out["type"] = "array"
		c.list(atom.List, out)
	case atom.Scalar == nil && atom.List == nil && atom.Map != nil:
		out["type"] = "object"
		c.object(atom.Map, out)
	case atom.Scalar != nil && atom.List != nil && atom.Map != nil:
		c.list(atom.List, out)
		c.object(atom.Map, out)
	default:
		panic(fmt.Errorf("a type of two forms: %#v", atom))
	}
	return out
}

func (c *translator) list(list *schema.List, out Object) {
	out["items"] = c.reference(list.ElementType)
	switch {
	case list.ElementRelationship != schema.Associative:
		out["x-kubernetes-list-type"] = "atomic"
	case len(list.Keys) > 0:
		out["x-kubernetes-list-type"] = "map"
		out["x-kubernetes-list-map-keys"] = list.Keys
	default:
		out["x-kubernetes-list-type"] = "set"
	}
}

func (c *translator) object(object *schema.Map, out Object) {
	properties := Object{}
	for _, field := range object.Fields {
		property := c.reference(field.Type)
		if field.Default != nil {
			property["default"] = Encode(field.Default)
		}
		properties[field.Name] = property
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	switch element := object.ElementType; {
	case element == schema.TypeRef{}:
		out["additionalProperties"] = false
	case element.NamedType != nil && *element.NamedType == deducedAlias:
		out["additionalProperties"] = true
	default:
		out["additionalProperties"] = c.reference(element)
	}
	if object.ElementRelationship == schema.Atomic {
		out["x-kubernetes-map-type"] = "atomic"
	}
}

func (c *translator) reference(reference schema.TypeRef) Object {
	override := reference.ElementRelationship
	if reference.NamedType == nil {
		return c.atom(overridden(reference.Inlined, override))
	}
	name := translateName(*reference.NamedType)
	if override == nil {
		return Object{"$ref": name}
	}
	named, found := c.schema.FindNamedType(*reference.NamedType)
	if !found {
		return Object{"$ref": name}
	}
	if named.Map != nil {
		relationship := "granular"
		if *override == schema.Atomic {
			relationship = "atomic"
		}
		return Object{"$ref": name, "x-kubernetes-map-type": relationship}
	}
	derived := name + "@" + string(*override)
	if _, done := c.out[derived]; !done {
		c.out[derived] = Object{}
		c.out[derived] = c.atom(overridden(named.Atom, override))
	}
	return Object{"$ref": derived}
}

func overridden(atom schema.Atom, override *schema.ElementRelationship) schema.Atom {
	switch {
	case override == nil:
	case atom.Map != nil:
		object := &schema.Map{}
		atom.Map.CopyInto(object)
		object.ElementRelationship = *override
		atom.Map = object
	case atom.List != nil:
		list := *atom.List
		list.ElementRelationship = *override
		atom.List = &list
	}
	return atom
}
