//! Configurations of devices, which drivers interpret.

use super::names::declared_driver;
use crate::field::{Errors, Field};

/// The largest number of configurations of a class or a claim.
pub(super) const MOST_CONFIGURATIONS: usize = 32;
/// The largest size of the data of a driver, in bytes.
const LONGEST_DATA: usize = 10 * 1024;

/// Validates a configuration. The size of a stored configuration is not checked.
pub(super) fn configuration(configuration: &Field<'_>, is_stored: bool, errors: &mut Errors) {
    let opaque = configuration.at("opaque");
    if !opaque.is_set() {
        errors.push(opaque.required(""));
        return;
    }
    errors.declared(|errors| declared_driver(&opaque.at("driver"), errors));
    data(&opaque.at("parameters"), is_stored, errors);
}

/// Validates data of a driver: a JSON object.
pub(super) fn data(data: &Field<'_>, is_stored: bool, errors: &mut Errors) {
    if !data.is_set() {
        errors.push(data.required(""));
    } else if !is_stored && data.value().to_string().len() > LONGEST_DATA {
        errors.push(data.too_long(LONGEST_DATA));
    } else if data.map().is_none() {
        errors.push(data.invalid_as("<value omitted>", "must be a valid JSON object"));
    }
}
