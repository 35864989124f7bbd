//! The lease that identifies the servers of a cluster to each other.

use std::sync::Weak;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::cluster::LEASE;
use super::{change, micro_time};
use crate::state::State;
use crate::store::{CommitError, ResourceId, Write};

/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(10);
/// How often the leases of servers that are gone are looked for, in renewals: every hour.
const COLLECTION: u32 = 360;
/// The label of the leases of API servers.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");

/// Renews the lease of the server, and removes the leases of servers that are gone, until `stopped` completes or the server is dropped.
pub(crate) async fn keep_lease(state: Weak<State>, stopped: impl Future<Output = ()>) {
    tokio::pin!(stopped);
    for round in 1_u32.. {
        tokio::select! {
            biased;
            () = &mut stopped => return,
            () = tokio::time::sleep(RENEWAL) => {}
        }
        let Some(state) = state.upgrade() else { return };
        renew(&state).await;
        if round % COLLECTION == 0 {
            collect_expired(&state).await;
        }
    }
}

/// Writes the present time into the lease of the server.
async fn renew(state: &State) {
    let now = micro_time(state.env.now());
    let key = format!("kube-system/{LEASE}");
    change(state, "coordination.k8s.io", "leases", &key, |lease| {
        lease["spec"]["renewTime"] = now.clone().into();
    })
    .await;
}

/// Removes the leases of API servers that were not renewed in time.
async fn collect_expired(state: &State) {
    let leases = ResourceId::new("coordination.k8s.io", "leases");
    let now = state.env.now();
    let view = state.store.view();
    for (key, stored) in view.range(&leases, Some("kube-system")) {
        if stored.labels().get(IDENTITY.0) != Some(IDENTITY.1) || !has_expired(&stored.value(), now) {
            continue;
        }
        let write = Write { id: &leases, key, expected: Some(stored.rv), draft: None, now };
        match state.store.commit(write, |_| Ok(())).await {
            // A lease that was renewed meanwhile stays.
            Ok(_) | Err(CommitError::Conflict) => {}
            Err(why) => tracing::warn!(lease = &**key, "an expired lease stays: {why:?}"),
        }
    }
}

/// Returns whether a lease was not renewed in time. A lease without a time or a duration has expired.
fn has_expired(lease: &Value, now: Timestamp) -> bool {
    let renewed = lease["spec"]["renewTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let seconds = lease["spec"]["leaseDurationSeconds"].as_i64();
    let (Some(renewed), Some(seconds)) = (renewed, seconds) else { return true };
    renewed.saturating_add(SignedDuration::from_secs(seconds)).is_ok_and(|end| end < now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Server;

    fn lease(name: &str, renewed: &str) -> Value {
        json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": name, "namespace": "kube-system", "labels": {IDENTITY.0: IDENTITY.1}},
            "spec": {"renewTime": renewed, "leaseDurationSeconds": 3600}
        })
    }

    #[tokio::test]
    async fn the_lease_is_renewed_and_those_of_other_servers_end() {
        let server = Server::builder().build().unwrap();
        let state = server.state();
        let resource = state.builtin.resource("coordination.k8s.io", "v1", "leases").unwrap();
        let now = state.env.now();
        let present = micro_time(now);
        for (name, renewed) in [("old", "2020-01-01T00:00:00.000000Z"), ("other", &*present)] {
            let draft = Some(resource.draft(&lease(name, renewed), state.store.labels(), now));
            let key = format!("kube-system/{name}");
            let write = Write { id: &resource.storage, key: &key, expected: None, draft, now };
            state.store.commit(write, |_| Ok(())).await.unwrap();
        }
        let own = format!("kube-system/{LEASE}");
        let before = state.store.view().get(&resource.storage, &own).unwrap().value();
        renew(state).await;
        collect_expired(state).await;
        let view = state.store.view();
        let names: Vec<&str> =
            view.range(&resource.storage, Some("kube-system")).map(|(key, _)| &**key).collect();
        assert_eq!(names, [own.as_str(), "kube-system/other"]);
        let after = view.get(&resource.storage, &own).unwrap().value();
        assert!(after["spec"]["renewTime"].as_str() > before["spec"]["renewTime"].as_str());
    }
}
