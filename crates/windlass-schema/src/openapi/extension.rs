//! OpenAPI v2 documents of extension servers, as parts of the document of all group versions.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::version_two::{KINDS, PARAMETER_REFERENCE, Parts, V2_REFERENCE, encoded};

/// The part of an extension server's v2 document that describes a group version.
///
/// ```
/// use serde_json::json;
/// use windlass_schema::{ExtensionDocument, openapi_v2};
///
/// let flunder = json!({"schema": {"$ref": "#/definitions/Flunder"}});
/// let document = json!({
///     "paths": {
///         "/apis/wardle.example.com/v1/flunders": {"get": {"responses": {"200": flunder}}},
///         "/healthz": {},
///     },
///     "definitions": {"Flunder": {"type": "object"}},
/// });
/// let extension = ExtensionDocument::new(document, "wardle.example.com", "v1");
/// let merged: serde_json::Value =
///     serde_json::from_slice(&openapi_v2([], [extension], "1.37").concat()).unwrap();
/// assert_eq!(merged["definitions"]["Flunder"], json!({"type": "object"}));
/// assert!(merged["paths"].get("/healthz").is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtensionDocument {
    paths: Map<String, Value>,
    /// The definitions and the shared parameters, by the texts that refer to them.
    shared: BTreeMap<String, Value>,
}

