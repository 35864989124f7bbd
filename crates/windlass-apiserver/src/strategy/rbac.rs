//! Roles and their bindings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::apps::label_selector;
use super::fields::{default_text, items_mut, list_at, text, text_at};
use super::place::{self, Errors, Place};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::{ApiError, names};

mod escalation;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "roles" => &Roles { cluster: false },
        "clusterroles" => &Roles { cluster: true },
        "rolebindings" | "clusterrolebindings" => &Bindings,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const ROLES: Facts = Facts { name: names::path_segment_name, create_on_update: true, ..Facts::DATA };

struct Roles {
    cluster: bool,
}

impl Strategy for Roles {
    fn facts(&self) -> &'static Facts {
        &ROLES
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let resource = if self.cluster { "clusterroles" } else { "roles" };
        escalation::of_role(cx, resource, object, old)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, rule) in list_at(object, "/rules").iter().enumerate() {
            let path = format!("rules[{index}]");
            let given = |field: &str| !list_at(rule, &format!("/{field}")).is_empty();
            if !given("verbs") {
                errors.push(FieldError::required(
                    format!("{path}.verbs"),
                    "verbs must contain at least one value",
                ));
            }
            if given("nonResourceURLs") {
                let urls = rule.get("nonResourceURLs").cloned().unwrap_or(Value::Null);
                let field = format!("{path}.nonResourceURLs");
                if !self.cluster {
                    let detail = "namespaced rules cannot apply to non-resource URLs";
                    errors.push(FieldError::invalid(field.as_str(), urls.clone(), detail));
                }
                if given("apiGroups") || given("resources") || given("resourceNames") {
                    let detail = "rules cannot apply to both regular resources and non-resource URLs";
                    errors.push(FieldError::invalid(field, urls, detail));
                }
                continue;
            }
            if !given("apiGroups") {
                let detail = "resource rules must supply at least one api group";
                errors.push(FieldError::required(format!("{path}.apiGroups"), detail));
            }
            if !given("resources") {
                let detail = "resource rules must supply at least one resource";
                errors.push(FieldError::required(format!("{path}.resources"), detail));
            }
        }
        if self.cluster {
            errors.extend(place::validate(
                "aggregationRule",
                &object["aggregationRule"],
                validate_aggregation,
            ));
        }
        errors
    }
}

fn validate_aggregation(rule: &Place<'_>, errors: &mut Errors) {
    if !rule.is_set() {
        return;
    }
    let selectors = rule.at("clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(selectors.required(detail));
    }
    for selector in selectors.items() {
        let before = errors.len();
        label_selector(&selector, errors);
        if errors.len() > before {
            errors.push(selector.invalid_as(Value::Null, "invalid label selector."));
        }
    }
}

struct Bindings;

impl Strategy for Bindings {
    fn facts(&self) -> &'static Facts {
        &ROLES
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        escalation::of_binding(cx, object, old)
    }

    fn default(&self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else { return };
        for subject in items_mut(fields, "subjects") {
            if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                default_text(subject, "apiGroup", GROUP);
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
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
        errors
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
        vec![FieldError::invalid("roleRef", role.clone(), "cannot change roleRef").showing(shown)]
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &str, errors: &mut Vec<FieldError>) {
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
