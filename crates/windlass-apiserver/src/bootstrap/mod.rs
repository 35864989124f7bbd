//! The objects that a server creates at the start.

mod cluster;
mod config_producer;
mod flow_control;
mod lease;
mod ownership;
mod policy;
mod template;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use jiff::Timestamp;

use serde_json::{Value, json};

pub(crate) use self::config_producer::restore_flow_control;
pub(crate) use self::lease::keep_lease;
use crate::managed_fields::{FieldManager, SERVER};
use crate::meta;
use crate::state::State;
use crate::store::Write;
use crate::wire::ApiError;
use windlass_kinds::ServiceClusterIpRange;
use windlass_kinds::Subresource;

/// Stands for the uid in a template.
const UID: &str = "00000000-0000-0000-0000-000000000000";
/// Stands for the time in a template.
const TIME: &str = "0000-00-00T00:00:00Z";
/// Stands for the time in microseconds in a template.
const MICRO_TIME: &str = "0000-00-00T00:00:00.000000Z";
/// Stands for the time of managed fields in a template: the epoch.
const RECORDED: &str = "1970-01-01T00:00:00Z";
/// Stands for the day in a template.
const DAY: &str = "1111-11-11";

/// The name of the server in the certificate for the servers of aggregated APIs.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// Creates the objects in an empty store.
pub(crate) fn create(state: &State) -> Result<(), ApiError> {
    let now = state.env.now();
    let (time, micro_time) = (state.env.now_rfc3339(), micro_time(now));
    let day = now.strftime("%Y-%m-%d").to_string();
    let own;
    let templates = if state.service_range == ServiceClusterIpRange::default() {
        template::shared(state)
    } else {
        own = template::all(state);
        &own
    };
    for template in templates {
        let uid = state.env.uid();
        let times = [(TIME, &*time), (RECORDED, &*time), (MICRO_TIME, &*micro_time)];
        let texts = [times[0], times[1], times[2], (UID, &*uid), (DAY, &*day)];
        let draft = template.draft.stamped(&uid, &texts);
        let write = Write { id: &template.id, key: &template.key, expected: None, draft: Some(draft), now };
        state
            .store
            .commit_now(write, |_| Ok(()))
            .map_err(|_| ApiError::internal(format!("{} {} is there already", template.id, template.key)))?;
    }
    Ok(())
}

/// Formats a time with microseconds.
fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Writes the address of a listener into the objects with the server's address.
pub(crate) async fn move_server(state: &State, address: SocketAddr) {
    let now = state.env.now();
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    let bound = if address.ip().is_unspecified() { loopback } else { address.ip() };
    let advertised = state.advertise_address.unwrap_or(bound);
    let own = SocketAddr::new(advertised, address.port());
    state.listeners.move_to(own);
    let ip = advertised.to_string();
    let port = json!([{"name": "https", "port": address.port(), "protocol": "TCP"}]);
    change(state, "", "endpoints", "default/kubernetes", |endpoints| {
        endpoints["subsets"] = json!([{"addresses": [{"ip": ip}], "ports": port}]);
    })
    .await;
    change(state, "discovery.k8s.io", "endpointslices", "default/kubernetes", |slice| {
        slice["addressType"] = json!(if advertised.is_ipv4() { "IPv4" } else { "IPv6" });
        slice["endpoints"] = json!([{"addresses": [ip], "conditions": {"ready": true}}]);
        slice["ports"] = port.clone();
    })
    .await;
    change(state, "", "services", "default/kubernetes", |service| {
        service["spec"]["ports"][0]["targetPort"] = address.port().into();
    })
    .await;
    let lease = format!("kube-system/{}", cluster::LEASE);
    change(state, "coordination.k8s.io", "leases", &lease, |lease| {
        let peer = "kubernetes.io/peer-advertise-address";
        lease["metadata"]["annotations"] = json!({peer: own.to_string()});
        lease["spec"]["renewTime"] = micro_time(now).into();
    })
    .await;
}

/// Publishes the authorities of the clients of all listeners, and the authority of the server as a client of aggregated APIs.
pub(crate) async fn publish_authorities(state: &State, front_proxy_pem: &str) {
    let authentication = format!("kube-system/{}", cluster::AUTHENTICATION);
    change(state, "", "configmaps", &authentication, |map| {
        map["data"] = json!({
            "client-ca-file": state.listeners.authorities(),
            "requestheader-allowed-names": format!("[\"{FRONT_PROXY}\"]"),
            "requestheader-client-ca-file": front_proxy_pem,
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
    })
    .await;
}

/// Changes an object of the server, unless the object was removed.
async fn change(state: &State, group: &str, resource: &str, key: &str, change: impl Fn(&mut Value)) {
    change_as(SERVER, state, group, resource, key, change).await;
}

/// Works like [`change`], with the field manager `name`.
async fn change_as(
    name: &str,
    state: &State,
    group: &str,
    resource: &str,
    key: &str,
    change: impl Fn(&mut Value),
) {
    let Some(resource) = state.builtin.resource(group, "v1", resource) else { return };
    loop {
        let view = state.store.view();
        let Some(stored) = view.get(&resource.storage, key) else { return };
        let mut object = stored.value();
        change(&mut object);
        let old = stored.value();
        if object == old {
            return;
        }
        if resource.strategy.config.has_generation() && !differs_in_metadata_only(&object, &old) {
            let generation = meta::integer(&object, "generation").unwrap_or(0) + 1;
            meta::set(&mut object, "generation", Some(generation.into()));
        }
        let now = state.env.now();
        let served = state.served.load_full();
        let manager = FieldManager { resource, served: &served, subresource: &Subresource::None, name, now };
        manager.track(Some(&old), &mut object).await;
        let draft = Some(resource.draft(&object, state.store.labels(), now));
        let write = Write { id: &resource.storage, key, expected: Some(stored.rv), draft, now };
        match state.store.commit(write, |_| Ok(())).await {
            Err(crate::store::CommitError::Conflict) => {}
            _ => return,
        }
    }
}

fn differs_in_metadata_only(a: &Value, b: &Value) -> bool {
    let rest = |object: &Value| {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| *name != "metadata")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Vec<_>>()
    };
    rest(a) == rest(b)
}
