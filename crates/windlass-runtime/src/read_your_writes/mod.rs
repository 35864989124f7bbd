//! Reads that see the process's own writes.
//!
//! A cache lags behind the server. A reconciler that creates a pod and runs again before the watch has told of it would
//! create a second one: the classic bug of controllers. Here it cannot happen, by two means:
//!
//! - **Overlay.** A layer of the client remembers the answer to every write of a watched kind. Reads in a
//!   reconcile lay those over the cache until the watch has caught up. They never wait.
//! - **Gate.** Before a key is reconciled again, its controller waits until its watches have seen all that the last
//!   reconcile of that key wrote. The wait is bounded; past it, it is counted and the
//!   reconcile goes on.
//!
//! The record belongs to the client, so writes through `Api<K>` count as well as those through the context.

mod answer;
mod overlay;
mod seen;
mod session;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use hashbrown::HashMap;
use http::{Method, Request};
use kube_client::client::Body;
use parking_lot::{Mutex, RwLock};
use windlass_cache::{ObjectKey, RawObject};

use self::answer::Answer;
pub(crate) use self::{
    seen::CacheView,
    session::{Session, WriteRef},
};
use crate::client::{
    is_write,
    path::{GroupResource, ResourcePath, query_flag},
};

/// The writes of one client, handed to every cache of the kind that was written.
#[derive(Clone, Default)]
pub(crate) struct WriteLog {
    kinds: Arc<RwLock<Followers>>,
}

type Followers = HashMap<GroupResource, Vec<Weak<UnseenWrites>>, foldhash::fast::FixedState>;

/// The writes that one cache has not told of yet.
///
/// Each cache has its own: two with different selectors need not have come equally far.
pub(crate) struct UnseenWrites {
    cache: Box<dyn CacheView>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    writes: BTreeMap<ObjectKey, Write>,
    /// At this size what the cache has told of is swept out: nobody may ever read what is here.
    sweep_at: usize,
}

/// The last write to one object.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) uid: Arc<str>,
    /// The written resourceVersion; for a deletion the last one that is known, which is older than the deletion.
    pub(crate) revision: u64,
    pub(crate) state: State,
}

#[derive(Clone)]
pub(crate) enum State {
    Alive(RawObject),
    Gone,
}

impl WriteLog {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Starts to remember writes for a cache, as long as what comes back lives. Kinds that nobody watches are not remembered.
    pub(crate) fn follow(&self, resource: GroupResource, cache: impl CacheView) -> Arc<UnseenWrites> {
        let unseen = Arc::new(UnseenWrites { cache: Box::new(cache), pending: Mutex::default() });
        let mut kinds = self.kinds.write();
        let followers = kinds.entry(resource).or_default();
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&unseen));
        unseen
    }

    /// Looks at a request before it is sent; `None` if its answer need not be remembered.
    pub(crate) fn begin(&self, request: &Request<Body>) -> Option<Written> {
        if !is_write(request.method()) || is_dry_run(request.uri().query()) {
            return None;
        }
        let path = ResourcePath::parse(request.uri().path())?;
        // Other subresources answer with something that is not the object.
        if !matches!(path.subresource, None | Some("status" | "finalize" | "ephemeralcontainers" | "resize"))
        {
            return None;
        }
        let delete = request.method() == Method::DELETE;
        if delete && path.name.is_none() {
            return None;
        }
        let resource = path.group_resource();
        let followers: Vec<_> = self.kinds.read().get(&resource)?.iter().filter_map(Weak::upgrade).collect();
        let named = path.name.map(|name| ObjectKey::new(path.namespace, name));
        (!followers.is_empty()).then_some(Written { followers, resource, named, delete })
    }
}

fn is_dry_run(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("dryRun=")))
        || query_flag(query, "dryRun")
}

/// A write under way.
pub(crate) struct Written {
    followers: Vec<Arc<UnseenWrites>>,
    resource: GroupResource,
    /// The key in the path; a create has none.
    named: Option<ObjectKey>,
    delete: bool,
}

impl Written {
    /// Remembers what the server answered. An answer that cannot be understood is not remembered: the cache's word holds.
    pub(crate) fn finish(self, body: &[u8]) {
        let Some((key, write)) = Answer::parse(body).and_then(|answer| self.understand(answer, body)) else {
            return;
        };
        for follower in &self.followers {
            follower.note(&key, write.clone());
        }
        session::note(WriteRef {
            resource: self.resource,
            key,
            uid: write.uid,
            revision: write.revision,
            gone: matches!(write.state, State::Gone),
        });
    }

    fn understand(&self, answer: Answer, body: &[u8]) -> Option<(ObjectKey, Write)> {
        if let Some(uid) = answer.deleted_uid() {
            let key = self.named.clone().filter(|_| self.delete)?;
            return Some((key, Write { uid: uid.into(), revision: 0, state: State::Gone }));
        }
        let gone = answer.is_gone(self.delete);
        let meta = answer.metadata;
        let key = ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref()?);
        let uid: Arc<str> = meta.uid.as_deref()?.into();
        // Only what the server counts up can be compared; of anything else nothing is claimed.
        let revision: u64 = meta.resource_version.as_deref()?.parse().ok()?;
        let state = if gone { State::Gone } else { State::Alive(RawObject::from_json(body).ok()?) };
        Some((key, Write { uid, revision, state }))
    }
}
