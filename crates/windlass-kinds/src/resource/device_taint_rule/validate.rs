//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names::dns_1123_label;

use super::{EFFECT, TaintRules};
use crate::checks::conditions;
use crate::field::{self, Errors, Field};
use crate::json::text_at;
use crate::kind::{Validate, WriteContext};
use crate::resource::names;
use crate::resource::taints::taint;
use crate::subresource::Subresource;
use crate::volume::source::driver_name;

/// The largest number of conditions.
const MOST_CONDITIONS: usize = 8;

impl Validate for TaintRules {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        spec_errors(object, None)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return self.validate_status(object, old);
        }
        spec_errors(object, Some(old))
    }

    fn validate_status(&self, object: &Value, _: &Value) -> Vec<FieldError> {
        field::validate("status", &object["status"], |status, errors| {
            let list = status.at("conditions");
            conditions(&list, errors);
            if list.len() > MOST_CONDITIONS {
                errors.push(list.too_many(MOST_CONDITIONS));
            }
        })
    }
}

fn spec_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let keeps_effect = old.is_some_and(|old| text_at(old, EFFECT) == text_at(object, EFFECT));
    field::validate("spec", &object["spec"], |spec, errors| {
        selector(&spec.at("deviceSelector"), errors);
        taint(&spec.at("taint"), keeps_effect, errors);
    })
}

/// Validates the selector of devices. Each part may be absent, but not empty.
fn selector(selector: &Field<'_>, errors: &mut Errors) {
    let (driver, pool, device) = (selector.at("driver"), selector.at("pool"), selector.at("device"));
    if driver.is_set() {
        driver_name(&driver, errors);
    }
    if pool.is_set() {
        names::pool(&pool, errors);
    }
    if device.is_set() {
        device.check(dns_1123_label, errors);
    }
}
