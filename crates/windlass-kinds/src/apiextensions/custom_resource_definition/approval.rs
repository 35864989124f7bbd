//! The approval of definitions in protected groups of Kubernetes.

use serde_json::Value;
use windlass_schema::{FieldError, go_quote};

use super::{set_condition, text};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";

/// Checks that a definition has an approval annotation.
pub(super) fn validate(definition: &Value) -> Vec<FieldError> {
    if !is_protected(definition) {
        return Vec::new();
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let given = given(definition);
    if given.is_empty() {
        let detail = format!("protected groups must have approval annotation \"{ANNOTATION}\", {see}");
        return vec![FieldError::required(path, detail)];
    }
    if given.starts_with("unapproved") || is_url(given) {
        return Vec::new();
    }
    let detail = format!(
        "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting \
         with \"unapproved\", {see}"
    );
    vec![FieldError::invalid(path, given, detail)]
}

/// Sets the condition that tells whether a definition is approved.
pub(super) fn tell(definition: &mut Value, now: &str) {
    let given = given(definition).to_owned();
    if !is_protected(definition) || given.is_empty() {
        return;
    }
    if given.starts_with("unapproved") {
        let message = format!("not approved: {}", go_quote(&given));
        set_condition(definition, CONDITION, false, "UnapprovedAnnotation", &message, now);
    } else if is_url(&given) {
        let message = format!("approved in {given}");
        set_condition(definition, CONDITION, true, "ApprovedAnnotation", &message, now);
    }
}

fn given(definition: &Value) -> &str {
    text(definition, &["metadata", "annotations", ANNOTATION])
}

/// Returns whether the group is protected.
fn is_protected(definition: &Value) -> bool {
    let group = text(definition, &["spec", "group"]);
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Returns whether the text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(in_scheme) {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let in_host = |byte: u8| {
        !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
    };
    !host.is_empty() && host.bytes().all(in_host) && !text.bytes().any(|byte| byte.is_ascii_control())
}
