//! Validation of the capacities of devices, and of the policies for requests of capacity.

use windlass_wire::Quantity;

use crate::field::{Errors, Field};
use crate::resource::limits::is_too_long;

/// The largest number of valid values of a policy.
const MOST_VALUES: usize = 10;

/// Validates a capacity. Only a device that is allocated several times has policies.
pub(super) fn capacity(capacity: &Field<'_>, is_shared: bool, errors: &mut Errors) {
    let policy = capacity.at("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !is_shared {
        errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        return;
    }
    let most = capacity.at("value").quantity().unwrap_or(Quantity::ZERO);
    let (values, range) = (policy.at("validValues"), policy.at("validRange"));
    match (!values.is_empty(), range.is_set()) {
        (true, true) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.push(policy.forbidden(detail));
        }
        (true, false) => {
            if let Some(default) = default(&policy, "validValues", errors) {
                check_values(&values, default, most, errors);
            }
        }
        (false, true) => {
            if let Some(default) = default(&policy, "validRange", errors) {
                check_range(&range, default, most, errors);
            }
        }
        (false, false) => {}
    }
}

/// Returns the default of a policy, and reports a missing default.
fn default(policy: &Field<'_>, because_of: &str, errors: &mut Errors) -> Option<Quantity> {
    let default = policy.at("default");
    if !default.is_set() {
        errors.push(default.required(format!("required when {because_of} is defined")));
    }
    default.quantity()
}

fn check_values(values: &Field<'_>, default: Quantity, most: Quantity, errors: &mut Errors) {
    let amounts: Vec<Quantity> = values.items().filter_map(|value| value.quantity()).collect();
    for (index, pair) in amounts.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let detail = "values must be sorted in ascending order";
            errors.push(values.index(index + 1).invalid_as(pair[1].to_string(), detail));
        }
    }
    let mut is_valid = false;
    if !is_too_long(values, MOST_VALUES, errors) {
        is_valid = amounts.contains(&default);
        for (index, amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount > most) {
            let detail = format!("option is larger than capacity value: {most}");
            errors.push(values.index(index).invalid_as(amount.to_string(), detail));
        }
        let mut seen = std::collections::BTreeSet::new();
        for (index, amount) in amounts.iter().enumerate() {
            if !seen.insert(whole(*amount)) {
                errors.push(values.index(index).duplicate_as(whole(*amount).to_string()));
            }
        }
    }
    if !is_valid {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(values.invalid_as(default.to_string(), detail));
    }
}

fn check_range(range: &Field<'_>, default: Quantity, most: Quantity, errors: &mut Errors) {
    let Some(min) = range.at("min").quantity() else {
        errors.push(range.at("min").required("required when validRange is defined"));
        return;
    };
    if min > most {
        let detail = format!("min is larger than capacity value: {most}");
        errors.push(range.at("min").invalid_as(min.to_string(), detail));
    }
    if default < min {
        let detail = format!("default is less than min: {min}");
        errors.push(range.at("default").invalid_as(default.to_string(), detail));
    }
    if let Some(max) = range.at("max").quantity() {
        if min > max {
            let detail = format!("min is larger than max: {max}");
            errors.push(range.at("max").invalid_as(min.to_string(), detail));
        }
        if max > most {
            let detail = format!("max is larger than capacity value: {most}");
            errors.push(range.at("max").invalid_as(max.to_string(), detail));
        }
        if default > max {
            let detail = format!("default is more than max: {max}");
            errors.push(range.at("default").invalid_as(default.to_string(), detail));
        }
    }
    check_step(range, default, min, most, errors);
}

fn check_step(range: &Field<'_>, default: Quantity, min: Quantity, most: Quantity, errors: &mut Errors) {
    let place = range.at("step");
    let Some(step) = place.quantity() else { return };
    if step <= Quantity::ZERO {
        errors.push(place.invalid_as(step.to_string(), "must be greater than zero"));
        return;
    }
    let first = min + step;
    if first > most {
        let detail = format!("one step {first} is larger than capacity value: {most}");
        errors.push(place.invalid_as(step.to_string(), detail));
    }
    let max = range.at("max").quantity();
    let mut is_countable = true;
    for (name, amount) in [("default", Some(default)), ("min", Some(min)), ("max", max)] {
        if let Some(amount) = amount.filter(|amount| *amount < Quantity::ZERO) {
            is_countable = false;
            let detail = "must be greater than or equal to 0";
            errors.push(range.at(name).invalid_as(amount.to_string(), detail));
        }
    }
    for amount in [Some(default), max].into_iter().flatten().filter(|_| is_countable) {
        if (whole(amount) - whole(min)) % whole(step) != 0 {
            let detail = format!("value is not a multiple of a given step ({step}) from ({min})");
            errors.push(place.invalid_as(amount.to_string(), detail));
        }
    }
}

/// Returns the amount, rounded up to a whole number.
fn whole(amount: Quantity) -> i128 {
    amount.round_up().to_i64().unwrap_or(i64::MAX).into()
}
