//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;

use super::{Claims, admin, rights, spec, status};
use crate::checks::{declared_immutable, immutable};
use crate::field;
use crate::json::list_at;
use crate::kind::{Validate, WriteContext};
use crate::subresource::Subresource;
use crate::volume::claim::validate_template_metadata;

impl Validate for Claims {
    fn validate_create(&self, cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let requests = list_at(object, &format!("{}/devices/requests", self.spec()));
        let path = ("spec.devices.requests", requests);
        let mut errors = admin::errors(cx, object, path, |request| request.get("exactly"));
        errors.extend(self.spec_errors(object));
        errors
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            let mut errors = admin_errors(cx, object, old);
            errors.extend(rights::errors(cx, object, old));
            errors.extend(status::errors(object, old));
            return errors;
        }
        if !self.template {
            return declared_immutable(object, old, "/spec");
        }
        let mut errors = self.spec_errors(object);
        errors.extend(immutable(object, old, "/spec"));
        errors
    }
}

impl Claims {
    fn spec_errors(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |whole, errors| {
            if self.template {
                validate_template_metadata(&whole.at("metadata"), errors);
                spec::validate(&whole.at("spec"), errors);
            } else {
                spec::validate(whole, errors);
            }
        })
    }
}

/// Returns the error about an allocation with the access of administrators, unless the old allocation has the access.
fn admin_errors(cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    let results = |claim| list_at(claim, "/status/allocation/devices/results");
    if results(old).iter().any(|result| admin::asks(Some(result))) {
        return Vec::new();
    }
    admin::errors(cx, object, ("status.allocation.devices.results", results(object)), Some)
}
