//! Reads and writes the Leases of a group.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube_core::{ApiResource, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::membership::{MemberLease, WriteResult};
use crate::{
    client::{ApiClient, Call, JSON, METADATA, WithMetadata, path::collection_path, path_segment},
    error::Result,
};

/// The label of a member's Lease. The value is the name of the group.
pub(super) const GROUP_LABEL: &str = "sharding.windlass.dev/group";

/// The annotation with the members to which a member yields keys, separated by commas.
const YIELDS_TO: &str = "sharding.windlass.dev/yields-to";

/// Access to the Leases of a group. Requests are sent once; the caller limits the time.
pub(super) struct MemberLeases {
    client: ApiClient,
    namespace: String,
    group: String,
    identity: String,
    lease_duration: Duration,
    /// The last read or written own Lease. An update fails if the Lease has changed since.
    last: Option<Lease>,
}

#[derive(serde::Deserialize)]
struct LeaseList {
    items: Vec<Lease>,
}

impl MemberLeases {
    pub(super) fn new(
        client: ApiClient,
        namespace: String,
        group: String,
        identity: String,
        lease_duration: Duration,
    ) -> Self {
        Self { client, namespace, group, identity, lease_duration, last: None }
    }

    fn collection(&self) -> Result<String> {
        Ok(collection_path(&ApiResource::erase::<Lease>(&()), Some(&self.namespace))?)
    }

    fn path(&self, name: &str) -> Result<String> {
        Ok(format!("{}/{}", self.collection()?, path_segment(name)?))
    }

    /// Sends a write, whose request is sent once.
    async fn send<T: DeserializeOwned>(&self, write: Result<Call>) -> Result<T> {
        self.client.exchange(write?.no_retry()).await
    }

    async fn read<T: DeserializeOwned>(&self, path: Result<String>) -> Result<T> {
        self.client.exchange(Call::read(path?)?.no_retry()).await
    }

    /// Lists the Leases of the group. Without a resource version, the server answers with the latest state.
    ///
    /// # Errors
    /// The request failed.
    pub(super) async fn list(&self) -> Result<Vec<MemberLease>> {
        let path = format!("{}?labelSelector={GROUP_LABEL}%3D{}", self.collection()?, self.group);
        let list: LeaseList = self.read(Ok(path)).await?;
        Ok(list.items.iter().map(member_lease).collect())
    }

    /// Creates or renews the own Lease.
    pub(super) async fn write(
        &mut self,
        name: &str,
        released: bool,
        yields_to: &str,
        now: Timestamp,
    ) -> WriteResult {
        // A copy: the caller may drop the write at the time limit, and the next write needs the version.
        let mine = self.last.clone().filter(|lease| lease.meta().name.as_deref() == Some(name));
        let existed = mine.is_some();
        let lease = self.contents(name, mine, released, yields_to, now);
        let (method, path) =
            if existed { (Method::PUT, self.path(name)) } else { (Method::POST, self.collection()) };
        // The spec of the reply is the spec of the request.
        let write = path.and_then(|path| Call::write(method, path, JSON, &lease));
        let write = write.map(|call| call.accept(METADATA));
        match self.send::<WithMetadata>(write).await {
            Ok(WithMetadata { metadata }) => {
                self.last = Some(Lease { metadata, ..lease });
                WriteResult::Written
            }
            Err(error) if error.is_not_found() && existed => {
                self.last = None;
                WriteResult::Gone
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => self.refresh(name).await,
            Err(error) => {
                tracing::warn!(%error, lease = %format_args!("{}/{name}", self.namespace), "writing the member's Lease failed");
                WriteResult::Failed
            }
        }
    }

    /// Reads the own Lease after a conflict: an earlier write succeeded, but the response was lost.
    async fn refresh(&mut self, name: &str) -> WriteResult {
        match self.read::<Lease>(self.path(name)).await {
            Ok(lease) => {
                self.last = Some(lease);
                WriteResult::Failed
            }
            Err(error) if error.is_not_found() => {
                self.last = None;
                WriteResult::Gone
            }
            Err(_) => WriteResult::Failed,
        }
    }

    fn contents(
        &self,
        name: &str,
        before: Option<Lease>,
        released: bool,
        yields_to: &str,
        now: Timestamp,
    ) -> Lease {
        let mut lease = before.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([(GROUP_LABEL.to_owned(), self.group.clone())])),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let joined = lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(YIELDS_TO.to_owned(), yields_to.to_owned());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(if released { String::new() } else { self.identity.clone() }),
            lease_duration_seconds: Some(self.lease_duration.as_secs() as i32),
            acquire_time: joined.or(Some(MicroTime(now))),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        });
        lease
    }

    /// Deletes a Lease with this version. Another replica may have deleted the Lease.
    pub(super) async fn delete(&self, name: &str, version: &str) {
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": { "resourceVersion": version },
        });
        let delete = self.path(name).and_then(|path| Call::write(Method::DELETE, path, JSON, &options));
        match self.send::<serde_json::Value>(delete).await {
            Ok(_) => tracing::info!(member = name, "removed a member whose Lease had expired"),
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => tracing::warn!(%error, member = name, "removing an expired Lease failed"),
        }
    }
}

fn member_lease(lease: &Lease) -> MemberLease {
    let metadata = &lease.metadata;
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.unwrap_or(0).max(1).unsigned_abs();
    let yields_to = metadata.annotations.as_ref().and_then(|annotations| annotations.get(YIELDS_TO));
    MemberLease {
        name: metadata.name.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
        released: spec.holder_identity.unwrap_or_default().is_empty(),
        lease_duration: Duration::from_secs(seconds.into()),
        yields_to: yields_to
            .map_or("", String::as_str)
            .split(',')
            .filter(|name| !name.is_empty())
            .map(ToOwned::to_owned)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube_client::{Client, client::Body};
    use parking_lot::Mutex;
    use tokio::time::timeout;

    use super::*;

    /// A lost reply must not make the next renewal a creation, which the server refuses: the renewal would take another turn.
    #[tokio::test(start_paused = true)]
    async fn a_renewal_after_a_renewal_without_an_answer_updates_the_same_version() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let service = {
            let seen = seen.clone();
            tower::service_fn(move |request: Request<Body>| {
                let number = {
                    let mut seen = seen.lock();
                    seen.push(request.method().clone());
                    seen.len()
                };
                async move {
                    if number == 2 {
                        std::future::pending::<()>().await;
                    }
                    let reply = json!({
                        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                        "metadata": { "name": "a", "resourceVersion": number.to_string() },
                    });
                    Ok::<_, std::convert::Infallible>(Response::new(Body::from(
                        reply.to_string().into_bytes(),
                    )))
                }
            })
        };
        let client = ApiClient::from(Client::new(service, "default"));
        let duration = Duration::from_secs(15);
        let mut leases =
            MemberLeases::new(client, "default".to_owned(), "group".to_owned(), "a".to_owned(), duration);
        assert_eq!(leases.write("a", false, "", Timestamp::UNIX_EPOCH).await, WriteResult::Written);
        let lost = timeout(duration, leases.write("a", false, "", Timestamp::UNIX_EPOCH)).await;
        assert!(lost.is_err(), "{lost:?}");
        assert_eq!(leases.write("a", false, "", Timestamp::UNIX_EPOCH).await, WriteResult::Written);
        assert_eq!(*seen.lock(), [Method::POST, Method::PUT, Method::PUT]);
    }
}
