//! The tests' actions on a cluster, and observations of the cluster.

use std::collections::BTreeMap;

use ip_pool::{IPAddress, IPClaim, IPClaimSpec, IPPool, IPPoolSpec, IPPoolStatus};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_test::eventually;

use crate::SOON;

/// A user of the namespace `default`.
#[derive(Clone)]
pub(crate) struct User(pub(crate) Client);

impl User {
    pub(crate) fn pools(&self) -> Api<IPPool> {
        Api::all(self.0.clone())
    }

    pub(crate) fn claims(&self) -> Api<IPClaim> {
        Api::default_namespaced(self.0.clone())
    }

    pub(crate) fn addresses(&self) -> Api<IPAddress> {
        Api::all(self.0.clone())
    }

    pub(crate) async fn create_pool(&self, name: &str, cidrs: &[&str], exclusions: &[&str]) {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let spec = IPPoolSpec { cidrs: owned(cidrs), exclusions: owned(exclusions) };
        self.pools().create(&PostParams::default(), &IPPool::new(name, spec)).await.expect("created");
    }

    pub(crate) async fn change_pool(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.pools().patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    pub(crate) async fn claim(&self, name: &str, pool: &str, address: Option<&str>) {
        let spec = IPClaimSpec { pool: pool.to_owned(), address: address.map(ToOwned::to_owned) };
        self.claims().create(&PostParams::default(), &IPClaim::new(name, spec)).await.expect("created");
    }

    pub(crate) async fn change_claim(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.claims().patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    pub(crate) async fn release(&self, name: &str) {
        self.claims().delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    /// Returns the reason of the condition of a claim, and the claim's address.
    pub(crate) async fn state_of(&self, name: &str) -> Result<(String, Option<String>), String> {
        let claim = self.claims().get(name).await.map_err(|error| error.to_string())?;
        let status = claim.status.unwrap_or_default();
        let reason = status.conditions.first().map(|bound| bound.reason.clone()).unwrap_or_default();
        Ok((reason, status.address))
    }

    /// Waits until a claim has an address.
    pub(crate) async fn bound(&self, name: &str) -> String {
        eventually(SOON, || async {
            match self.state_of(name).await? {
                (reason, Some(address)) if reason == "Allocated" => Ok(address),
                other => Err(format!("{name}: {other:?}")),
            }
        })
        .await
    }

    /// Waits until a claim has no address, for a reason.
    pub(crate) async fn waits(&self, name: &str, reason: &str) {
        eventually(SOON, || async {
            match self.state_of(name).await? {
                (found, None) if found == reason => Ok(()),
                other => Err(format!("{name}: {other:?}")),
            }
        })
        .await;
    }

    /// Waits until a pool reports its total, allocated, available and outside addresses, and the reasons of its conditions.
    pub(crate) async fn counts(&self, pool: &str, counts: [i64; 4], reasons: [&str; 2]) {
        eventually(SOON, || async {
            let pool = self.pools().get(pool).await.map_err(|error| error.to_string())?;
            let IPPoolStatus { total, allocated, available, outside, conditions } =
                pool.status.unwrap_or_default();
            let found: Vec<&str> = conditions.iter().map(|condition| &*condition.reason).collect();
            if [total, allocated, available, outside] == counts && found == reasons {
                return Ok(());
            }
            Err(format!("{total} {allocated} {available} {outside} {found:?}, not {counts:?} {reasons:?}"))
        })
        .await;
    }

    /// Waits for an Event, as `name type reason message`.
    pub(crate) async fn recorded(&self, namespace: &str, wanted: &str) {
        let events: Api<Event> = Api::namespaced(self.0.clone(), namespace);
        let line = |event: Event| {
            let (name, type_) = (event.involved_object.name, event.type_);
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!("{} {} {reason} {message}", name.unwrap_or_default(), type_.unwrap_or_default())
        };
        eventually(SOON, || async {
            let listed = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let found: Vec<String> = listed.items.into_iter().map(line).collect();
            if found.iter().any(|found| found == wanted) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// Checks that every claim has an address, that all addresses are different, and that the objects of
    /// addresses are exactly the claims' addresses.
    pub(crate) async fn is_consistent(&self, claims: usize) -> Result<(), String> {
        let failed = |error: kube::Error| error.to_string();
        let listed = self.claims().list(&ListParams::default()).await.map_err(failed)?.items;
        let addresses = self.addresses().list(&ListParams::default()).await.map_err(failed)?.items;
        let mut holders: BTreeMap<String, String> = BTreeMap::new();
        for claim in &listed {
            let status = claim.status.clone().unwrap_or_default();
            let Some(address) = status.address else {
                return Err(format!("{} has no address: {:?}", claim.name_any(), status.conditions));
            };
            if let Some(other) = holders.insert(address.clone(), claim.uid().unwrap_or_default()) {
                return Err(format!("{address} was given to {} and to {other}", claim.name_any()));
            }
        }
        let recorded: BTreeMap<String, String> =
            addresses.into_iter().map(|address| (address.spec.address, address.spec.claim.uid)).collect();
        if holders.len() != claims || recorded != holders {
            return Err(format!("{} claims with {} addresses", holders.len(), recorded.len()));
        }
        Ok(())
    }
}
