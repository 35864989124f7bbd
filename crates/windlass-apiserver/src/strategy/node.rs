//! Runtime classes.

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::immutable;
use super::core::{node_label, validate_amount, validate_container_name, validate_tolerations};
use super::place::{self, Place};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "runtimeclasses" => &RuntimeClasses,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FACTS: Facts = Facts { create_on_update: true, unconditional_update: false, ..Facts::DATA };

struct RuntimeClasses;

impl Strategy for RuntimeClasses {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        place::validate("", object, |class, errors| {
            class.at("handler").require_check(names::dns_1123_label, errors);
            validate_pods(class, errors);
        })
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let change: Vec<FieldError> = immutable(object, old, "/handler").into_iter().collect();
        let mut errors = place::validate("", object, |class, errors| {
            // A handler that does not change is not validated again.
            if !change.is_empty() {
                class.at("handler").require_check(names::dns_1123_label, errors);
            }
            validate_pods(class, errors);
        });
        errors.extend(change);
        errors
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings: Vec<String> = FACTS.unenforced_warning().into_iter().collect();
        warnings.extend(place::validate("", object, |class, warnings| {
            let labels = class.below("scheduling/nodeSelector");
            let texts = labels.entries().filter_map(|(label, _)| node_label(label));
            warnings.extend(texts.map(|text| labels.warning(text)));
        }));
        warnings
    }
}

/// Validates the additions of a class to pods.
fn validate_pods(class: &Place<'_>, errors: &mut Vec<FieldError>) {
    let overhead = class.at("overhead");
    for (name, amount) in overhead.at("podFixed").shown_under(&overhead, "limits").entries() {
        validate_container_name(name, &amount, errors);
        validate_amount(name, &amount, errors);
    }
    let scheduling = class.at("scheduling");
    if let Some(labels) = scheduling.at("nodeSelector").map() {
        errors.extend(scheduling.at("nodeSelector").moved(names::validate_labels(labels, "")));
    }
    validate_tolerations(&scheduling.at("tolerations"), errors);
}
