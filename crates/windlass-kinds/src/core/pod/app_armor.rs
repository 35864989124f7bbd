//! `AppArmor` profiles of containers from annotations.

use serde_json::{Map, Value, json};

use crate::json::{entry_mut, items_mut, list_at, map_at, spec_mut, text_at};
use crate::pod_template::app_armor::{ANNOTATION, WARNING, profile};

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// The longest name of a profile, in bytes.
const MOST_BYTES: usize = 4095;

/// Gives the containers of a new pod the profiles in the annotations.
pub(super) fn set_profiles(pod: &mut Value) {
    let Some(annotations) = Annotations::of(pod) else { return };
    let spec = spec_mut(pod);
    for list in LISTS {
        for container in items_mut(spec, list) {
            let Some((_, Some(profile))) = annotations.without_field(container) else { continue };
            let context = container.entry("securityContext").or_insert(Value::Null);
            if context.is_null() {
                *context = json!({});
            }
            if let Some(context) = entry_mut(container, "securityContext") {
                context.insert("appArmorProfile".to_owned(), profile);
            }
        }
    }
}

/// Returns the warnings about annotations of a new pod without an equal field, before [`set_profiles`] sets the fields.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let Some(annotations) = Annotations::of(pod) else { return Vec::new() };
    let containers = LISTS.iter().flat_map(|list| list_at(pod, &format!("/spec/{list}")));
    let keys = containers.filter_map(|container| annotations.without_field(container.as_object()?));
    keys.map(|(key, _)| format!("metadata.annotations[{key}]: {WARNING}")).collect()
}

/// The annotations of a pod, and the profile of the pod.
struct Annotations {
    by_key: Map<String, Value>,
    of_pod: Option<Value>,
}

impl Annotations {
    /// Returns the annotations that apply to the containers; `None` for a pod without annotations, and for a Windows pod.
    fn of(pod: &Value) -> Option<Self> {
        let annotations = map_at(pod, "/metadata/annotations")?.iter();
        let by_key: Map<String, Value> = annotations
            .filter(|(key, _)| key.starts_with(ANNOTATION))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let is_windows = text_at(pod, "/spec/os/name") == "windows";
        let of_pod = pod.pointer("/spec/securityContext/appArmorProfile").filter(|found| !found.is_null());
        (!by_key.is_empty() && !is_windows).then(|| Self { by_key, of_pod: of_pod.cloned() })
    }

    /// Returns the key of the annotation of a container without a profile in a field, and the profile in the annotation if
    /// the profile is valid. An annotation with the profile of the pod has no effect.
    fn without_field(&self, container: &Map<String, Value>) -> Option<(String, Option<Value>)> {
        let field = container.get("securityContext").and_then(|context| context.get("appArmorProfile"));
        if field.is_some_and(|field| !field.is_null()) {
            return None;
        }
        let key = format!("{ANNOTATION}{}", container.get("name")?.as_str()?);
        let profile = profile(self.by_key.get(&key)?.as_str()?).filter(is_valid);
        (profile.is_none() || profile != self.of_pod).then_some((key, profile))
    }
}

/// Returns whether the name of a profile on the node is valid.
fn is_valid(profile: &Value) -> bool {
    let name = profile.get("localhostProfile").and_then(Value::as_str).unwrap_or_default();
    name.len() <= MOST_BYTES && name.trim() == name
}
