//! Reads and writes the Lease.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube_core::ApiResource;

use super::elector::{LeaseRead, Record};
use crate::{
    client::{ApiClient, Call, JSON, METADATA, WithMetadata, path::collection_path, path_segment},
    error::Result,
};

/// Access to a Lease. Requests are sent once; the caller limits the time.
pub(super) struct LeaseLock {
    client: ApiClient,
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    /// The last read or written Lease. Updates keep the metadata, and fail if the Lease has changed since.
    last: Option<Lease>,
}

impl LeaseLock {
    pub(super) fn new(
        client: ApiClient,
        namespace: &str,
        name: &str,
        labels: BTreeMap<String, String>,
    ) -> Self {
        Self { client, namespace: namespace.to_owned(), name: name.to_owned(), labels, last: None }
    }

    /// Returns a reference to the Lease, for events.
    pub(super) fn reference(&self) -> ObjectReference {
        let metadata = self.last.as_ref().map(|lease| &lease.metadata);
        ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid: metadata.and_then(|metadata| metadata.uid.clone()),
            resource_version: metadata.and_then(|metadata| metadata.resource_version.clone()),
            ..ObjectReference::default()
        }
    }

    fn collection(&self) -> Result<String> {
        Ok(collection_path(&ApiResource::erase::<Lease>(&()), Some(&self.namespace))?)
    }

    fn path(&self) -> Result<String> {
        Ok(format!("{}/{}", self.collection()?, path_segment(&self.name)?))
    }

    /// Writes the Lease. The caller knows the spec, so that the reply is the metadata only.
    async fn write(&mut self, method: Method, path: Result<String>, lease: Lease) -> Result<()> {
        let call = Call::write(method, path?, JSON, &lease)?.accept(METADATA).no_retry();
        let WithMetadata { metadata } = self.client.exchange(call).await?;
        self.last = Some(Lease { metadata, ..lease });
        Ok(())
    }

    async fn get(&self) -> Result<Lease> {
        self.client.exchange(Call::read(self.path()?)?.no_retry()).await
    }

    pub(super) async fn read(&mut self) -> LeaseRead {
        match self.get().await {
            Ok(lease) => {
                let record = record_of(&lease);
                self.last = Some(lease);
                LeaseRead::Found(record)
            }
            Err(error) if error.is_not_found() => LeaseRead::Absent,
            Err(error) => {
                tracing::error!(%error, lease = %self, "error retrieving resource lock");
                LeaseRead::Failed
            }
        }
    }

    pub(super) async fn create(&mut self, record: &Record) -> bool {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                labels: (!self.labels.is_empty()).then(|| self.labels.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(spec_of(record)),
        };
        let created = self.write(Method::POST, self.collection(), lease).await;
        self.succeeds(created, "creating")
    }

    pub(super) async fn update(&mut self, record: &Record) -> bool {
        let Some(mut lease) = self.last.clone() else { return false };
        lease.spec = Some(spec_of(record));
        if !self.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(self.labels.clone());
        }
        let updated = self.write(Method::PUT, self.path(), lease).await;
        self.succeeds(updated, "updating")
    }

    /// Works like [`update`](Self::update). If the Lease has changed since the read but is still held, tries
    /// once more.
    pub(super) async fn release(&mut self, record: &Record) -> bool {
        let held_by = self.last.as_ref().map(record_of).map(|record| record.holder);
        if self.update(record).await {
            return true;
        }
        match self.read().await {
            LeaseRead::Found(now) if Some(&now.holder) == held_by.as_ref() => self.update(record).await,
            LeaseRead::Found(_) | LeaseRead::Absent => true,
            LeaseRead::Failed => false,
        }
    }

    /// Returns whether a write succeeded, and logs a failure. A Lease that another replica wrote first is no failure.
    fn succeeds(&self, written: Result<()>, doing: &str) -> bool {
        match written {
            Ok(()) => true,
            Err(error) if error.is_conflict() || error.is_already_exists() => false,
            Err(error) => {
                tracing::error!(%error, lease = %self, "{doing} the leader lease failed");
                false
            }
        }
    }
}

impl std::fmt::Display for LeaseLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn record_of(lease: &Lease) -> Record {
    let Some(spec) = &lease.spec else { return Record::default() };
    Record {
        holder: spec.holder_identity.clone().unwrap_or_default(),
        lease_duration: Duration::from_secs(
            spec.lease_duration_seconds.unwrap_or(0).max(0).unsigned_abs().into(),
        ),
        acquired: spec.acquire_time.as_ref().map(|time| time.0),
        renewed: spec.renew_time.as_ref().map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or(0),
    }
}

/// Returns the spec for a record. As in client-go, `strategy` and `preferredHolder`, which belong to
/// coordinated leader election, are removed.
fn spec_of(record: &Record) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: Some(record.lease_duration.as_secs() as i32),
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        lease_transitions: Some(record.transitions),
        ..LeaseSpec::default()
    }
}
