//! Who may do what, which pods come first, and how many there are.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::checks::enumerated;
use super::fields::{default, default_text, int_at, items_mut, list_at, spec_mut, text, text_at};
use super::{Facts, Generation, Plain, Strategy, StrategyContext};
use crate::wire::names;

const RBAC: &str = "rbac.authorization.k8s.io";
const LARGEST_USER_PRIORITY: i64 = 1_000_000_000;

pub(super) fn of(group: &str, resource: &str) -> &'static dyn Strategy {
    match (group, resource) {
        (RBAC, "roles") => &Roles { cluster: false },
        (RBAC, "clusterroles") => &Roles { cluster: true },
        (RBAC, "rolebindings" | "clusterrolebindings") => &Bindings,
        ("policy", "poddisruptionbudgets") => &DisruptionBudgets,
        ("autoscaling", "horizontalpodautoscalers") => &Autoscalers,
        ("scheduling.k8s.io", "priorityclasses") => &PriorityClasses,
        _ => &Plain(&Facts::SPEC),
    }
}

const ROLES: Facts = Facts { name: names::path_segment_name, create_on_update: true, ..Facts::DATA };
const BUDGETS: Facts = Facts { unconditional_update: false, ..Facts::SPEC };
const CLASSES: Facts = Facts { generation: Generation::All, ..Facts::SPEC };

struct Roles {
    cluster: bool,
}

impl Strategy for Roles {
    fn facts(&self) -> &'static Facts {
        &ROLES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, rule) in list_at(object, "/rules").iter().enumerate() {
            let path = format!("rules[{index}]");
            let given = |field: &str| !list_at(rule, &format!("/{field}")).is_empty();
            if !given("verbs") {
                errors.push(FieldError::required(
                    format!("{path}.verbs"),
                    "verbs must contain at least one value",
                ));
            }
            if given("nonResourceURLs") {
                let urls = rule.get("nonResourceURLs").cloned().unwrap_or(Value::Null);
                let field = format!("{path}.nonResourceURLs");
                if !self.cluster {
                    let detail = "namespaced rules cannot apply to non-resource URLs";
                    errors.push(FieldError::invalid(field.as_str(), urls.clone(), detail));
                }
                if given("apiGroups") || given("resources") || given("resourceNames") {
                    let detail = "rules cannot apply to both regular resources and non-resource URLs";
                    errors.push(FieldError::invalid(field, urls, detail));
                }
                continue;
            }
            if !given("apiGroups") {
                let detail = "resource rules must supply at least one api group";
                errors.push(FieldError::required(format!("{path}.apiGroups"), detail));
            }
            if !given("resources") {
                let detail = "resource rules must supply at least one resource";
                errors.push(FieldError::required(format!("{path}.resources"), detail));
            }
        }
        errors
    }
}

struct Bindings;

fn complete_binding(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(role) = fields.get_mut("roleRef").and_then(Value::as_object_mut) {
        default_text(role, "apiGroup", RBAC);
    }
    for subject in items_mut(fields, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            default_text(subject, "apiGroup", RBAC);
        }
    }
}

impl Strategy for Bindings {
    fn facts(&self) -> &'static Facts {
        &ROLES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let group = text_at(object, "/roleRef/apiGroup");
        errors.extend((group != RBAC).then(|| FieldError::not_supported("roleRef.apiGroup", group, &[RBAC])));
        let namespaced = !text_at(object, "/metadata/namespace").is_empty();
        let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        let kind = text_at(object, "/roleRef/kind");
        errors
            .extend((!kinds.contains(&kind)).then(|| FieldError::not_supported("roleRef.kind", kind, kinds)));
        let name = text_at(object, "/roleRef/name");
        if name.is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        } else {
            let complaints = names::path_segment_name(name, false);
            errors.extend(complaints.into_iter().map(|text| FieldError::invalid("roleRef.name", name, text)));
        }
        for (index, subject) in list_at(object, "/subjects").iter().enumerate() {
            validate_subject(subject, namespaced, &format!("subjects[{index}]"), &mut errors);
        }
        errors
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        complete_binding(object);
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        if object.get("roleRef") == old.get("roleRef") {
            return Vec::new();
        }
        let role = &object["roleRef"];
        let quoted = |field: &str| windlass_schema::go_quote(text(role, field));
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            quoted("apiGroup"),
            quoted("kind"),
            quoted("name")
        );
        vec![FieldError::invalid("roleRef", role.clone(), "cannot change roleRef").showing(shown)]
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &str, errors: &mut Vec<FieldError>) {
    let (kind, name) = (text(subject, "kind"), text(subject, "name"));
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let group = text(subject, "apiGroup");
    let wanted = match kind {
        "ServiceAccount" => "",
        "User" | "Group" => RBAC,
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(format!("{path}.kind"), other, &known));
            return;
        }
    };
    if kind == "ServiceAccount" {
        if !name.is_empty() {
            let complaints = names::dns_1123_subdomain(name);
            let field = format!("{path}.name");
            errors.extend(complaints.into_iter().map(|text| FieldError::invalid(field.as_str(), name, text)));
        }
        if !namespaced && text(subject, "namespace").is_empty() {
            errors.push(FieldError::required(format!("{path}.namespace"), ""));
        }
    }
    if group != wanted {
        errors.push(FieldError::not_supported(format!("{path}.apiGroup"), group, &[wanted]));
    }
}