impl ExtensionDocument {
    /// Selects the paths of a group version in a v2 document. Definitions and shared parameters of other paths alone are left out.
    pub fn new(mut document: Value, group: &str, version: &str) -> Self {
        let take = |document: &mut Value, name: &str| match document.get_mut(name).map(Value::take) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let paths = take(&mut document, "paths");
        let mut shared = BTreeMap::new();
        for (section, prefix) in [("definitions", V2_REFERENCE), ("parameters", PARAMETER_REFERENCE)] {
            let members = take(&mut document, section).into_iter();
            shared.extend(members.map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        let prefix = format!("/apis/{group}/{version}/");
        Self { paths, shared }.with_paths(|path| path.starts_with(&prefix))
    }

    /// Writes a v2 document with this part alone.
    pub fn into_json(self) -> Vec<u8> {
        let (mut definitions, mut parameters) = (Map::new(), Map::new());
        for (reference, value) in self.shared {
            if let Some(name) = reference.strip_prefix(V2_REFERENCE) {
                definitions.insert(name.to_owned(), value);
            } else if let Some(name) = reference.strip_prefix(PARAMETER_REFERENCE) {
                parameters.insert(name.to_owned(), value);
            }
        }
        let sections = [("definitions", definitions), ("parameters", parameters), ("paths", self.paths)];
        encoded(
            &sections
                .into_iter()
                .map(|(name, members)| (name.to_owned(), members.into()))
                .collect::<Map<_, Value>>()
                .into(),
        )
    }

    /// Keeps some paths, and removes the definitions and parameters that only the other paths use.
    fn with_paths(mut self, is_kept: impl Fn(&str) -> bool) -> Self {
        let before = self.used();
        self.paths.retain(|path, _| is_kept(path));
        let now = self.used();
        self.shared.retain(|reference, _| now.contains(reference) || !before.contains(reference));
        self
    }

    /// Returns the references of the paths, and of the definitions and parameters that the paths use.
    fn used(&self) -> BTreeSet<String> {
        let (mut used, mut left) = (BTreeSet::new(), self.paths.values().collect::<Vec<_>>());
        while let Some(value) = left.pop() {
            for reference in references(value) {
                if !used.contains(reference) {
                    used.insert(reference.to_owned());
                    left.extend(self.shared.get(reference));
                }
            }
        }
        used
    }

    /// Gives definitions and parameters other names.
    fn renamed(mut self, names: &BTreeMap<String, String>) -> Self {
        if names.is_empty() {
            return self;
        }
        let members = self.paths.values_mut().chain(self.shared.values_mut());
        members.for_each(|value| rename_references(value, names));
        let shared = std::mem::take(&mut self.shared).into_iter();
        let renamed = shared.map(|(name, value)| (names.get(&name).cloned().unwrap_or(name), value));
        self.shared = renamed.collect();
        self
    }
}

impl Parts {
    /// Adds the part of an extension server, as kube-aggregator does: a path that is known stays as the path is, and a definition or parameter
    /// with a known name and another content gets a new name. `encode` encodes the operations of a path.
    pub(super) fn add(&mut self, extension: ExtensionDocument, encode: impl Fn(&Value) -> Vec<u8>) {
        let extension = extension.with_paths(|path| !self.paths.contains_key(path));
        if extension.paths.is_empty() {
            return;
        }
        let names = self.new_names(&extension.shared);
        let ExtensionDocument { paths, shared } = extension.renamed(&names);
        self.paths.extend(paths.iter().map(|(path, item)| (path.clone(), encode(item))));
        for (reference, value) in shared {
            let value = match self.shared(&reference) {
                Some(known) => with_kinds_of(known, &value),
                None => value,
            };
            if let Some(name) = reference.strip_prefix(V2_REFERENCE) {
                self.definitions.insert(name.to_owned(), encoded(&value));
            } else if let Some(name) = reference.strip_prefix(PARAMETER_REFERENCE) {
                self.parameters.insert(name.to_owned(), encoded(&value));
            }
        }
    }

    /// Returns the new references of definitions and parameters whose names are those of others.
    fn new_names(&self, shared: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in shared {
            if self.shared(name).is_none_or(|known| is_same(&known, value)) {
                continue;
            }
            // A definition or parameter takes at most one of the names.
            let last = self.definitions.len() + self.parameters.len() + shared.len() + 2;
            let mut candidates = (2..=last).map(|number| format!("{name}_v{number}"));
            let free = candidates.find(|new| match self.shared(new) {
                Some(known) => is_same(&known, value),
                None => !shared.contains_key(new),
            });
            names.extend(free.map(|free| (name.clone(), free)));
        }
        names
    }

    /// Returns the definition or parameter with a reference.
    fn shared(&self, reference: &str) -> Option<Value> {
        let known = match reference.strip_prefix(V2_REFERENCE) {
            Some(name) => self.definitions.get(name)?,
            None => self.parameters.get(reference.strip_prefix(PARAMETER_REFERENCE)?)?,
        };
        serde_json::from_slice(known).ok()
    }
}

/// Returns whether two definitions are equal, but for the kinds.
fn is_same(left: &Value, right: &Value) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return left == right };
    let others = |members: &'_ Map<String, Value>| members.iter().filter(|(name, _)| *name != KINDS).count();
    let is_in_right = |(name, value): (&String, &Value)| name == KINDS || right.get(name) == Some(value);
    others(left) == others(right) && left.iter().all(is_in_right)
}

/// Adds the kinds of an equal definition. An entry that is no kind is not added.
fn with_kinds_of(mut known: Value, other: &Value) -> Value {
    let Some(Value::Array(new)) = other.get(KINDS) else { return known };
    match known.get_mut(KINDS).map(Value::as_array_mut) {
        Some(Some(kinds)) => {
            let mut names: HashSet<_> =
                kinds.iter().filter_map(kind_of).map(|kind| kind.map(str::to_owned)).collect();
            let is_new =
                |kind: &&Value| kind_of(kind).is_some_and(|kind| names.insert(kind.map(str::to_owned)));
            let added: Vec<Value> = new.iter().filter(is_new).cloned().collect();
            if !added.is_empty() {
                kinds.extend(added);
                kinds.sort_by_cached_key(|kind| kind_of(kind).map(|kind| kind.map(str::to_owned)));
            }
        }
        _ => known[KINDS] = new.iter().filter(|kind| kind_of(kind).is_some()).cloned().collect(),
    }
    known
}

