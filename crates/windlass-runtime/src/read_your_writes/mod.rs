//! Reads that see the process's own writes.
//!
//! A cache lags behind the server. A reconciler that creates a pod, and runs again before the watch has seen
//! the pod, would create a second pod: the classic bug of controllers. Two means prevent the bug:
//!
//! - **Overlay.** A layer of the client remembers the response to every write of a watched kind. Reads lay
//!   these objects over the cache until the watch of the object's namespace has caught up. Reads never wait.
//! - **Write barrier.** Before a key is reconciled again, the controller waits until the watches have seen
//!   every write of the key's last reconcile. The wait is bounded; a timeout is counted, and the reconcile
//!   continues.
//!
//! The record belongs to the client: writes through `Api<K>` count as well as writes through the context.

mod admission;
mod answer;
mod hot_loop;
mod key_journal;
mod last_applies;
mod overlay;
mod own_changes;
mod pending;
mod postings;
mod seen;
mod session;
mod uncertain_creates;
mod written;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube_client::client::Body;
use parking_lot::RwLock;
use serde::Deserialize;
use windlass_cache::{ObjectKey, RawObject};
use windlass_workqueue::Equivalent;

pub(crate) use self::admission::Admission;
use self::written::Reply;
pub(crate) use self::{
    hot_loop::Hold,
    key_journal::{KeyJournal, KeyJournalOptions, Passage},
    last_applies::{LastApplied, LastApplies, Part, Slot},
    overlay::UnseenWrites,
    own_changes::change_of,
    seen::CacheView,
    session::{
        Session, Transition, WriteInFlight, WriteRef, after_own_writes, current_reconcile, note, note_any,
        note_own_write, note_transition,
    },
    uncertain_creates::{Uncertain, UncertainCreates},
    written::Written,
};
use crate::resource_path::{GroupResource, GroupResourceRef, ResourcePath, query_flag};

/// Distinguishes the writes of a client from the writes of another client, which may talk to another cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalId(usize);

/// The writes of a client, handed to every cache of the written kind.
#[derive(Clone, Default)]
pub(crate) struct WriteJournal(Arc<Journal>);

#[derive(Default)]
struct Journal {
    kinds: RwLock<FollowedKinds>,
    creates: UncertainCreates,
    applies: LastApplies,
}

type FollowedKinds = HashMap<Arc<GroupResource>, Followers, foldhash::fast::FixedState>;

/// The caches of a kind. A write under way shares the list.
type Followers = Arc<[Weak<UnseenWrites>]>;

/// The last write to an object.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) uid: Arc<str>,
    /// The written resource version; for a deletion the last known resource version, which is older than the
    /// deletion.
    pub(crate) revision: u64,
    pub(crate) state: State,
    /// The high-water mark of the cache when the write was noted.
    pub(crate) noted_at: u64,
    /// True if the watch of the cache will show the write.
    pub(crate) is_shown: bool,
}

#[derive(Clone)]
pub(crate) enum State {
    Alive(RawObject),
    Gone,
}

impl State {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

impl WriteJournal {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn id(&self) -> JournalId {
        JournalId(Arc::as_ptr(&self.0).addr())
    }

    /// The creates whose outcome is unknown.
    pub(crate) fn creates(&self) -> &UncertainCreates {
        &self.0.creates
    }

    /// The last applies.
    pub(crate) fn applies(&self) -> &LastApplies {
        &self.0.applies
    }

    /// Records the writes of a kind for a cache until the returned record is dropped.
    pub(crate) fn follow(&self, resource: GroupResource, cache: impl CacheView) -> Arc<UnseenWrites> {
        let unseen = Arc::new(UnseenWrites::new(Box::new(cache)));
        let mut kinds = self.0.kinds.write();
        let followers = kinds.entry(Arc::new(resource)).or_default();
        let living = followers.iter().filter(|follower| follower.strong_count() > 0).cloned();
        *followers = living.chain([Arc::downgrade(&unseen)]).collect();
        unseen
    }

