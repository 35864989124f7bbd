//! Persistent volumes and claims to them.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::pod::{default_claim_spec, default_volume_source};
use crate::env;
use crate::meta;
use crate::strategy::checks::enumerated;
use crate::strategy::fields::{
    canonical_quantities, default, default_text, list_at, map_at, object_mut, spec_mut, text, text_at,
};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

const RETURNED: Facts = Facts { returns_deleted_object: true, ..Facts::DATA };

pub(super) struct Volumes;

fn complete_volume(object: &mut Value) {
    let spec = spec_mut(object);
    default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    default(spec, "volumeMode", "Filesystem");
    canonical_quantities(spec, "capacity");
    default_volume_source(spec);
}

impl Strategy for Volumes {
    fn facts(&self) -> &'static Facts {
        &RETURNED
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        complete_volume(object);
        if cx.subresource == "status" && text_at(object, "/status/phase") != text_at(old, "/status/phase") {
            let now = env::rfc3339(cx.env.now());
            meta::entry_object(object, "status").insert("lastPhaseTransitionTime".to_owned(), now.into());
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        if list_at(spec, "/accessModes").is_empty() {
            errors.push(FieldError::required("spec.accessModes", ""));
        }
        let capacity = map_at(spec, "/capacity").filter(|capacity| !capacity.is_empty());
        if capacity.is_none() {
            errors.push(FieldError::required("spec.capacity", ""));
        }
        if !capacity.is_some_and(|capacity| capacity.contains_key("storage") && capacity.len() == 1) {
            let shown = spec.get("capacity").cloned().unwrap_or(Value::Null);
            errors.push(FieldError::not_supported("spec.capacity", shown, &["storage"]));
        }
        let known = ["Delete", "Recycle", "Retain"];
        let policy = text(spec, "persistentVolumeReclaimPolicy");
        errors.extend(enumerated("spec.persistentVolumeReclaimPolicy", policy, &known));
        if !VOLUME_SOURCES.iter().any(|source| spec.get(*source).is_some()) {
            errors.push(FieldError::required("spec", "must specify a volume type"));
        }
        errors
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        complete_volume(object);
        meta::add_finalizer(object, "kubernetes.io/pv-protection");
        let now = cx.env.now_rfc3339();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        Ok(())
    }
}

const VOLUME_SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

pub(super) struct Claims;

impl Strategy for Claims {
    fn facts(&self) -> &'static Facts {
        &RETURNED
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        default_claim_spec(spec_mut(object));
        meta::add_finalizer(object, "kubernetes.io/pvc-protection");
        object["status"] = json!({"phase": "Pending"});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        default_claim_spec(spec_mut(object));
        if let Some(status) = object_mut(object, "status") {
            canonical_quantities(status, "capacity");
        }
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        if list_at(spec, "/accessModes").is_empty() {
            errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
        }
        if spec.pointer("/resources/requests/storage").is_none() {
            errors.push(FieldError::required("spec.resources[storage]", ""));
        }
        errors
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return Vec::new();
        }
        let bound = text_at(old, "/status/phase") == "Bound";
        let fixed = |object: &Value| {
            let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
            if bound {
                spec.remove("resources");
                spec.remove("volumeAttributesClassName");
            }
            spec
        };
        let (mut new, before) = (fixed(object), fixed(old));
        // A claim is bound by writing the volume's name into it, once.
        if text_at(old, "/spec/volumeName").is_empty() {
            new.remove("volumeName");
        }
        if new == before {
            return Vec::new();
        }
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        vec![FieldError::forbidden("spec", detail)]
    }
}
