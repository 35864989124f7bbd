//! Kinds that keep pods running: deployments, replica sets, stateful sets, daemon sets.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::checks::{validate_annotations, validate_labels};
use super::fields::{
    default, default_text, entry_mut, int_at, items_mut, list_at, map_at, spec_mut, text, text_at,
};
use super::pod::{default_claim_spec, default_spec, validate_spec};
use super::{Facts, Generic, Strategy, StrategyContext};
use crate::meta;
use crate::wire::{ApiError, LabelSelector, names};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "deployments" => &Deployments,
        "replicasets" => &ReplicaSets,
        "replicationcontrollers" => &ReplicationControllers,
        "statefulsets" => &StatefulSets,
        "daemonsets" => &DaemonSets,
        _ => &Generic,
    }
}

const REPLICATION_CONTROLLERS: Facts =
    Facts { selectable: &[("status.replicas", "/status/replicas")], ..Facts::SPEC };

/// Completes the pod template in a spec.
pub(super) fn default_template(spec: &mut Map<String, Value>) {
    if let Some(template) = entry_mut(spec, "template") {
        let pod = template.entry("spec").or_insert_with(|| json!({}));
        if let Some(pod) = pod.as_object_mut() {
            default_spec(pod);
        }
    }
}

/// What is wrong with a selector that must choose the template's pods.
fn validate_selector(spec: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let Some(selector) = spec.get("selector") else {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    };
    let found = validate_label_selector(selector, "spec.selector");
    let broken = !found.is_empty();
    errors.extend(found);
    let empty = selector.as_object().is_some_and(Map::is_empty);
    if empty && !kind.is_empty() {
        errors.push(FieldError::invalid(
            "spec.selector",
            json!({}),
            format!("empty selector is invalid for {kind}"),
        ));
    }
    if broken {
        errors.push(FieldError::invalid("spec.selector", selector.clone(), "invalid label selector"));
    }
}

/// What is wrong with a label selector of an object.
pub(super) fn validate_label_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(labels) = map_at(selector, "/matchLabels") {
        errors.extend(validate_labels(labels, &format!("{path}.matchLabels")));
    }
    for (index, expression) in list_at(selector, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let operator = text(expression, "operator");
        let values = list_at(expression, "/values");
        match operator {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = text(expression, "key");
        let complaints = names::label_key(key);
        errors
            .extend(complaints.into_iter().map(|text| FieldError::invalid(format!("{path}.key"), key, text)));
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let field = format!("{path}.values[{index}]");
            let complaints = names::label_value(value);
            errors
                .extend(complaints.into_iter().map(|text| FieldError::invalid(field.as_str(), value, text)));
        }
    }
    errors
}

/// What is wrong with the template of a workload whose pods are always restarted.
fn validate_template(spec: &Value, errors: &mut Vec<FieldError>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let labels = map_at(template, "/metadata/labels");
    if let Some(selector) = spec.get("selector")
        && !selector.as_object().is_some_and(Map::is_empty)
        && validate_label_selector(selector, "").is_empty()
        && LabelSelector::from_object(selector).matches(labels)
    {
        // It fits.
    } else if spec.get("selector").is_none_or(|selector| {
        !selector.as_object().is_some_and(Map::is_empty) && validate_label_selector(selector, "").is_empty()
    }) {
        let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
    }
    errors.extend(validate_template_of(spec, "spec.template"));
    let policy = text_at(template, "/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" && ["OnFailure", "Never"].contains(&policy) {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
}

/// What is wrong with a template, whatever holds it.
pub(super) fn validate_template_of(spec: &Value, path: &str) -> Vec<FieldError> {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    if let Some(labels) = map_at(template, "/metadata/labels") {
        errors.extend(validate_labels(labels, &format!("{path}.labels")));
    }
    if let Some(annotations) = map_at(template, "/metadata/annotations") {
        errors.extend(validate_annotations(annotations, &format!("{path}.annotations")));
    }
    errors.extend(validate_spec(template.get("spec").unwrap_or(&Value::Null), &format!("{path}.spec")));
    errors
}

/// Numbers that must not be negative.
pub(super) fn validate_not_negative(spec: &Value, fields: &[&str], errors: &mut Vec<FieldError>) {
    for field in fields {
        let value = int_at(spec, &format!("/{field}")).unwrap_or_default();
        if value < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("spec.{field}"), value, detail));
        }
    }
}

/// A field that must stay as it was.
pub(super) fn validate_immutable(object: &Value, old: &Value, pointer: &str, errors: &mut Vec<FieldError>) {
    let (new, before) = (object.pointer(pointer), old.pointer(pointer));
    if new != before {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        errors.push(FieldError::invalid(field, new.cloned().unwrap_or(Value::Null), "field is immutable"));
    }
}

struct Deployments;

