//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::{Pods, resize, status, update};
use crate::checks::dns_label_warning;
use crate::field;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::ephemeral;
use crate::pod_template::validate::validate_new_pod;
use crate::pod_template::warnings::pod_warnings;
use crate::subresource::Subresource;

impl Validate for Pods {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        field::validate("", object, validate_new_pod)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let check = match cx.subresource {
            Subresource::None => update::validate_update,
            Subresource::EphemeralContainers => ephemeral::validate_update,
            Subresource::Status => status::validate_update,
            Subresource::Resize => return resize::validate_resize(object, old),
            _ => return Vec::new(),
        };
        field::validate("", object, |pod, errors| check(pod, &pod.with(old), errors))
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() || old.is_some() {
            return Vec::new();
        }
        let mut warnings: Vec<String> =
            dns_label_warning(object, "this is used in the Pod's hostname").into_iter().collect();
        warnings.extend(pod_warnings(object));
        warnings
    }
}
