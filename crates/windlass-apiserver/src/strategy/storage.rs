//! Storage classes, volume attributes classes, and what CSI drivers publish.

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::{enumerated, immutable};
use super::fields::{default, text};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::meta;
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "storageclasses" => &StorageClasses,
        "volumeattachments" | "csidrivers" | "csinodes" => &FactsOnly(&VERSIONED),
        "volumeattributesclasses" => &AttributesClasses,
        "csistoragecapacities" => &FactsOnly(&CAPACITIES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const RETURNED: Facts = Facts { returns_deleted_object: true, ..Facts::DATA };
const VERSIONED: Facts = Facts { unconditional_update: false, returns_deleted_object: true, ..Facts::DATA };
const CAPACITIES: Facts = Facts { unconditional_update: false, ..Facts::DATA };

struct AttributesClasses;

impl Strategy for AttributesClasses {
    fn facts(&self) -> &'static Facts {
        &RETURNED
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        meta::add_finalizer(object, "kubernetes.io/vac-protection");
        Ok(())
    }
}

struct StorageClasses;

impl Strategy for StorageClasses {
    fn facts(&self) -> &'static Facts {
        &RETURNED
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if text(object, "provisioner").is_empty() {
            errors.push(FieldError::required("provisioner", ""));
        }
        let known = ["Delete", "Retain"];
        errors.extend(enumerated("reclaimPolicy", text(object, "reclaimPolicy"), &known));
        errors
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        if let Some(fields) = object.as_object_mut() {
            default(fields, "reclaimPolicy", "Delete");
            default(fields, "volumeBindingMode", "Immediate");
        }
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for field in ["parameters", "provisioner", "reclaimPolicy"] {
            if object.get(field) != old.get(field) {
                errors.push(FieldError::forbidden(field, format!("updates to {field} are forbidden.")));
            }
        }
        errors.extend(immutable(object, old, "/volumeBindingMode"));
        errors
    }
}