impl Deployments {
    fn complete(object: &mut Value) {
        let spec = spec_mut(object);
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default(spec, "progressDeadlineSeconds", 600);
        default(spec, "strategy", json!({}));
        if let Some(strategy) = entry_mut(spec, "strategy") {
            default_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default(strategy, "rollingUpdate", json!({}));
                if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
                    default(rolling, "maxUnavailable", "25%");
                    default(rolling, "maxSurge", "25%");
                }
            }
        }
        default_template(spec);
    }

    fn validate(object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["replicas"], &mut errors);
        validate_selector(spec, "deployment", &mut errors);
        validate_template(spec, &mut errors);
        validate_rollout(spec, &mut errors);
        validate_not_negative(spec, &["minReadySeconds", "revisionHistoryLimit"], &mut errors);
        let deadline = int_at(spec, "/progressDeadlineSeconds");
        if let Some(deadline) = deadline.filter(|deadline| *deadline < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
        }
        let ready = int_at(spec, "/minReadySeconds").unwrap_or_default();
        if let Some(deadline) = deadline.filter(|deadline| ready >= 0 && *deadline <= ready) {
            let detail = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
        }
        errors
    }
}

/// A strategy of an unknown type, as the real server shows it.
fn show_strategy(kind: &str) -> String {
    format!("{{\"Type\":{},\"RollingUpdate\":null}}", windlass_schema::go_quote(kind))
}

fn validate_rollout(spec: &Value, errors: &mut Vec<FieldError>) {
    let kind = text_at(spec, "/strategy/type");
    let path = "spec.strategy.rollingUpdate";
    match kind {
        "Recreate" => {
            if spec.pointer("/strategy/rollingUpdate").is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        "RollingUpdate" => {
            let value = |field: &str| spec.pointer(&format!("/strategy/rollingUpdate/{field}"));
            for field in ["maxUnavailable", "maxSurge"] {
                errors.extend(
                    value(field).and_then(|value| validate_int_or_percent(value, &format!("{path}.{field}"))),
                );
            }
            let is_zero = |field: &str| value(field).is_some_and(|value| *value == 0 || *value == "0%");
            let shown = value("maxUnavailable").cloned().unwrap_or(Value::Null);
            if is_zero("maxUnavailable") && is_zero("maxSurge") {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(format!("{path}.maxUnavailable"), shown, detail));
            } else if percent(&shown).is_some_and(|percent| percent > 100) {
                let detail = "must not be greater than 100%";
                errors.push(FieldError::invalid(format!("{path}.maxUnavailable"), shown, detail));
            }
        }
        other => {
            let known = ["Recreate", "RollingUpdate"];
            errors.push(
                FieldError::not_supported("spec.strategy", other, &known).showing(show_strategy(other)),
            );
        }
    }
}

/// The number before the `%`.
fn percent(value: &Value) -> Option<u64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let fits = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    fits.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// A whole number, or a percentage.
pub(super) fn validate_int_or_percent(value: &Value, field: &str) -> Option<FieldError> {
    match value {
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            Some(FieldError::invalid(field, value.clone(), "must be greater than or equal to 0"))
        }
        Value::String(text) if percent(value).is_none() => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            Some(FieldError::invalid(field, text.as_str(), detail))
        }
        _ => None,
    }
}

impl Strategy for Deployments {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        Self::complete(object);
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        Self::complete(object);
        Ok(())
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        // Annotations count too: they are copied to replica sets.
        object.get("spec") != old.get("spec")
            || object.pointer("/metadata/annotations") != old.pointer("/metadata/annotations")
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        Self::validate(object)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return Vec::new();
        }
        let mut errors = Self::validate(object);
        validate_immutable(object, old, "/spec/selector", &mut errors);
        errors
    }
}

struct ReplicaSets;

impl ReplicaSets {
    fn validate(object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["replicas", "minReadySeconds"], &mut errors);
        validate_selector(spec, "", &mut errors);
        if spec.get("selector").and_then(Value::as_object).is_some_and(Map::is_empty) {
            errors.push(FieldError::invalid(
                "spec.selector",
                json!({}),
                "empty selector is invalid for deployment",
            ));
        }
        validate_template(spec, &mut errors);
        errors
    }
}

fn complete_replicas(object: &mut Value) {
    let spec = spec_mut(object);
    default(spec, "replicas", 1);
    default_template(spec);
}

impl Strategy for ReplicaSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        complete_replicas(object);
        object["status"] = json!({"replicas": 0});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        complete_replicas(object);
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        Self::validate(object)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return Vec::new();
        }
        let mut errors = Self::validate(object);
        validate_immutable(object, old, "/spec/selector", &mut errors);
        errors
    }
}

struct ReplicationControllers;

