//! Validation and warnings.

use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};

use super::Roles;
use crate::field::{self, Errors, Field};
use crate::json::list_at;
use crate::kind::Validate;
use crate::selector::label_selector;

impl Validate for Roles {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = ErrorList::new();
        for (index, rule) in list_at(object, "/rules").iter().enumerate() {
            let path = format!("rules[{index}]");
            let given = |field: &str| !list_at(rule, &format!("/{field}")).is_empty();
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
            errors.extend(field::validate(
                "aggregationRule",
                &object["aggregationRule"],
                validate_aggregation,
            ));
        }
        // As in kube-apiserver, the errors of its declarative rules are the last ones.
        for (index, rule) in list_at(object, "/rules").iter().enumerate() {
            if list_at(rule, "/verbs").is_empty() {
                errors.push(FieldError::required(format!("rules[{index}].verbs"), ""));
            }
        }
        errors.into_vec()
    }
}

fn validate_aggregation(rule: &Field<'_>, errors: &mut Errors) {
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
