//! Validation and warnings.

use std::collections::HashSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::RuntimeClasses;
use crate::checks::declared_immutable;
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};
use crate::pod_template::resources::{validate_amount, validate_container_name};
use crate::pod_template::scheduling::validate_tolerations;
use crate::pod_template::warnings::node_label;

impl Validate for RuntimeClasses {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |class, errors| {
            class.at("handler").require_check(names::dns_1123_label, errors);
            validate_pods(class, errors);
        })
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let change: Vec<FieldError> = declared_immutable(object, old, "/handler").into_iter().collect();
        let mut errors = field::validate("", object, |class, errors| {
            // A handler that does not change is not validated again.
            if !change.is_empty() {
                class.at("handler").require_check(names::dns_1123_label, errors);
            }
            validate_pods(class, errors);
        });
        errors.extend(change);
        errors
    }

    fn warnings(&self, _cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let warnings: Vec<String> = field::validate("", object, |class, warnings| {
            let labels = class.at_path("scheduling/nodeSelector");
            let texts = labels.entries().filter_map(|(label, _)| node_label(label));
            warnings.extend(texts.map(|text| labels.warning(text)));
        });
        warnings
    }
}

/// Validates the additions of a class to pods.
fn validate_pods(class: &Field<'_>, errors: &mut Errors) {
    let overhead = class.at("overhead");
    for (name, amount) in overhead.at("podFixed").report_under(&overhead, "limits").entries() {
        validate_container_name(name, &amount, errors);
        validate_amount(name, &amount, errors);
    }
    validate_huge_pages(&overhead, errors);
    let scheduling = class.at("scheduling");
    if let Some(labels) = scheduling.at("nodeSelector").map() {
        errors.extend(scheduling.at("nodeSelector").moved(names::validate_labels(labels, "")));
    }
    let tolerations = scheduling.at("tolerations");
    validate_tolerations(&tolerations, errors);
    let mut seen: HashSet<&Value> = HashSet::new();
    for toleration in tolerations.items() {
        if !seen.insert(toleration.value()) {
            errors.push(toleration.duplicate());
        }
    }
}

/// Checks that an overhead with huge pages has processor time or memory, too.
fn validate_huge_pages(overhead: &Field<'_>, errors: &mut Errors) {
    let fixed = overhead.at("podFixed");
    let has_huge_pages = fixed.entries().any(|(name, _)| name.starts_with("hugepages-"));
    if has_huge_pages && !fixed.entries().any(|(name, _)| matches!(name, "cpu" | "memory")) {
        errors.push(overhead.forbidden("HugePages require cpu or memory"));
    }
}
