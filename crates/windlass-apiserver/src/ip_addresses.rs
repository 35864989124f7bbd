//! The IPAddress objects of services: one for each cluster address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::managed_fields::{FieldManager, SERVER};
use crate::meta;
use crate::state::State;
use crate::store::{CommitError, ResourceId, Stored, View, Write};
use crate::wire::ApiError;
use windlass_kinds::Subresource;
use windlass_kinds::kind_names::IP_ADDRESS;
use windlass_kinds::resources::{IP_ADDRESSES, SERVICES};

/// The label of an IPAddress with the program that allocated the address.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
/// The allocator of the server.
const ALLOCATOR: &str = "ipallocator.k8s.io";

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
        let mut all: BTreeSet<String> = self.before.iter().cloned().collect();
        all.extend(addresses(&state.store.view(), &self.key));
        for address in all {
            // After a conflict, another write has changed the object.
            while let Err(CommitError::Conflict) | Ok(Settled::Removed) = self.step(state, &address).await {}
        }
    }

    /// Takes a step towards the right object of an address.
    ///
    /// A service may get the address of another service before the object of the other service is removed.
    async fn step(&self, state: &State, address: &str) -> Result<Settled, CommitError> {
        let view = state.store.view();
        let is_owned = has_address(&view, &self.key, address);
        match view.get(&IP_ADDRESSES, address) {
            None if is_owned => self.create(state, address).await,
            None => Ok(Settled::Done),
            Some(stored) => {
                let parent = allocated_for(&stored.value());
                let parent = parent.filter(|parent| is_owned || *parent == self.key);
                match parent.filter(|parent| !has_address(&view, parent, address)) {
                    Some(parent) => remove(state, stored, address, &parent).await,
                    None => Ok(Settled::Done),
                }
            }
        }
    }

    async fn create(&self, state: &State, address: &str) -> Result<Settled, CommitError> {
        let Some(resource) = state.builtin.resource(&IP_ADDRESSES.group, "v1", &IP_ADDRESSES.resource) else {
            return Ok(Settled::Done);
        };
        let (namespace, name) = self.key.split_once('/').unwrap_or_default();
        let mut object = object(address, namespace, name);
        let now = state.env.now();
        meta::set(&mut object, "uid", Some(state.env.uid().into()));
        meta::set(&mut object, "creationTimestamp", Some(windlass_store::rfc3339(now).into()));
        let served = state.served.load_full();
        let manager =
            FieldManager { resource, served: &served, subresource: &Subresource::None, name: SERVER, now };
        manager.track(None, &mut object).await;
        let draft = Some(resource.draft_new(&object, state.store.labels(), now));
        let write = Write { id: &IP_ADDRESSES, key: address, expected: None, draft, now };
        let guard = |view: &View| {
            if has_address(view, &self.key, address) { Ok(()) } else { Err(ApiError::no_such_resource()) }
        };
        state.store.commit(write, guard).await.map(|_| Settled::Done)
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
enum Settled {
    Done,
    /// The object of another service was removed.
    Removed,
}

/// Removes the object of an address that the service `parent` has released.
async fn remove(state: &State, stored: &Stored, address: &str, parent: &str) -> Result<Settled, CommitError> {
    let (now, expected) = (state.env.now(), Some(stored.rv));
    let write = Write { id: &IP_ADDRESSES, key: address, expected, draft: None, now };
    // A service of the same name may have the address again.
    let guard = |view: &View| {
        if has_address(view, parent, address) { Err(ApiError::no_such_resource()) } else { Ok(()) }
    };
    state.store.commit(write, guard).await.map(|_| Settled::Removed)
}

/// Returns the key of the service that the server made an IPAddress for; `None` for an object of a user.
fn allocated_for(object: &Value) -> Option<String> {
    if object.pointer("/metadata/labels")?.get(MANAGED_BY)? != ALLOCATOR {
        return None;
    }
    let parent = &object["spec"]["parentRef"];
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    (text("resource") == &*SERVICES.resource).then(|| format!("{}/{}", text("namespace"), text("name")))
}

fn has_address(view: &View, key: &str, address: &str) -> bool {
    addresses(view, key).iter().any(|own| own == address)
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
        "kind": IP_ADDRESS,
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": family,
                MANAGED_BY: ALLOCATOR,
            },
        },
        "spec": {"parentRef": {"resource": &*SERVICES.resource, "namespace": namespace, "name": name}},
    })
}
