// Package operation describes operations.
package operation

import (
	"encoding/json"
	"strings"
)

// Operation is one step: a write (`apply`, `update`), a change of the surroundings (`schema`, `missing`, `ignore`), or
// `pieces`: all operations on two objects.
type Operation struct {
	Kind, Manager, Version string
	Object, Other          string
	Schema                 string
	Force                  bool
}

// Read reads an object as Kubernetes does.
func Read(object string) any {
	decoder := json.NewDecoder(strings.NewReader(object))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		panic(err)
	}
	return numbers(content)
}

func numbers(content any) any {
	switch content := content.(type) {
	case map[string]any:
		for name, member := range content {
			content[name] = numbers(member)
		}
	case []any:
		for i, item := range content {
			content[i] = numbers(item)
		}
	case json.Number:
		if number, err := content.Int64(); err == nil {
			return number
		}
		number, err := content.Float64()
		if err != nil {
			panic(err)
		}
		return number
	}
	return content
}