struct DisruptionBudgets;

impl Strategy for DisruptionBudgets {
    fn facts(&self) -> &'static Facts {
        &BUDGETS
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let bounds = [spec.get("minAvailable"), spec.get("maxUnavailable")];
        if let [Some(least), Some(most)] = bounds {
            let json = |value: Option<&Value>| windlass_schema::go_json(value.unwrap_or(&Value::Null));
            let shown = format!(
                "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
                json(Some(least)),
                json(spec.get("selector")),
                json(Some(most)),
                json(spec.get("unhealthyPodEvictionPolicy"))
            );
            let detail = "minAvailable and maxUnavailable cannot be both set";
            errors.push(FieldError::invalid("spec", spec.clone(), detail).showing(shown));
        }
        for field in ["minAvailable", "maxUnavailable"] {
            let value = spec.get(field);
            let path = format!("spec.{field}");
            errors.extend(value.and_then(|value| super::workload::validate_int_or_percent(value, &path)));
        }
        errors
    }

    fn new_status(&self, _cx: &StrategyContext<'_>) -> Option<Value> {
        Some(json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}))
    }
}

struct Autoscalers;

fn complete_autoscaler(spec: &mut Map<String, Value>, version: &str) {
    default(spec, "minReplicas", 1);
    if version == "v1" {
        default(spec, "targetCPUUtilizationPercentage", 80);
    }
    if version == "v2" && spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
        );
    }
}

/// Annotations in which `autoscaling/v1` keeps what it has no fields for.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

fn is_cpu_utilization(metric: &Value) -> bool {
    text_at(metric, "/resource/name") == "cpu"
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

/// `autoscaling/v1` knows the utilization of the CPU only; the rest is kept as JSON of `v2` in annotations.
fn autoscaler_to_v1(object: &mut Value) {
    let mut kept = Vec::new();
    if let Some(spec) = super::fields::object_mut(object, "spec") {
        let metrics =
            spec.remove("metrics").and_then(|metrics| metrics.as_array().cloned()).unwrap_or_default();
        let (cpu, others): (Vec<_>, Vec<_>) = metrics.into_iter().partition(is_cpu_utilization);
        if let Some(percent) =
            cpu.first().and_then(|metric| metric.pointer("/resource/target/averageUtilization"))
        {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
        }
        if !others.is_empty() {
            kept.push((METRICS, Value::Array(others)));
        }
        kept.extend(spec.remove("behavior").map(|behavior| (BEHAVIOR, behavior)));
    }
    if let Some(status) = super::fields::object_mut(object, "status") {
        if let Some(current) = status.remove("currentMetrics").filter(|current| !current.is_null()) {
            let percent = |metric: &&Value| text_at(metric, "/resource/name") == "cpu";
            let cpu = current.as_array().into_iter().flatten().find(percent);
            if let Some(percent) =
                cpu.and_then(|metric| metric.pointer("/resource/current/averageUtilization"))
            {
                status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
            }
            kept.push((CURRENT_METRICS, current));
        }
        kept.extend(status.remove("conditions").map(|conditions| (CONDITIONS, conditions)));
        default(status, "currentReplicas", 0);
    }
    let metadata = crate::meta::metadata_mut(object);
    for (annotation, value) in kept {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(annotation.to_owned(), value.to_string().into());
        }
    }
}

