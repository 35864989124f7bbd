package merge

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/internal/windlass"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

type managed struct {
	Fields  json.RawMessage
	Version fieldpath.APIVersion
	Applied bool
}

func (s *Updater) filters() (windlass.Object, error) {
	if s.IgnoredFields != nil && s.IgnoreFilter != nil {
		return nil, fmt.Errorf("IgnoreFilter and IgnoreFilter may not both be set")
	}
	out := windlass.Object{}
	for version, excluded := range s.IgnoredFields {
		out[string(version)] = windlass.Object{"exclude": fieldpath.WindlassEncodeSet(excluded)}
	}
	for version, filter := range s.IgnoreFilter {
		out[string(version)] = fieldpath.WindlassEncodeFilter(filter)
	}
	return out, nil
}

// schemas finds the types of all versions: that of the request is the type of the live object.
func (s *Updater) schemas(live *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields) (map[fieldpath.APIVersion]*typed.TypedValue, error) {
	out := map[fieldpath.APIVersion]*typed.TypedValue{version: live}
	for _, set := range managers {
		if _, ok := out[set.APIVersion()]; ok && set.APIVersion() != version {
			continue
		}
		converted, err := s.Converter.Convert(live, set.APIVersion())
		if s.Converter.IsMissingVersionError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[set.APIVersion()] = converted
	}
	return out, nil
}

func (s *Updater) call(operation string, live, object *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string, force bool) (windlass.Reply, fieldpath.ManagedFields, error) {
	filters, err := s.filters()
	if err != nil {
		return nil, nil, err
	}
	types, err := s.schemas(live, version, managers)
	if err != nil {
		return nil, nil, err
	}
	schemas := windlass.Object{}
	for version, of := range types {
		schemas[string(version)] = windlass.Type(of.Schema(), of.TypeRef())
	}
	entries := windlass.Object{}
	for name, set := range managers {
		entries[name] = windlass.Object{
			"fields":  fieldpath.WindlassEncodeSet(set.Set()),
			"version": set.APIVersion(),
			"applied": set.Applied(),
		}
	}
	convert := func(raw json.RawMessage) any {
		asked := struct {
			Object json.RawMessage
			From   fieldpath.APIVersion
			To     fieldpath.APIVersion
		}{}
		if err := json.Unmarshal(raw, &asked); err != nil {
			panic(err)
		}
		converted, err := s.Converter.Convert(types[asked.From].WindlassWith(asked.Object), asked.To)
		switch {
		case s.Converter.IsMissingVersionError(err):
			return windlass.Object{"missing": err.Error()}
		case err != nil:
			return windlass.Object{"failed": err.Error()}
		default:
			return windlass.Object{"object": value.WindlassEncode(converted.AsValue())}
		}
	}
	reply, err := windlass.Call(operation, windlass.Object{
		"live":     value.WindlassEncode(live.AsValue()),
		"new":      value.WindlassEncode(object.AsValue()),
		"version":  version,
		"managers": entries,
		"manager":  manager,
		"force":    force,
		"filters":  filters,
		"schemas":  schemas,
	}, convert)
	if err != nil {
		return nil, nil, err
	}
	if raw, ok := reply["conflicts"]; ok {
		found := []struct {
			Manager string
			Path    json.RawMessage
		}{}
		if err := json.Unmarshal(raw, &found); err != nil {
			panic(err)
		}
		conflicts := Conflicts{}
		for _, conflict := range found {
			conflicts = append(conflicts, Conflict{Manager: conflict.Manager, Path: fieldpath.WindlassDecodePath(conflict.Path)})
		}
		return nil, nil, conflicts
	}
	result := map[string]managed{}
	if err := json.Unmarshal(reply["managers"], &result); err != nil {
		panic(err)
	}
	after := fieldpath.ManagedFields{}
	for name, m := range result {
		after[name] = fieldpath.NewVersionedSet(fieldpath.WindlassDecodeSet(m.Fields), m.Version, m.Applied)
	}
	return reply, after, nil
}

// Update records an update.
func (s *Updater) Update(liveObject, newObject *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	_, after, err := s.call("update", liveObject, newObject, version, managers, manager, true)
	if err != nil {
		return nil, fieldpath.ManagedFields{}, err
	}
	return newObject, after, nil
}

// Apply applies.
func (s *Updater) Apply(liveObject, configObject *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string, force bool) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	reply, after, err := s.call("apply", liveObject, configObject, version, managers, manager, force)
	if err != nil {
		return nil, fieldpath.ManagedFields{}, err
	}
	if string(reply["same"]) == "true" {
		if s.returnInputOnNoop {
			return liveObject, after, nil
		}
		return nil, after, nil
	}
	return configObject.WindlassWith(reply["object"]), after, nil
}

// Error prints the conflicts.
func (conflicts Conflicts) Error() string {
	out := []any{}
	for _, conflict := range conflicts {
		out = append(out, windlass.Object{
			"manager": conflict.Manager,
			"path":    fieldpath.WindlassEncodePath(conflict.Path),
		})
	}
	return windlass.Ask("conflicts_text", windlass.Object{"conflicts": out}).Text()
}
