//! The atomic parts of a value.

use serde_json::Value;

use super::atom::TypeRef;
use crate::graph::NodeRef;

/// The number of paths that are returned.
const MAX_PATHS: usize = 1000;

/// Returns the paths of atomic lists and maps in a value. The value has passed [`validate_typed`](super::validate_typed).
/// Members of maps that are no declared fields are not looked into.
///
/// ```
/// use serde_json::json;
/// use windlass_schema::fields::atomic_paths;
///
/// let schema = windlass_schema::Catalog::builtin().schema("apps", "v1", "Deployment").unwrap();
/// let patch = json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}}});
/// assert_eq!(atomic_paths(schema.root(), &patch), [".spec.selector"]);
/// ```
pub fn atomic_paths(schema: NodeRef<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(TypeRef::root(schema), value, &mut String::new(), &mut found);
    found
}

fn visit(kind: TypeRef<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let atom = kind.atom();
    let length = path.len();
    let add = |is_atomic: bool, path: &str, found: &mut Vec<String>| {
        if is_atomic && found.len() < MAX_PATHS {
            found.push(path.to_owned());
        }
    };
    match value {
        Value::Object(members) => {
            let Some(map) = atom.map else { return };
            add(map.atomic, path, found);
            for (name, member) in members {
                if let Some(field) = map.field(name) {
                    path.extend([".", name]);
                    visit(field, member, path, found);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) => {
            let Some(list) = atom.list else { return };
            add(!list.associative, path, found);
            for (index, item) in items.iter().enumerate() {
                path.extend(["[", &index.to_string(), "]"]);
                visit(list.element(), item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
