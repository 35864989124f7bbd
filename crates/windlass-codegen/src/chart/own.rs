//! Own: the files that a person keeps by hand, with placeholders for the names of the project.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{NAMESPACE, PROJECT};
use crate::manifests::Options;

/// Returns the files that the user keeps by hand. A text that is the name of the project or the namespace, or
/// that begins with the name of the project and a dash, becomes the placeholder of that name.
pub(super) fn neutral(options: &Options) -> BTreeMap<String, Vec<Value>> {
    let mut files = options.own_files.clone();
    for object in files.values_mut().flatten() {
        if object["kind"] != "CustomResourceDefinition" {
            replace(object, options);
        }
    }
    files
}

fn replace(value: &mut Value, options: &Options) {
    match value {
        Value::String(text) => {
            let rest = text.strip_prefix(&options.project).map(ToOwned::to_owned);
            if *text == options.namespace {
                NAMESPACE.clone_into(text);
            } else if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('-')) {
                *text = format!("{PROJECT}{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, options)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, options)),
        _ => {}
    }
}
