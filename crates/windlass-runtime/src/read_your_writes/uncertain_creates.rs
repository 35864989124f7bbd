//! Creates whose outcome is unknown.

use std::{collections::BTreeMap, time::Duration};

use kube_core::ObjectMeta;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::current_reconcile;

/// The number of remembered uncertain creates. Further creates are treated as failed.
const REMEMBERED: usize = 4096;

/// How long an uncertain create is remembered. The key of a failed reconcile is reconciled again long before, at the longest back-off.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

/// Creates whose outcome is unknown: the connection broke, or no answer came in time. The server completes the names, so that a second attempt
/// would make a second object. The overlay knows a create by the answer of the server, and these creates have no answer.
#[derive(Default)]
pub(crate) struct UncertainCreates {
    open: Mutex<BTreeMap<Uncertain, Instant>>,
}

/// A create by collection, by the prefix of the object's name, and by the creator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Uncertain {
    pub(crate) collection: String,
    pub(crate) prefix: String,
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

impl UncertainCreates {
    /// Remembers a create.
    pub(crate) fn insert(&self, uncertain: Uncertain) {
        let now = Instant::now();
        let mut open = self.open.lock();
        if open.len() >= REMEMBERED {
            open.retain(|_, since| now.duration_since(*since) < REMEMBERED_FOR);
        }
        if open.len() < REMEMBERED {
            open.insert(uncertain, now);
        }
    }

    /// Returns whether a create is remembered.
    pub(crate) fn contains(&self, uncertain: &Uncertain) -> bool {
        self.open.lock().contains_key(uncertain)
    }

    pub(crate) fn remove(&self, uncertain: &Uncertain) {
        self.open.lock().remove(uncertain);
    }
}

impl Uncertain {
    /// Returns the create of an object in a collection; `None` if the object has a name, and a second attempt does no harm.
    pub(crate) fn of<E>(
        collection: impl FnOnce() -> Result<String, E>,
        meta: &ObjectMeta,
    ) -> Result<Option<Self>, E> {
        let Some(prefix) = meta.generate_name.as_ref().filter(|_| meta.name.is_none()) else {
            return Ok(None);
        };
        Ok(Some(Self { collection: collection()?, prefix: prefix.clone(), creator: Creator::of(meta) }))
    }

    /// Returns whether the create may have made an object.
    pub(crate) fn may_have_made(&self, object: &ObjectMeta) -> bool {
        object.generate_name.as_deref() == Some(&self.prefix) && self.creator.may_have_created(object)
    }
}
