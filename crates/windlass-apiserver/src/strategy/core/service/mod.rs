//! Services.

mod allocate;
mod defaults;
mod validate;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use crate::strategy::facts::not_enforced;
use crate::strategy::fields::{default, int_at, items_mut, list_at, spec_mut, text, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::{ApiError, names};

const FACTS: Facts = Facts {
    name: names::label_name,
    create_on_update: true,
    returns_deleted_object: true,
    selectable: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
    ..Facts::DATA
};

pub(super) struct Services;

impl Strategy for Services {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn default(&self, object: &mut Value) {
        defaults::default_spec(spec_mut(object));
        defaults::default_status(object);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        mirror_address(spec_mut(object), None);
        object["status"] = json!({"loadBalancer": {}});
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        validate::validate(object)
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if cx.subresource == "status" {
            return Ok(());
        }
        let spec = spec_mut(object);
        mirror_address(spec, Some(&old["spec"]));
        keep_allocated(spec, &old["spec"]);
        drop_unused(spec, &old["spec"]);
        Ok(())
    }

    fn allocate(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if !cx.subresource.is_empty() {
            return Ok(());
        }
        set_families(spec_mut(object));
        allocate::allocate(cx, object)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return validate::validate_status(object);
        }
        let mut errors = validate::validate_update(object, old);
        errors.extend(validate::validate(object));
        errors
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !cx.subresource.is_empty() {
            return warnings;
        }
        let external = text_at(object, "/spec/externalName");
        if !external.is_empty() && text_at(object, "/spec/type") != "ExternalName" {
            warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
        }
        let selects =
            object.pointer("/spec/selector").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        if selects && text_at(object, "/spec/type") != "ExternalName" {
            warnings.push(not_enforced(
                "no endpoint slices are written, because there is no endpoint slice controller",
            ));
        }
        warnings
    }
}

fn kind(spec: &Map<String, Value>) -> &str {
    match spec.get("type").and_then(Value::as_str) {
        None | Some("") => "ClusterIP",
        Some(kind) => kind,
    }
}

fn has_cluster_address(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Makes `clusterIP` the first of `clusterIPs`, whichever of the two the client wrote.
fn mirror_address(spec: &mut Map<String, Value>, old: Option<&Value>) {
    let single = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = spec.get("clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
    let first = list.first().and_then(Value::as_str).unwrap_or_default().to_owned();
    let before = old.map_or("", |old| text(old, "clusterIP"));
    if single.is_empty() && !first.is_empty() && old.is_none() {
        spec.insert("clusterIP".to_owned(), first.into());
    } else if !single.is_empty() && (list.is_empty() || (single != first && single != before)) {
        spec.insert("clusterIPs".to_owned(), json!([single]));
    } else if !single.is_empty() && single != first {
        spec.insert("clusterIP".to_owned(), first.into());
    }
}

/// Keeps the addresses and ports of the service that an update leaves out.
fn keep_allocated(spec: &mut Map<String, Value>, old: &Value) {
    let (kind, before) = (kind(spec).to_owned(), text(old, "type"));
    if has_cluster_address(&kind) && has_cluster_address(before) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(field) {
                let empty = spec.get(field).is_none_or(|value| {
                    value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty)
                });
                if empty {
                    spec.insert(field.to_owned(), value.clone());
                }
            }
        }
    }
    if !has_node_ports(&kind) || !has_node_ports(before) {
        return;
    }
    for port in items_mut(spec, "ports") {
        let protocol = |value: &str| if value.is_empty() { "TCP".to_owned() } else { value.to_owned() };
        let same = |other: &&Value| {
            protocol(text(other, "protocol"))
                == protocol(port.get("protocol").and_then(Value::as_str).unwrap_or_default())
                && other.get("port") == port.get("port")
        };
        let number = list_at(old, "/ports").iter().find(same).and_then(|found| int_at(found, "/nodePort"));
        if let Some(number) = number {
            crate::strategy::fields::default_number(port, "nodePort", number);
        }
    }
}

/// Removes the fields that do not apply to a new type, unless the client changed them.
fn drop_unused(spec: &mut Map<String, Value>, old: &Value) {
    let (kind, before) = (kind(spec).to_owned(), text(old, "type"));
    let unchanged = |spec: &Map<String, Value>, field: &str| spec.get(field) == old.get(field);
    if kind == "ExternalName" && has_cluster_address(before) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if unchanged(spec, field) {
                spec.remove(field);
            }
        }
    }
    if !has_node_ports(&kind) && has_node_ports(before) {
        let ports_before: Vec<Option<i64>> =
            list_at(old, "/ports").iter().map(|port| int_at(port, "/nodePort")).collect();
        for (port, before) in items_mut(spec, "ports").zip(ports_before) {
            if port.get("nodePort").and_then(Value::as_i64) == before {
                port.remove("nodePort");
            }
        }
        for field in ["externalTrafficPolicy", "healthCheckNodePort"] {
            if unchanged(spec, field) {
                spec.remove(field);
            }
        }
    }
    if kind != "LoadBalancer" && before == "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if unchanged(spec, field) {
                spec.remove(field);
            }
        }
    }
}

/// Sets the families of the addresses: IPv4 alone, or both for a headless service without a selector.
fn set_families(spec: &mut Map<String, Value>) {
    if !has_cluster_address(kind(spec)) {
        return;
    }
    let headless = spec.get("clusterIP").is_some_and(|address| address == "None");
    let selects = spec.get("selector").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if headless && !selects && !spec.contains_key("ipFamilies") {
        default(spec, "ipFamilyPolicy", "RequireDualStack");
        default(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
    }
    default(spec, "ipFamilyPolicy", "SingleStack");
    default(spec, "ipFamilies", json!(["IPv4"]));
}
