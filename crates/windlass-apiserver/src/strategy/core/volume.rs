//! Persistent volumes and claims to them.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use crate::env;
use crate::meta;
use crate::strategy::checks::enumerated;
use crate::strategy::fields::{list_at, map_at, text, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

const FACTS: Facts = Facts {
    returns_deleted_object: true,
    unenforced: Some(
        "no volume is bound to a claim or provisioned, because there are no storage controllers",
    ),
    ..Facts::DATA
};

pub(super) struct Volumes;

impl Strategy for Volumes {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn admit(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_none() {
            meta::add_finalizer(object, "kubernetes.io/pv-protection");
        }
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
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
        errors.extend(validate_exclusive_mode(spec));
        let host_path = text_at(spec, "/hostPath/path");
        if host_path.split('/').any(|part| part == "..") {
            errors.push(FieldError::invalid("spec.hostPath.path", host_path, "must not contain '..'"));
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
        let now = cx.env.now_rfc3339();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        Ok(())
    }
}

/// Checks that `ReadWriteOncePod` is the only access mode if it is one.
fn validate_exclusive_mode(spec: &Value) -> Option<FieldError> {
    let modes = list_at(spec, "/accessModes");
    let (once, others): (Vec<_>, Vec<_>) = modes.iter().partition(|mode| *mode == "ReadWriteOncePod");
    let is_mixed = !once.is_empty() && !others.is_empty();
    let detail = "may not use ReadWriteOncePod with other access modes";
    is_mixed.then(|| FieldError::forbidden("spec.accessModes", detail))
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
        &FACTS
    }

    fn admit(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_none() {
            meta::add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        Ok(())
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"phase": "Pending"});
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        if list_at(spec, "/accessModes").is_empty() {
            errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
        }
        errors.extend(validate_exclusive_mode(spec));
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
        // The binder writes the name of the volume once.
        if text_at(old, "/spec/volumeName").is_empty() {
            new.remove("volumeName");
        }
        // A claim that was made before there was a default class may get one.
        if !before.contains_key("storageClassName") {
            new.remove("storageClassName");
        }
        if new == before {
            return Vec::new();
        }
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        vec![FieldError::forbidden("spec", detail)]
    }
}
