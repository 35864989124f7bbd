//! Defaults.

use serde_json::Value;

use super::Ingresses;
use crate::kind::Defaults;

impl Defaults for Ingresses {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.get_mut("spec") else { return };
        if let Some(backend) = spec.get_mut("defaultBackend") {
            name_group(backend);
        }
        let lists = spec.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
        let paths = lists.filter_map(|rule| rule.pointer_mut("/http/paths")?.as_array_mut()).flatten();
        paths.filter_map(|path| path.get_mut("backend")).for_each(name_group);
    }
}

/// Writes the group of a backend's resource even if it is absent: the field has no `omitempty`.
fn name_group(backend: &mut Value) {
    if let Some(Value::Object(resource)) = backend.get_mut("resource") {
        resource.entry("apiGroup").or_insert(Value::Null);
    }
}
