//! Creates of which it is not known whether they took effect.

use std::{collections::BTreeSet, sync::Arc};

use http::{Request, header};
use kube_client::client::Body;
use kube_core::ObjectMeta;
use parking_lot::Mutex;
use serde::Deserialize;
use windlass_cache::ObjectKey;

use super::{Context, Target};
use crate::{
    client::{OnUnknownOutcome, path::GroupResource, request},
    error::{Error, Result},
    read_your_writes::{LogId, WriteRef, note},
};

/// The number of uncertain creates that are remembered. More than these are treated as failed.
const REMEMBERED: usize = 4096;

/// Creates of which it is not known whether they took effect: the connection broke, or no answer came in time. The server completes
/// their names, so that a second attempt would make a second object.
///
/// The overlay of [`read_your_writes`](crate::read_your_writes) knows creates by their answer; these have none.
#[derive(Default)]
pub(crate) struct UncertainCreates {
    open: Mutex<BTreeSet<Uncertain>>,
}

/// A collection, and the prefix of the name of what was created in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Uncertain {
    collection: String,
    prefix: String,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct PageMeta {
    #[serde(default, rename = "continue")]
    token: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: ObjectMeta,
}

impl UncertainCreates {
    fn insert(&self, uncertain: Uncertain) {
        let mut open = self.open.lock();
        if open.len() < REMEMBERED {
            open.insert(uncertain);
        }
    }
}

impl Uncertain {
    /// Returns what a create would leave uncertain; `None` if the object has a name, and a second attempt does no harm.
    pub(super) fn of(target: &Target, meta: &ObjectMeta) -> Result<Option<Self>> {
        let Some(prefix) = meta.generate_name.as_ref().filter(|_| meta.name.is_none()) else {
            return Ok(None);
        };
        Ok(Some(Self { collection: target.collection()?.to_owned(), prefix: prefix.clone() }))
    }

    fn is_open(&self, creates: &UncertainCreates) -> bool {
        creates.open.lock().contains(self)
    }

    /// Remembers the create if its failure says nothing of its effect.
    pub(super) fn note(self, error: &Error, creates: &UncertainCreates) {
        let is_refused = error.is_too_many_requests();
        if (error.is_transient() || error.is_decode()) && !is_refused {
            creates.insert(self);
        }
    }

    /// Returns an extension of the request that remembers the create, even after the caller has dropped the request.
    pub(super) fn observer(&self, creates: &Arc<UncertainCreates>) -> OnUnknownOutcome {
        let (uncertain, creates) = (self.clone(), creates.clone());
        OnUnknownOutcome(Arc::new(move || creates.insert(uncertain.clone())))
    }
}

impl<K> Context<K> {
    /// Fails with a conflict if an earlier create of the same prefix may have taken effect, after it has asked the server which objects
    /// there are. The next reconcile of the key begins when the caches show them.
    pub(super) async fn settle_uncertain(
        &self,
        target: &Target,
        uncertain: Option<&Uncertain>,
    ) -> Result<()> {
        let creates = &self.shared.uncertain_creates;
        let Some(uncertain) = uncertain.filter(|uncertain| uncertain.is_open(creates)) else { return Ok(()) };
        let listed = self.wait_for_all(target, uncertain).await;
        if listed.as_ref().is_err_and(Error::is_forbidden) {
            tracing::warn!(
                collection = uncertain.collection,
                "an earlier create may have succeeded, but this controller may not list the objects; creating another one"
            );
            creates.open.lock().remove(uncertain);
            return Ok(());
        }
        listed?;
        creates.open.lock().remove(uncertain);
        Err(Error::conflict(format!(
            "an earlier attempt to create {} {}* may have succeeded; the reconcile is repeated when the caches show it",
            target.resource.kind, uncertain.prefix
        )))
    }

    /// Lets the next reconcile wait until the caches show all objects with the prefix.
    async fn wait_for_all(&self, target: &Target, uncertain: &Uncertain) -> Result<()> {
        let mut token = String::new();
        loop {
            let page = self.metadata_page(&uncertain.collection, &token).await?;
            let log = self.shared.caches.log();
            page.items.iter().for_each(|item| wait_for(log, target, &uncertain.prefix, &item.metadata));
            token = page.metadata.token;
            if token.is_empty() {
                return Ok(());
            }
        }
    }

    async fn metadata_page(&self, collection: &str, token: &str) -> Result<Page> {
        let request = Request::get(format!("{collection}?{}", page_query(token)))
            .header(
                header::ACCEPT,
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            )
            .body(Body::empty())
            .map_err(Error::other)?;
        request::decode(&request::send(self.client(), request).await?)
    }
}

fn page_query(token: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", "500");
    if !token.is_empty() {
        query.append_pair("continue", token);
    }
    query.finish()
}

/// Lets the next reconcile wait until the caches show an object.
fn wait_for(log: LogId, target: &Target, prefix: &str, meta: &ObjectMeta) {
    let (Some(name), Some(uid), Some(version)) = (&meta.name, &meta.uid, &meta.resource_version) else {
        return;
    };
    if meta.generate_name.as_deref() != Some(prefix) {
        return;
    }
    note(WriteRef {
        log,
        resource: GroupResource::of(&target.resource),
        key: ObjectKey::new(meta.namespace.as_deref(), name),
        uid: Arc::from(uid.as_str()),
        revision: version.parse().unwrap_or(0),
        gone: false,
    });
}