    /// Lets the next reconcile of the current key wait until the caches show an object that was read from the server.
    pub(crate) fn await_object(&self, resource: GroupResourceRef<'_>, object: &RawObject) {
        let Some((resource, followers)) = self.followers(resource) else { return };
        let (key, write) = (object.key(), Write::read(object));
        let shows = |follower: &&Weak<UnseenWrites>| {
            follower.upgrade().is_some_and(|follower| follower.will_show(&key, &write))
        };
        note(WriteRef {
            log: self.id(),
            resource,
            uid: write.uid.clone(),
            revision: write.revision,
            gone: false,
            shown_by: followers.iter().filter(shows).cloned().collect(),
            key,
        });
    }

    /// Returns the caches of a kind; `None` if there are none.
    fn followers(&self, resource: GroupResourceRef<'_>) -> Option<(Arc<GroupResource>, Followers)> {
        let kinds = self.0.kinds.read();
        let (resource, followers) = kinds.get_key_value(&FollowedKind(resource))?;
        let is_followed = followers.iter().any(|follower| follower.strong_count() > 0);
        is_followed.then(|| (resource.clone(), followers.clone()))
    }

    /// Inspects a write before it is sent. Returns `None` if the answer need not be recorded.
    pub(crate) fn begin(&self, method: &Method, path: &str) -> Option<Written> {
        let path = ResourcePath::parse(path)?;
        let reply = Reply::of(method, &path)?;
        let (resource, followers) = self.followers(path.group_resource())?;
        let names_object = matches!(reply, Reply::Deleted | Reply::OtherKind);
        let named = path.name.filter(|_| names_object);
        let named = named.map(|name| ObjectKey::new(path.namespace.as_deref(), &name));
        let before = named.as_ref().filter(|_| reply == Reply::OtherKind);
        let before = before.map(|key| {
            let cached = |follower: &Weak<UnseenWrites>| follower.upgrade()?.cached(key);
            followers.iter().map(cached).collect()
        });
        let before = before.unwrap_or_default();
        Some(Written { log: self.id(), followers, resource, named, before, reply })
    }
}

/// The key of a look-up of a shared [`GroupResource`].
#[derive(Hash)]
struct FollowedKind<'a>(GroupResourceRef<'a>);

impl Equivalent<Arc<GroupResource>> for FollowedKind<'_> {
    fn equivalent(&self, key: &Arc<GroupResource>) -> bool {
        self.0.equivalent(&**key)
    }
}

/// Returns true if a method and a query change objects: the request writes, and asks for no dry run.
pub(crate) fn changes_objects(method: &Method, query: Option<&str>) -> bool {
    let writes = matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let is_dry_run = || {
        query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("dryRun=")))
            || query_flag(query, "dryRun")
    };
    writes && !is_dry_run()
}

/// Returns true if a request changes objects. A dry run is asked for in the query or, for a deletion, in the `DeleteOptions` of the body.
pub(crate) fn is_write(request: &Request<Body>) -> impl Future<Output = bool> + Send + use<> {
    let writes = changes_objects(request.method(), request.uri().query());
    // A body that is a stream has no copy; kube's client sends none with a deletion.
    let is_delete = writes && request.method() == Method::DELETE;
    let options = if is_delete { request.body().try_clone() } else { None };
    async move { writes && !has_dry_run_options(options).await }
}

#[derive(Deserialize)]
struct DeleteOptions {
    #[serde(default, rename = "dryRun")]
    dry_run: Vec<serde::de::IgnoredAny>,
}

async fn has_dry_run_options(body: Option<Body>) -> bool {
    let Some(body) = body else { return false };
    let Ok(options) = body.collect().await else { return false };
    serde_json::from_slice::<DeleteOptions>(&options.to_bytes())
        .is_ok_and(|options| !options.dry_run.is_empty())
}
