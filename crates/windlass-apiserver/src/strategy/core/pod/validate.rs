//! Validation of the spec of a pod or pod template.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use super::container;
use crate::strategy::checks::{enumerated, invalid_names, validate_labels};
use crate::strategy::fields::{int_at, list_at, map_at, text};
use crate::wire::names;

/// Validates the spec of a pod, in the order of kube-apiserver.
pub(crate) fn validate_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes = validate_volumes(spec, &format!("{path}.volumes"), &mut errors);
    container::validate_containers(spec, path, &volumes, &mut errors);
    container::validate_init_containers(spec, path, &volumes, &mut errors);
    let field = |name: &str| format!("{path}.{name}");
    errors.extend(enumerated(
        &field("restartPolicy"),
        text(spec, "restartPolicy"),
        &["Always", "OnFailure", "Never"],
    ));
    errors.extend(enumerated(
        &field("dnsPolicy"),
        text(spec, "dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    ));
    if let Some(labels) = map_at(spec, "/nodeSelector") {
        errors.extend(validate_labels(labels, &field("nodeSelector")));
    }
    let account = text(spec, "serviceAccountName");
    if !account.is_empty() {
        errors.extend(invalid_names(
            &field("serviceAccountName"),
            account,
            names::dns_1123_subdomain(account),
        ));
    }
    let node = text(spec, "nodeName");
    if !node.is_empty() {
        errors.extend(invalid_names(&field("nodeName"), node, names::dns_1123_subdomain(node)));
    }
    if let Some(seconds) = int_at(spec, "/activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(field("activeDeadlineSeconds"), seconds, detail));
    }
    for name in ["hostname", "subdomain"] {
        let value = text(spec, name);
        if !value.is_empty() {
            errors.extend(invalid_names(&field(name), value, names::dns_1123_label(value)));
        }
    }
    validate_tolerations(spec, &field("tolerations"), &mut errors);
    validate_affinity(spec, &field("affinity"), &mut errors);
    validate_spread(spec, &field("topologySpreadConstraints"), &mut errors);
    errors
}

/// Validates volumes and returns the names of the valid ones.
fn validate_volumes<'a>(spec: &'a Value, path: &str, errors: &mut Vec<FieldError>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for (index, volume) in list_at(spec, "/volumes").iter().enumerate() {
        let name = text(volume, "name");
        let field = format!("{path}[{index}].name");
        let before = errors.len();
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else {
            let problems = names::dns_1123_label(name);
            if problems.is_empty() && found.contains(name) {
                errors.push(FieldError::duplicate(field, name));
            }
            errors.extend(invalid_names(&format!("{path}[{index}].name"), name, problems));
        }
        validate_source(volume, text(spec, "serviceAccountName"), &format!("{path}[{index}]"), errors);
        if errors.len() == before {
            found.insert(name);
        }
    }
    found
}

/// The sources of volumes, in the order in which kube-apiserver validates them.
const SOURCES: [&str; 29] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
];

fn validate_source(volume: &Value, account: &str, path: &str, errors: &mut Vec<FieldError>) {
    let mut given = SOURCES.iter().filter(|source| volume.get(**source).is_some());
    let first = given.next();
    for source in given {
        errors.push(FieldError::forbidden(
            format!("{path}.{source}"),
            "may not specify more than 1 volume type",
        ));
    }
    let required = |source: &str, field: &str| {
        let value = volume.get(source)?;
        text(value, field).is_empty().then(|| FieldError::required(format!("{path}.{source}.{field}"), ""))
    };
    match first.copied() {
        Some("configMap") => errors.extend(required("configMap", "name")),
        Some("secret") => errors.extend(required("secret", "secretName")),
        Some("persistentVolumeClaim") => errors.extend(required("persistentVolumeClaim", "claimName")),
        Some("hostPath") => errors.extend(required("hostPath", "path")),
        Some("csi") => errors.extend(required("csi", "driver")),
        Some("projected") if account.is_empty() => {
            for (index, source) in list_at(volume, "/projected/sources").iter().enumerate() {
                if source.get("serviceAccountToken").is_some() {
                    let field = format!("{path}.projected.sources[{index}].serviceAccountToken");
                    let detail = "must not be specified when serviceAccountName is not set";
                    errors.push(FieldError::forbidden(field, detail));
                }
            }
        }
        Some("nfs") => {
            errors.extend(required("nfs", "server"));
            errors.extend(required("nfs", "path"));
        }
        _ => {}
    }
}

fn validate_tolerations(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, toleration) in list_at(spec, "/tolerations").iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        if !key.is_empty() {
            errors.extend(invalid_names(&format!("{path}.key"), key, names::label_key(key)));
        } else if operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(format!("{path}.operator"), operator, detail));
        }
        let seconds = toleration.get("tolerationSeconds");
        let effect = text(toleration, "effect");
        if seconds.is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(format!("{path}.effect"), effect, detail));
        }
        match operator {
            "" | "Equal" => {
                let value = text(toleration, "value");
                errors.extend(invalid_names(&format!("{path}.operator"), value, names::label_value(value)));
            }
            "Exists" => {
                let value = text(toleration, "value");
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(format!("{path}.operator"), value, detail));
                }
            }
            other => {
                errors.push(FieldError::not_supported(
                    format!("{path}.operator"),
                    other,
                    &["Equal", "Exists"],
                ));
            }
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.extend(enumerated(&format!("{path}.effect"), effect, &effects));
    }
}

fn validate_affinity(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let pointer = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(required) = spec.pointer(pointer)
        && list_at(required, "/nodeSelectorTerms").is_empty()
    {
        errors.push(FieldError::required(
            format!("{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"),
            "must have at least one node selector term",
        ));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let list = "requiredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list_at(spec, &format!("/affinity/{kind}/{list}")).iter().enumerate() {
            if text(term, "topologyKey").is_empty() {
                let field = format!("{path}.{kind}.{list}[{index}].topologyKey");
                errors.push(FieldError::required(field, "can not be empty"));
            }
        }
    }
}

fn validate_spread(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, constraint) in list_at(spec, "/topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}[{index}]");
        let skew = int_at(constraint, "/maxSkew").unwrap_or_default();
        if skew <= 0 {
            errors.push(FieldError::invalid(format!("{path}.maxSkew"), skew, "must be greater than zero"));
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.push(FieldError::required(format!("{path}.topologyKey"), "can not be empty"));
        }
        let when = text(constraint, "whenUnsatisfiable");
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        if !known.contains(&when) {
            errors.push(FieldError::not_supported(format!("{path}.whenUnsatisfiable"), when, &known));
        }
    }
}
