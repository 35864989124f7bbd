//! Creates with an unknown outcome.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube_core::ObjectMeta;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use windlass_cache::RawObject;

use super::{Context, Target};
use crate::{
    client::{Call, METADATA_LIST, OnUnknownOutcome, path::GroupResourceRef},
    error::{Error, Result},
    read_your_writes::{WriteLog, current_reconcile},
};

/// The number of remembered uncertain creates. Further creates are treated as failed.
const REMEMBERED: usize = 4096;

/// How long an uncertain create is remembered. The key of a failed reconcile is reconciled again long before, at the longest back-off.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

/// Creates with an unknown outcome: the connection broke, or no response came in time. The server completes
/// the names of the objects: a second attempt would make a second object.
///
/// The overlay of [`read_your_writes`](crate::read_your_writes) knows creates by the response; an uncertain
/// create has no response.
#[derive(Default)]
pub(crate) struct UncertainCreates {
    open: Mutex<BTreeMap<Uncertain, Instant>>,
}

/// A create by collection, by the prefix of the object's name, and by the creator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Uncertain {
    collection: String,
    prefix: String,
    creator: Creator,
}

/// The part of an operator that creates an object: equal prefixes of two creators are different creates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Creator {
    /// The uid of the object's controller, or of the first owner.
    Owner(String),
    /// The reconcile of an object without an owner.
    Reconcile(Option<u64>),
}

impl Creator {
    fn of(meta: &ObjectMeta) -> Self {
        let owners = meta.owner_references.as_deref().unwrap_or_default();
        let controller = owners.iter().find(|owner| owner.controller == Some(true)).or(owners.first());
        controller
            .map_or_else(|| Self::Reconcile(current_reconcile()), |owner| Self::Owner(owner.uid.clone()))
    }

    /// Returns whether the creator may have created an object.
    fn may_have_created(&self, meta: &ObjectMeta) -> bool {
        match self {
            Self::Owner(uid) => meta.owner_references.iter().flatten().any(|owner| owner.uid == *uid),
            Self::Reconcile(_) => true,
        }
    }
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

type Item = Box<RawValue>;

#[derive(Deserialize)]
struct ItemMeta {
    metadata: ObjectMeta,
}

impl UncertainCreates {
    fn insert(&self, uncertain: Uncertain) {
        let now = Instant::now();
        let mut open = self.open.lock();
        if open.len() >= REMEMBERED {
            open.retain(|_, since| now.duration_since(*since) < REMEMBERED_FOR);
        }
        if open.len() < REMEMBERED {
            open.insert(uncertain, now);
        }
    }
}

impl Uncertain {
    /// Returns the uncertainty that a create would leave; `None` for an object with a name, because a second
    /// attempt does no harm.
    pub(super) fn of(target: &Target, meta: &ObjectMeta) -> Result<Option<Self>> {
        let Some(prefix) = meta.generate_name.as_ref().filter(|_| meta.name.is_none()) else {
            return Ok(None);
        };
        let (collection, creator) = (target.collection(&[])?, Creator::of(meta));
        Ok(Some(Self { collection, prefix: prefix.clone(), creator }))
    }

    fn is_open(&self, creates: &UncertainCreates) -> bool {
        creates.open.lock().contains_key(self)
    }

    /// Remembers the create if the failure leaves the outcome unknown.
    pub(super) fn note(self, error: &Error, creates: &UncertainCreates) {
        let is_refused = error.is_too_many_requests();
        if (error.is_transient() || error.is_decode()) && !is_refused {
            creates.insert(self);
        }
    }

    /// Lets the next reconcile wait until the caches show an object, if this create may have made the object.
    fn await_object(&self, item: &Item, target: &Target, writes: &WriteLog) {
        let Ok(ItemMeta { metadata }) = serde_json::from_str(item.get()) else { return };
        if metadata.generate_name.as_deref() != Some(&self.prefix)
            || !self.creator.may_have_created(&metadata)
        {
            return;
        }
        if let Ok(object) = RawObject::from_json(item.get().as_bytes()) {
            writes.await_object(GroupResourceRef::of(target.resource()), &object);
        }
    }

    /// Returns an extension of the request that remembers the create, even after the caller has dropped the request.
    pub(super) fn observer(&self, creates: &Arc<UncertainCreates>) -> OnUnknownOutcome {
        let (uncertain, creates) = (self.clone(), creates.clone());
        OnUnknownOutcome(Arc::new(move || creates.insert(uncertain.clone())))
    }
}

impl<K> Context<K> {
    /// Fails with a conflict if an earlier create with the same prefix may have taken effect, after a list of
    /// the existing objects from the server. The next reconcile of the key begins when the caches show these
    /// objects.
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
            target.resource().kind,
            uncertain.prefix
        )))
    }

    /// Lets the next reconcile wait until the caches show all objects with the prefix.
    async fn wait_for_all(&self, target: &Target, uncertain: &Uncertain) -> Result<()> {
        let mut token = String::new();
        loop {
            let page = self.metadata_page(&uncertain.collection, &token).await?;
            let writes = self.shared.caches.writes();
            page.items.iter().for_each(|item| uncertain.await_object(item, target, writes));
            token = page.metadata.token;
            if token.is_empty() {
                return Ok(());
            }
        }
    }

    async fn metadata_page(&self, collection: &str, token: &str) -> Result<Page> {
        let call = Call::read(format!("{collection}?{}", page_query(token)))?;
        self.api().exchange(call.accept(METADATA_LIST)).await
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