impl Strategy for ReplicationControllers {
    fn facts(&self) -> &'static Facts {
        &REPLICATION_CONTROLLERS
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let labels = map_at(object, "/spec/template/metadata/labels").cloned();
        if let Some(labels) = labels {
            default(spec_mut(object), "selector", Value::Object(labels.clone()));
            default(meta::metadata_mut(object), "labels", Value::Object(labels));
        }
        complete_replicas(object);
        object["status"] = json!({"replicas": 0});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        complete_replicas(object);
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["minReadySeconds", "replicas"], &mut errors);
        match map_at(spec, "/selector").filter(|selector| !selector.is_empty()) {
            None => errors.push(FieldError::required("spec.selector", "")),
            Some(selector) => {
                let labels = map_at(spec, "/template/metadata/labels");
                if !LabelSelector::from_map(selector).matches(labels) {
                    let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
                    let detail = "`selector` does not match template `labels`";
                    errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
                }
            }
        }
        if spec.get("template").is_none() {
            errors.push(FieldError::required("spec.template", ""));
        } else {
            errors.extend(validate_template_of(spec, "spec.template"));
        }
        errors
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, _old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" { Vec::new() } else { self.validate_create(cx, object) }
    }
}

struct StatefulSets;

impl StatefulSets {
    fn complete(object: &mut Value) {
        let spec = spec_mut(object);
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default_text(spec, "podManagementPolicy", "OrderedReady");
        default(spec, "updateStrategy", json!({}));
        if let Some(strategy) = entry_mut(spec, "updateStrategy") {
            default_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default(strategy, "rollingUpdate", json!({}));
                if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
                    default(rolling, "partition", 0);
                }
            }
        }
        default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
        if let Some(policy) = entry_mut(spec, "persistentVolumeClaimRetentionPolicy") {
            default_text(policy, "whenDeleted", "Retain");
            default_text(policy, "whenScaled", "Retain");
        }
        for claim in items_mut(spec, "volumeClaimTemplates") {
            claim.insert("apiVersion".to_owned(), "v1".into());
            claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
            if let Some(spec) = entry_mut(claim, "spec") {
                default_claim_spec(spec);
            }
            claim.insert("status".to_owned(), json!({"phase": "Pending"}));
        }
        default_template(spec);
    }

    fn validate(object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let management = text(spec, "podManagementPolicy");
        if !["OrderedReady", "Parallel"].contains(&management) {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid("spec.podManagementPolicy", management, detail));
        }
        let update = text_at(spec, "/updateStrategy/type");
        if !["RollingUpdate", "OnDelete"].contains(&update) {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let error = FieldError::invalid("spec.updateStrategy", update, detail);
            errors.push(error.showing(show_strategy(update)));
        }
        validate_not_negative(spec, &["replicas", "minReadySeconds"], &mut errors);
        validate_selector(spec, "statefulset", &mut errors);
        validate_template(spec, &mut errors);
        errors
    }
}

const STATEFUL_SET_FORBIDDEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

impl Strategy for StatefulSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        Self::complete(object);
        object["status"] = json!({"replicas": 0, "availableReplicas": 0});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        Self::complete(object);
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        Self::validate(object)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return Vec::new();
        }
        let mut errors = Self::validate(object);
        let fixed = |object: &Value| {
            let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
            for field in [
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            ] {
                spec.remove(field);
            }
            spec
        };
        if fixed(object) != fixed(old) {
            errors.push(FieldError::forbidden("spec", STATEFUL_SET_FORBIDDEN));
        }
        errors
    }
}

struct DaemonSets;

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

impl DaemonSets {
    fn complete(object: &mut Value) {
        let spec = spec_mut(object);
        default(spec, "revisionHistoryLimit", 10);
        default(spec, "updateStrategy", json!({}));
        if let Some(strategy) = entry_mut(spec, "updateStrategy") {
            default_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default(strategy, "rollingUpdate", json!({}));
                if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
                    default(rolling, "maxUnavailable", 1);
                    default(rolling, "maxSurge", 0);
                }
            }
        }
        default_template(spec);
    }

    fn annotate(object: &mut Value, generation: i64) {
        let metadata = meta::metadata_mut(object);
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
        }
    }

    fn validate(object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_selector(spec, "daemonset", &mut errors);
        validate_template(spec, &mut errors);
        validate_not_negative(spec, &["minReadySeconds"], &mut errors);
        let kind = text_at(spec, "/updateStrategy/type");
        let known = ["RollingUpdate", "OnDelete"];
        if !known.contains(&kind) {
            let error = FieldError::not_supported("spec.updateStrategy", kind, &known);
            errors.push(error.showing(show_strategy(kind)));
        }
        validate_not_negative(spec, &["revisionHistoryLimit"], &mut errors);
        errors
    }
}

impl Strategy for DaemonSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        Self::complete(object);
        Self::annotate(object, 1);
        object["status"] = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        });
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        Self::complete(object);
        if cx.subresource.is_empty() {
            let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
            let before = text_at(old, &pointer).parse::<i64>().unwrap_or(1);
            let changed = object.pointer("/spec/template") != old.pointer("/spec/template");
            Self::annotate(object, before + i64::from(changed));
        }
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        Self::validate(object)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return Vec::new();
        }
        let mut errors = Self::validate(object);
        validate_immutable(object, old, "/spec/selector", &mut errors);
        errors
    }
}
