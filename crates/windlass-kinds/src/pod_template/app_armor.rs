//! The deprecated annotations with `AppArmor` profiles.

use serde_json::{Value, json};

/// The start of the key of an annotation. The rest is the name of a container.
pub(crate) const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The warning about an annotation without a field.
pub(crate) const WARNING: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// Returns the profile that the value of an annotation stands for.
pub(crate) fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => {
            let name = other.strip_prefix("localhost/").filter(|name| !name.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}
