//! The allowed changes of a conversion webhook: everything except metadata, and of metadata only labels and
//! annotations.

use serde_json::{Map, Value};
use windlass_schema::{FieldError, go_type};

use crate::meta;
use crate::wire::names;

/// Why a converted object is not accepted.
pub(super) enum Unacceptable {
    /// The object is not the converted object.
    Object(String),
    /// The metadata is malformed.
    Metadata(String),
}

impl Unacceptable {
    /// Returns the words of kube-apiserver, which differ between objects of lists and other objects.
    pub(super) fn at(self, index: usize, is_list: bool) -> String {
        match self {
            Self::Object(why) if is_list => {
                format!("returned invalid converted object at index {index}: {why}")
            }
            Self::Object(why) if why.starts_with("invalid ") => {
                format!("returned invalid object at index {index}: {why}")
            }
            Self::Object(why) => format!("returned invalid object: {why}"),
            Self::Metadata(why) if is_list => {
                format!("returned invalid metadata in object at index {index}: {why}")
            }
            Self::Metadata(why) => format!("returned invalid metadata: {why}"),
        }
    }
}

/// Checks a converted object and gives the object the metadata of the original, except labels and
/// annotations.
pub(super) fn accept(original: &Value, mut converted: Value, wanted: &str) -> Result<Value, Unacceptable> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let version = text(&converted, "apiVersion");
    if version != wanted {
        let why = format!("invalid groupVersion (expected {wanted}, received {version})");
        return Err(Unacceptable::Object(why));
    }
    let (kind, found_kind) = (text(original, "kind"), text(&converted, "kind"));
    if kind != found_kind {
        let why = format!("invalid kind (expected {kind}, received {found_kind})");
        return Err(Unacceptable::Object(why));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (kept, found) = (meta::text(original, field), meta::text(&converted, field));
        if kept != found {
            return Err(Unacceptable::Object(format!("must have the same {shown}: {kept} != {found}")));
        }
    }
    let metadata = restored(original, &converted).map_err(Unacceptable::Metadata)?;
    if let Some(fields) = converted.as_object_mut() {
        fields.insert("metadata".to_owned(), metadata);
    }
    Ok(converted)
}

/// Returns the metadata of the original, with the labels and annotations of the converted object.
fn restored(original: &Value, converted: &Value) -> Result<Value, String> {
    let Some(metadata) = converted.get("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    let Some(metadata) = metadata.as_object() else {
        return Err(format!("invalid metadata of type {} in converted object", go_type(metadata)));
    };
    let mut restored = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match metadata.get(field) {
            None | Some(Value::Null) => {
                restored.remove(field);
            }
            Some(Value::Object(entries)) => {
                check_entries(field, entries, restored.get(field).and_then(Value::as_object))?;
                restored.insert(field.to_owned(), Value::Object(entries.clone()));
            }
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        }
    }
    Ok(Value::Object(restored))
}

fn check_entries(
    field: &str,
    entries: &Map<String, Value>,
    original: Option<&Map<String, Value>>,
) -> Result<(), String> {
    if let Some((key, value)) = entries.iter().find(|(_, value)| !value.is_string()) {
        let found = go_type(value);
        return Err(format!("metadata.{field}[{key}] must be a string, but is {found} in converted object"));
    }
    if original == Some(entries) {
        return Ok(());
    }
    let errors = if field == "labels" {
        names::validate_labels(entries, "metadata.labels")
    } else {
        names::validate_annotations(entries, "metadata.annotation")
    };
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.to_string()),
        many => {
            let texts: Vec<String> = many.iter().map(FieldError::to_string).collect();
            Err(format!("[{}]", texts.join(", ")))
        }
    }
}
