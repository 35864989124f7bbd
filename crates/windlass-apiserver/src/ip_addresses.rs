//! The IPAddress objects of services: one for each cluster address.

use std::net::IpAddr;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::managed_fields::{FieldManager, SERVER};
use crate::meta;
use crate::state::State;
use crate::store::{ResourceId, View, Write};

static SERVICES: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "services"));
static ADDRESSES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("networking.k8s.io", "ipaddresses"));

/// A service whose IPAddress objects follow a write.
#[derive(Clone, Debug)]
pub(crate) struct ServiceAddresses {
    /// `namespace/name` of the service.
    key: String,
    /// The addresses before the write.
    before: Vec<String>,
}

impl ServiceAddresses {
    /// Returns the addresses of a service before a write; `None` for another resource.
    pub(crate) fn before(state: &State, id: &ResourceId, key: &str) -> Option<Self> {
        (*id == *SERVICES).then(|| Self { key: key.to_owned(), before: addresses(&state.store.view(), key) })
    }

    /// Creates the objects of new addresses, and removes the objects of released addresses.
    pub(crate) async fn settle(&self, state: &State) {
        let view = state.store.view();
        let now = addresses(&view, &self.key);
        for released in self.before.iter().filter(|address| !now.contains(address)) {
            self.remove(state, &view, released).await;
        }
        for address in now.iter().filter(|address| view.get(&ADDRESSES, address).is_none()) {
            self.create(state, address).await;
        }
    }

    async fn create(&self, state: &State, address: &str) {
        let Some(resource) = state.builtin.resource(&ADDRESSES.group, "v1", &ADDRESSES.resource) else {
            return;
        };
        let (namespace, name) = self.key.split_once('/').unwrap_or_default();
        let mut object = object(address, namespace, name);
        let now = state.env.now();
        meta::set(&mut object, "uid", Some(state.env.uid().into()));
        meta::set(&mut object, "creationTimestamp", Some(windlass_store::rfc3339(now).into()));
        let served = state.served.load_full();
        let manager = FieldManager { resource, served: &served, subresource: "", name: SERVER, now };
        manager.track(None, &mut object).await;
        let draft = Some(resource.draft_new(&object, state.store.labels(), now));
        let write = Write { id: &ADDRESSES, key: address, expected: None, draft, now };
        // An object of a user with the name stays.
        let _ = state.store.commit(write, |_| Ok(())).await;
    }

    async fn remove(&self, state: &State, view: &View, address: &str) {
        let Some(stored) = view.get(&ADDRESSES, address) else { return };
        let parent = &stored.value()["spec"]["parentRef"];
        let text = |field: &str| parent[field].as_str().unwrap_or_default();
        if text("resource") != "services" || format!("{}/{}", text("namespace"), text("name")) != self.key {
            return;
        }
        let (now, expected) = (state.env.now(), Some(stored.rv));
        let write = Write { id: &ADDRESSES, key: address, expected, draft: None, now };
        // An object that was written meanwhile may belong to another service.
        let _ = state.store.commit(write, |_| Ok(())).await;
    }
}

/// Returns the cluster addresses of a service; none for a missing service.
fn addresses(view: &View, key: &str) -> Vec<String> {
    let Some(service) = view.get(&SERVICES, key).map(|stored| stored.value()) else { return Vec::new() };
    let addresses = service.pointer("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
    let addresses = addresses.filter_map(Value::as_str).filter(|text| text.parse::<IpAddr>().is_ok());
    addresses.map(str::to_owned).collect()
}

/// Returns the IPAddress of a service's address.
pub(crate) fn object(address: &str, namespace: &str, name: &str) -> Value {
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    json!({
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": family,
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    })
}
