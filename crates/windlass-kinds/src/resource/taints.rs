//! Taints of devices, tolerations, and the conditions of bindings.

use std::collections::BTreeSet;

use windlass_wire::names;

use super::limits::{distinct_texts, is_beyond};
use crate::field::{Errors, Field};

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
/// The largest number of conditions of a binding.
const MOST_CONDITIONS: usize = 4;

/// Validates a taint. An effect that an update keeps is not checked.
pub(super) fn taint(taint: &Field<'_>, keeps_effect: bool, errors: &mut Errors) {
    taint.at("key").check(names::label_key, errors);
    taint.at("value").check_if_any(names::label_value, errors);
    if !keeps_effect {
        errors.declared(|errors| taint.at("effect").require_one_of(&EFFECTS, errors));
    }
}

/// Validates tolerations of taints of devices.
pub(super) fn tolerations(list: &Field<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        let (operator, value) = (toleration.at("operator"), toleration.at("value"));
        match operator.text() {
            "Exists" if !value.text().is_empty() => {
                errors.push(value.invalid("must be empty for operator `Exists`"));
            }
            "Equal" => value.check_if_any(names::label_value, errors),
            _ => {}
        }
        errors.declared(|errors| {
            toleration.at("key").check_if_any(names::label_key, errors);
            operator.require_one_of(&["Equal", "Exists"], errors);
            let effect = toleration.at("effect");
            if !effect.text().is_empty() {
                effect.one_of(&EFFECTS, errors);
            }
        });
    }
}

/// Validates the conditions that decide about the binding of a pod to the device.
pub(super) fn binding_conditions(device: &Field<'_>, errors: &mut Errors) {
    let (good, bad) = (device.at("bindingConditions"), device.at("bindingFailureConditions"));
    for list in [&good, &bad] {
        if !is_beyond(list, MOST_CONDITIONS, errors) {
            list.items().for_each(|condition| condition.check(names::label_key, errors));
        }
    }
    distinct_texts(&good, errors);
    failure_conditions(&good, &bad, errors);
    if good.is_empty() && !bad.is_empty() {
        errors.push(good.invalid("bindingConditions are required to use bindingFailureConditions"));
    }
    if bad.is_empty() && !good.is_empty() {
        errors.push(bad.invalid("bindingFailureConditions are required to use bindingConditions"));
    }
}

fn failure_conditions(good: &Field<'_>, bad: &Field<'_>, errors: &mut Errors) {
    let good: BTreeSet<&str> = good.items().map(|condition| condition.text()).collect();
    let mut seen = BTreeSet::new();
    for condition in bad.items() {
        if !seen.insert(condition.text()) {
            errors.push(condition.duplicate());
        }
        if good.contains(condition.text()) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.push(condition.invalid(detail));
        }
    }
}