/// Returns the group, the version and the kind that an entry names.
fn kind_of(entry: &Value) -> Option<[&str; 3]> {
    let text = |field: &str| entry.get(field)?.as_str();
    Some([text("group")?, text("version")?, text("kind")?])
}

/// Returns the references in a value.
fn references(value: &Value) -> Vec<&str> {
    let (mut names, mut left) = (Vec::new(), vec![value]);
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                names.extend(members.get("$ref").and_then(Value::as_str));
                left.extend(members.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    names
}

fn rename_references(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get_mut("$ref")
                && let Some(new) = names.get(target)
            {
                target.clone_from(new);
            }
            members.values_mut().for_each(|value| rename_references(value, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| rename_references(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{openapi_v2, openapi_v2_protobuf};
    use super::*;

    fn extension(path: &str, definitions: Value) -> ExtensionDocument {
        let uses: Vec<Value> = definitions
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .map(|name| json!({"$ref": format!("{V2_REFERENCE}{name}")}))
            .collect();
        let document = json!({"paths": {path: {"get": {"uses": uses}}}, "definitions": definitions});
        ExtensionDocument::new(document, "a.test", "v1")
    }

    fn merged(extensions: &[ExtensionDocument]) -> Value {
        serde_json::from_slice(&openapi_v2([], extensions.iter().cloned(), "1.37").concat()).unwrap()
    }

    #[test]
    fn only_the_group_version_and_the_definitions_are_selected() {
        let to = |name: &str| json!({"get": {"schema": {"$ref": format!("{V2_REFERENCE}{name}")}}});
        let document = json!({
            "paths": {
                "/apis/a.test/v1/as": to("A"), "/apis/a.test/": to("Other"), "/apis/a.test/v10/as": to("Other")
            },
            "definitions": {
                "A": {"properties": {"b": {"$ref": "#/definitions/B"}}}, "B": {"items": {"$ref": "#/definitions/A"}},
                "Other": {}, "Unused": {}
            },
        });
        let selected = ExtensionDocument::new(document, "a.test", "v1");
        assert_eq!(selected.paths.keys().collect::<Vec<_>>(), ["/apis/a.test/v1/as"]);
        let definitions = ["#/definitions/A", "#/definitions/B", "#/definitions/Unused"];
        assert_eq!(selected.shared.keys().collect::<Vec<_>>(), definitions);
    }

    #[test]
    fn another_definition_of_the_same_name_gets_a_new_name() {
        let first =
            extension("/apis/a.test/v1/as", json!({"A": {"type": "object"}, "B": {"type": "string"}}));
        let second =
            extension("/apis/a.test/v1/bs", json!({"A": {"type": "object"}, "B": {"type": "integer"}}));
        let third = extension("/apis/a.test/v1/cs", json!({"B": {"type": "integer"}}));
        let document = merged(&[first, second, third]);
        let wanted = json!({"A": {"type": "object"}, "B": {"type": "string"}, "B_v2": {"type": "integer"}});
        assert_eq!(document["definitions"], wanted);
        for path in ["/apis/a.test/v1/bs", "/apis/a.test/v1/cs"] {
            let uses = document["paths"][path]["get"]["uses"].to_string();
            assert!(uses.contains("#/definitions/B_v2"), "{uses}");
        }
    }

    #[test]
    fn a_definition_names_the_kinds_of_all_servers() {
        let kind = |group: &str| json!({"group": group, "version": "v1", "kind": "WatchEvent"});
        let of = |groups: &[&str]| json!({"E": {KINDS: groups.iter().map(|group| kind(group)).collect::<Value>()}});
        let document = merged(&[
            extension("/apis/a.test/v1/as", of(&["b", "c"])),
            extension("/apis/a.test/v1/bs", of(&["c", "a"])),
        ]);
        assert_eq!(document["definitions"], of(&["a", "b", "c"]));
    }

    #[test]
    fn the_part_of_a_group_version_is_a_document() {
        let selected = with_parameter("/apis/a.test/v1/as", json!({"in": "query", "name": "q"}));
        let document = serde_json::from_slice(&selected.clone().into_json()).unwrap();
        assert_eq!(ExtensionDocument::new(document, "a.test", "v1"), selected);
    }

    /// A document with a path that uses the shared parameter `p`, and with a parameter of another path.
    fn with_parameter(path: &str, parameter: Value) -> ExtensionDocument {
        let document = json!({
            "paths": {
                path: {"parameters": [{"$ref": "#/parameters/p"}]},
                "/apis/": {"parameters": [{"$ref": "#/parameters/other"}]},
            },
            "parameters": {"p": parameter, "other": {"in": "query", "name": "other"}},
            "definitions": {"Body": {"type": "object"}},
        });
        ExtensionDocument::new(document, "a.test", "v1")
    }

    #[test]
    fn shared_parameters_are_kept() {
        let body = json!({"in": "body", "name": "body", "schema": {"$ref": "#/definitions/Body"}});
        let query = json!({"in": "query", "name": "limit", "type": "integer"});
        let document = merged(&[
            with_parameter("/apis/a.test/v1/as", body.clone()),
            with_parameter("/apis/a.test/v1/bs", query.clone()),
            with_parameter("/apis/a.test/v1/cs", body.clone()),
        ]);
        assert_eq!(document["parameters"], json!({"p": body, "p_v2": query}));
        assert_eq!(document["definitions"], json!({"Body": {"type": "object"}}));
        for (path, name) in [("as", "p"), ("bs", "p_v2"), ("cs", "p")] {
            let found = &document["paths"][format!("/apis/a.test/v1/{path}")]["parameters"][0]["$ref"];
            assert_eq!(*found, format!("#/parameters/{name}"));
        }
    }

    #[test]
    fn shared_parameters_in_protobuf_are_references() {
        let extension =
            with_parameter("/apis/a.test/v1/as", json!({"in": "query", "name": "q", "type": "string"}));
        let document = openapi_v2_protobuf([], [extension], "1.37").concat();
        let has = |part: &[u8]| document.windows(part.len()).any(|found| found == part);
        assert!(
            has(b"\x4a\x12\x12\x10\x0a\x0e#/parameters/p"),
            "field 9 of the path: field 2 is a reference"
        );
        let named = b"\x52\x1d\x0a\x1b\x0a\x01p\x12\x16\x12\x14\x1a\x12\x12\x05query\x22\x01q\x32\x06string";
        assert!(has(named), "field 10 of the document: the parameters by name");
    }

    #[test]
    fn many_kinds_are_merged() {
        let kind =
            |number: u32| json!({"group": "a.test", "version": "v1", "kind": format!("Kind{number:06}")});
        let of = |kinds: Value| json!({"E": {KINDS: kinds}});
        let no_kinds = [json!(1), json!({"group": "a.test", "version": "v1", "kind": 1})];
        // A comparison of each kind with each other kind would take hours.
        let many: Value = (0..200_000).map(kind).chain(no_kinds).collect();
        let document = merged(&[
            extension("/apis/a.test/v1/as", of([kind(1)].into_iter().collect())),
            extension("/apis/a.test/v1/bs", of(many)),
        ]);
        let kinds = document["definitions"]["E"][KINDS].as_array().unwrap();
        assert_eq!(kinds.len(), 200_000, "entries that are no kinds are not added");
        assert_eq!(kinds[0], kind(0));
    }

    #[test]
    fn a_known_path_stays() {
        let document = merged(&[
            extension("/apis/a.test/v1/as", json!({"A": {"type": "object"}})),
            extension("/apis/a.test/v1/as", json!({"B": {"type": "object"}})),
        ]);
        assert_eq!(document["definitions"], json!({"A": {"type": "object"}}));
    }
}
