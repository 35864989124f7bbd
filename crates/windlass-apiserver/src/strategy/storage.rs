//! Storage classes, volume attributes classes, and what CSI drivers publish.

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::{enumerated, immutable};
use super::fields::text;
use super::{Facts, FactsOnly, Strategy, StrategyContext, Writes};
use crate::meta;
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "storageclasses" => &StorageClasses,
        "volumeattachments" => &FactsOnly(&ATTACHMENTS),
        "csidrivers" | "csinodes" => &FactsOnly(&DRIVERS),
        "volumeattributesclasses" => &AttributesClasses,
        "csistoragecapacities" => &FactsOnly(&CAPACITIES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const CLASSES: Facts = Facts {
    returns_deleted_object: true,
    unenforced: Some("no volumes are provisioned or changed, because there are no storage controllers"),
    ..Facts::DATA
};
const DRIVERS: Facts = Facts {
    unconditional_update: false,
    returns_deleted_object: true,
    unenforced: Some("no volumes are attached or mounted, because there are no storage controllers"),
    ..Facts::DATA
};
const ATTACHMENTS: Facts = Facts { writes: Writes::STATUS_ONLY, ..DRIVERS };
const CAPACITIES: Facts = Facts {
    unconditional_update: false,
    unenforced: Some("the scheduler does not look at the capacity of storage"),
    ..Facts::DATA
};

struct AttributesClasses;

impl Strategy for AttributesClasses {
    fn facts(&self) -> &'static Facts {
        &CLASSES
    }

    fn admit(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_none() {
            meta::add_finalizer(object, "kubernetes.io/vac-protection");
        }
        Ok(())
    }
}

struct StorageClasses;

impl Strategy for StorageClasses {
    fn facts(&self) -> &'static Facts {
        &CLASSES
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
