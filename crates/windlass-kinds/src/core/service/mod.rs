//! Services.

mod allocate;
mod claims;
mod defaults;
mod families;
mod linked;
mod table;
mod validate;
mod warnings;

use serde_json::{Map, Value, json};
use windlass_wire::{ApiError, names};

use crate::json::spec_mut;
use crate::kind::{Allocate, Kind, KindConfig, Prepare, WriteContext};
use crate::subresource::Subresource;

pub(crate) static KIND: Kind = Kind {
    defaults: &Services,
    prepare: &Services,
    validate: &Services,
    allocate: Some(&Services),
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    registry_path: Some("services/specs"),
    name: names::label_name,
    create_on_update: true,
    returns_deleted_object: true,
    selectable: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
    ..KindConfig::DATA
};

pub(super) struct Services;

fn kind(spec: &Map<String, Value>) -> &str {
    match spec.get("type").and_then(Value::as_str) {
        None | Some("") => "ClusterIP",
        Some(kind) => kind,
    }
}

/// Removes the policy for traffic inside of the cluster from a service without an address.
fn drop_internal_policy(spec: &mut Map<String, Value>) {
    if kind(spec) == "ExternalName" {
        spec.remove("internalTrafficPolicy");
    }
}

fn has_cluster_address(kind: &str) -> bool {
    kind != "ExternalName"
}

fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Returns whether clients outside of the cluster can reach the service.
fn is_external(spec: &Map<String, Value>) -> bool {
    let external = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    has_node_ports(kind(spec)) || kind(spec) == "ClusterIP" && external
}

/// Returns whether load balancers check the health of each node, because traffic stays on the node.
fn needs_health_check(spec: &Map<String, Value>) -> bool {
    kind(spec) == "LoadBalancer" && spec.get("externalTrafficPolicy").is_some_and(|policy| policy == "Local")
}

impl Prepare for Services {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        linked::fill_addresses(spec_mut(object));
        drop_internal_policy(spec_mut(object));
        object["status"] = json!({"loadBalancer": {}});
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if *cx.subresource == Subresource::Status {
            return Ok(());
        }
        let spec = spec_mut(object);
        drop_internal_policy(spec);
        linked::keep_allocated(spec, &old["spec"]);
        linked::follow_address(spec, &old["spec"]);
        linked::drop_unused(spec, &old["spec"]);
        if kind(spec) != "LoadBalancer" {
            object["status"]["loadBalancer"] = json!({});
        }
        Ok(())
    }
}

impl Allocate for Services {
    fn allocate(
        &self,
        cx: &WriteContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if !cx.subresource.is_empty() {
            return Ok(());
        }
        families::settle(object, old)?;
        allocate::allocate(cx, object, old)
    }

    fn claims(&self, object: &Value) -> Vec<String> {
        claims::claims(object)
    }
}