fn autoscaler_to_v2(object: &mut Value) {
    let mut take = |annotation: &str| {
        let annotations = object.pointer_mut("/metadata/annotations")?.as_object_mut()?;
        let text = annotations.remove(annotation)?;
        serde_json::from_str::<Value>(text.as_str()?).ok()
    };
    let (metrics, current) = (take(METRICS), take(CURRENT_METRICS));
    let (conditions, behavior) = (take(CONDITIONS), take(BEHAVIOR));
    if let Some(spec) = super::fields::object_mut(object, "spec") {
        let mut all = metrics.and_then(|metrics| metrics.as_array().cloned()).unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            all.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        spec.insert("metrics".to_owned(), all.into());
        if let Some(behavior) = behavior {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = super::fields::object_mut(object, "status") {
        let percent = status.remove("currentCPUUtilizationPercentage");
        let current = current.or_else(|| {
            let shown = json!({"averageUtilization": percent?, "averageValue": "0"});
            Some(json!([{"type": "Resource", "resource": {"name": "cpu", "current": shown}}]))
        });
        status.insert("currentMetrics".to_owned(), current.unwrap_or(Value::Null));
        if let Some(conditions) = conditions {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

impl Strategy for Autoscalers {
    fn facts(&self) -> &'static Facts {
        &Facts::DATA
    }

    fn convert(&self, object: &mut Value, version: &str) {
        match version {
            "v1" => autoscaler_to_v1(object),
            _ => autoscaler_to_v2(object),
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let least = int_at(spec, "/minReplicas").unwrap_or(1);
        let most = int_at(spec, "/maxReplicas").unwrap_or_default();
        if least < 1 {
            let detail = "must be greater than or equal to 1";
            errors.push(FieldError::invalid("spec.minReplicas", least, detail));
        }
        if most < 1 {
            errors.push(FieldError::required("spec.maxReplicas", "must be set and greater than 0"));
        } else if most < least {
            let detail = "must be greater than or equal to `minReplicas`";
            errors.push(FieldError::invalid("spec.maxReplicas", most, detail));
        }
        for field in ["kind", "name"] {
            if text_at(spec, &format!("/scaleTargetRef/{field}")).is_empty() {
                errors.push(FieldError::required(format!("spec.scaleTargetRef.{field}"), ""));
            }
        }
        let version = text_at(spec, "/scaleTargetRef/apiVersion");
        if version.is_empty() {
            let detail = "apiVersion must specify API group";
            errors.push(FieldError::invalid("spec.scaleTargetRef.apiVersion", version, detail));
        }
        let scales_to_zero = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
        if least == 0 && !list_at(spec, "/metrics").iter().any(scales_to_zero) {
            let detail =
                "must specify at least one Object or External metric to support scaling to zero replicas";
            errors.push(FieldError::forbidden("spec.metrics", detail));
        }
        errors
    }

    fn complete(&self, cx: &StrategyContext<'_>, object: &mut Value) {
        complete_autoscaler(spec_mut(object), cx.version);
    }

    fn new_status(&self, cx: &StrategyContext<'_>) -> Option<Value> {
        Some(match cx.version {
            "v1" => json!({"desiredReplicas": 0, "currentReplicas": 0}),
            _ => json!({"desiredReplicas": 0, "currentMetrics": null}),
        })
    }
}

struct PriorityClasses;

/// The classes that the server itself makes.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

impl Strategy for PriorityClasses {
    fn facts(&self) -> &'static Facts {
        &CLASSES
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let name = text_at(object, "/metadata/name");
        let value = int_at(object, "/value").unwrap_or_default();
        if name.starts_with("system-") {
            if !SYSTEM_CLASSES.contains(&(name, value)) {
                let detail = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
                );
                errors.push(FieldError::forbidden("metadata.name", detail));
            }
        } else if value > LARGEST_USER_PRIORITY {
            let detail =
                format!("maximum allowed value of a user defined priority is {LARGEST_USER_PRIORITY}");
            errors.push(FieldError::forbidden("value", detail));
        }
        let known = ["PreemptLowerPriority", "Never"];
        errors.extend(enumerated("preemptionPolicy", text(object, "preemptionPolicy"), &known));
        errors
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let value = |object: &Value| int_at(object, "/value").unwrap_or_default();
        if value(object) != value(old) {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        if object.get("preemptionPolicy") != old.get("preemptionPolicy") {
            let shown = object.get("preemptionPolicy").cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid("preemptionPolicy", shown, "field is immutable"));
        }
        errors
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        if let Some(fields) = object.as_object_mut() {
            default(fields, "preemptionPolicy", "PreemptLowerPriority");
        }
    }
}
