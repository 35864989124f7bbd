//! Access of administrators to devices that are in use.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;

use crate::kind::WriteContext;
use crate::resources::NAMESPACES;

/// The label of a namespace whose claims may have the access.
const LABEL: &str = "resource.kubernetes.io~1admin-access";

/// Reports the first element of `list` that wants the access, unless the namespace permits the access. `wants` returns the part of
/// an element that says so.
pub(super) fn errors<'a>(
    cx: &WriteContext<'_>,
    object: &Value,
    (path, list): (&str, &'a [Value]),
    wants: impl Fn(&'a Value) -> Option<&'a Value>,
) -> Vec<FieldError> {
    let Some(index) = list.iter().position(|item| asks(wants(item))) else { return Vec::new() };
    let namespace = cx.view.get(&NAMESPACES, meta::namespace(object)).map(|found| found.value());
    let label = namespace.as_ref().and_then(|found| found.pointer(&format!("/metadata/labels/{LABEL}")));
    if label.is_some_and(|value| value == "true") {
        return Vec::new();
    }
    let detail = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    vec![FieldError::forbidden(format!("{path}[{index}].adminAccess"), detail)]
}

/// Returns whether a request or a result has the access.
pub(super) fn asks(item: Option<&Value>) -> bool {
    item.and_then(|item| item["adminAccess"].as_bool()).unwrap_or_default()
}
