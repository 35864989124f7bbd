// Package operation describes operations.
package operation

// Operation is one step: a write (`apply`, `update`), a change of the surroundings (`schema`, `missing`, `ignore`), or
// `pieces`: all operations on two objects.
type Operation struct {
	Kind, Manager, Version string
	Object, Other          string
	Schema                 string
	Force                  bool
}
