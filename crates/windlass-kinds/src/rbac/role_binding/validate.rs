//! Validation and warnings.

use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};
use windlass_wire::names;

use super::Bindings;
use crate::json::{list_at, text, text_at};
use crate::kind::Validate;
use crate::rbac::GROUP;

impl Validate for Bindings {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = ErrorList::new();
        let group = text_at(object, "/roleRef/apiGroup");
        errors
            .extend((group != GROUP).then(|| FieldError::not_supported("roleRef.apiGroup", group, &[GROUP])));
        let namespaced = !text_at(object, "/metadata/namespace").is_empty();
        let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        let kind = text_at(object, "/roleRef/kind");
        errors
            .extend((!kinds.contains(&kind)).then(|| FieldError::not_supported("roleRef.kind", kind, kinds)));
        let name = text_at(object, "/roleRef/name");
        if name.is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        } else {
            let problems = names::path_segment_name(name, false);
            errors.extend(problems.into_iter().map(|text| FieldError::invalid("roleRef.name", name, text)));
        }
        for (index, subject) in list_at(object, "/subjects").iter().enumerate() {
            validate_subject(subject, namespaced, &format!("subjects[{index}]"), &mut errors);
        }
        errors.into_vec()
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        if object.get("roleRef") == old.get("roleRef") {
            return Vec::new();
        }
        let role = &object["roleRef"];
        let quoted = |field: &str| windlass_schema::go_quote(text(role, field));
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            quoted("apiGroup"),
            quoted("kind"),
            quoted("name")
        );
        vec![FieldError::invalid("roleRef", role.clone(), "field is immutable").showing(shown)]
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &str, errors: &mut ErrorList) {
    let (kind, name) = (text(subject, "kind"), text(subject, "name"));
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let group = text(subject, "apiGroup");
    let wanted = match kind {
        "ServiceAccount" => "",
        "User" | "Group" => GROUP,
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(format!("{path}.kind"), other, &known));
            return;
        }
    };
    if kind == "ServiceAccount" {
        if !name.is_empty() {
            let problems = names::dns_1123_subdomain(name);
            let field = format!("{path}.name");
            errors.extend(problems.into_iter().map(|text| FieldError::invalid(field.as_str(), name, text)));
        }
        if !namespaced && text(subject, "namespace").is_empty() {
            errors.push(FieldError::required(format!("{path}.namespace"), ""));
        }
    }
    if group != wanted {
        errors.push(FieldError::not_supported(format!("{path}.apiGroup"), group, &[wanted]));
    }
}
