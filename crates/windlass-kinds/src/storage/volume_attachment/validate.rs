//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Attachments;
use crate::checks::declared_immutable;
use crate::core::persistent_volume;
use crate::field::{self, Errors, Field};
use crate::kind::Validate;

/// The longest name of a driver, in characters.
const LONGEST_DRIVER: usize = 63;
/// The largest size of the metadata of an attached volume, in bytes.
const LARGEST_METADATA: usize = 256 << 10;
/// The longest message of an error, in bytes.
const LONGEST_MESSAGE: usize = 1024;
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

impl Validate for Attachments {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |attachment, errors| {
            let spec = attachment.at("spec");
            attacher(&spec.at("attacher"), errors);
            source(&spec.at("source"), errors);
            spec.at("nodeName").check(names::dns_1123_subdomain, errors);
            status(&attachment.at("status"), errors);
            let volume = spec.at_path("source/persistentVolumeName");
            if volume.is_set() {
                volume.check(names::dns_1123_subdomain, errors);
            }
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        declared_immutable(object, old, "/spec")
    }

    fn validate_status(&self, object: &Value, _: &Value) -> Vec<FieldError> {
        self.validate(object)
    }
}

/// Validates the name of the driver. The errors are those of a declaration, unlike the errors of other kinds.
fn attacher(name: &Field<'_>, errors: &mut Errors) {
    if name.require(errors) {
        return;
    }
    name.check(names::dns_1123_subdomain_caseless, errors);
    if name.text().chars().count() > LONGEST_DRIVER {
        errors.push(FieldError::too_long_characters(name.path(), LONGEST_DRIVER));
    }
}

fn source(source: &Field<'_>, errors: &mut Errors) {
    let (volume, inline) = (source.at("persistentVolumeName"), source.at("inlineVolumeSpec"));
    match (volume.is_set(), inline.is_set()) {
        (false, false) => errors.push(source.required(ONE_SOURCE)),
        (true, true) => errors.push(source.forbidden(ONE_SOURCE)),
        (true, false) if volume.text().is_empty() => {
            errors.push(volume.required("must specify non empty persistentVolumeName"));
        }
        (true, false) => {}
        (false, true) => persistent_volume::validate_inline(&inline, errors),
    }
}

fn status(status: &Field<'_>, errors: &mut Errors) {
    let metadata = status.at("attachmentMetadata");
    let size: usize = metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if size > LARGEST_METADATA {
        errors.push(metadata.too_long(LARGEST_METADATA));
    }
    for error in [status.at("attachError"), status.at("detachError")] {
        let (message, code) = (error.at("message"), error.at("errorCode"));
        if message.text().len() > LONGEST_MESSAGE {
            errors.push(message.too_long(LONGEST_MESSAGE));
        }
        code.within(0, i64::from(i32::MAX), errors);
    }
}
