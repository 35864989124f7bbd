//! Reads that see the process's own writes.
//!
//! A cache lags behind the server. A reconciler that creates a pod and runs again before the watch has told of it would
//! create a second one: the classic bug of controllers. Here it cannot happen, by two means:
//!
//! - **Overlay.** A layer of the client remembers the answer to every write of a watched kind ([`WriteLog`]). Reads in a
//!   reconcile lay those over the cache until the watch has caught up. They never wait.
//! - **Gate.** Before a key is reconciled again, its controller waits until its watches have seen all that the last
//!   reconcile of that key wrote: [`Seen`] says when. The wait is bounded; past it, it is counted and the
//!   reconcile goes on.
//!
//! The record belongs to the client, so writes through `Api<K>` count as well as those through the context.

mod answer;
mod overlay;
mod seen;
mod session;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::HashMap;
use http::{Method, Request};
use kube_client::client::Body;
use parking_lot::{Mutex, RwLock};
use windlass_cache::{ObjectKey, RawObject};

use self::answer::Answer;
pub(crate) use self::{
    overlay::Overlay,
    seen::{CacheView, Seen},
    session::{Session, WriteRef},
};
use crate::client::{
    is_write,
    path::{GroupResource, ResourcePath, query_flag},
};

/// The writes of one client that the watches have not told of yet.
#[derive(Clone, Default)]
pub(crate) struct WriteLog {
    kinds: Arc<RwLock<HashMap<GroupResource, Arc<KindWrites>, foldhash::fast::FixedState>>>,
}

/// Those of one kind.
#[derive(Default)]
pub(crate) struct KindWrites {
    pending: Mutex<BTreeMap<ObjectKey, Pending>>,
}

/// The last write to one object.
#[derive(Clone)]
pub(crate) struct Pending {
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

    /// Starts to remember writes of a kind. Kinds that nobody watches are not remembered: nothing would ever forget them.
    pub(crate) fn track(&self, resource: GroupResource) -> Arc<KindWrites> {
        self.kinds.write().entry(resource).or_default().clone()
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
        let kind = self.kinds.read().get(&resource)?.clone();
        let named = path.name.map(|name| object_key(path.namespace, name));
        Some(Written { kind, resource, named, delete })
    }
}

fn is_dry_run(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("dryRun=")))
        || query_flag(query, "dryRun")
}

fn object_key(namespace: Option<&str>, name: &str) -> ObjectKey {
    match namespace {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    }
}

/// A write under way.
pub(crate) struct Written {
    kind: Arc<KindWrites>,
    resource: GroupResource,
    /// The key in the path; a create has none.
    named: Option<ObjectKey>,
    delete: bool,
}

impl Written {
    /// Remembers what the server answered. An answer that cannot be understood is not remembered: the cache's word holds.
    pub(crate) fn finish(self, body: &[u8]) {
        let Some((key, mut pending)) = Answer::parse(body).and_then(|answer| self.understand(answer, body))
        else {
            return;
        };
        {
            let mut all = self.kind.pending.lock();
            if let Some(before) = all.get(&key).filter(|before| before.uid == pending.uid) {
                // Two writes to one object may end in either order; the newer one counts, and gone stays gone.
                if matches!(before.state, State::Gone) || before.revision > pending.revision {
                    pending = Pending { revision: pending.revision.max(before.revision), ..before.clone() };
                    if self.delete {
                        pending.state = State::Gone;
                    }
                }
            }
            all.insert(key.clone(), pending.clone());
        }
        session::note(WriteRef {
            resource: self.resource,
            key,
            uid: pending.uid,
            revision: pending.revision,
            gone: matches!(pending.state, State::Gone),
        });
    }

    fn understand(&self, answer: Answer, body: &[u8]) -> Option<(ObjectKey, Pending)> {
        if let Some(uid) = answer.deleted_uid() {
            let key = self.named.clone().filter(|_| self.delete)?;
            return Some((key, Pending { uid: uid.into(), revision: 0, state: State::Gone }));
        }
        let meta = answer.metadata;
        let key = object_key(meta.namespace.as_deref(), meta.name.as_deref()?);
        let uid: Arc<str> = meta.uid.as_deref()?.into();
        // Only what the server counts up can be compared; of anything else nothing is claimed.
        let revision: u64 = meta.resource_version.as_deref()?.parse().ok()?;
        let gone = meta.is_gone(self.delete);
        let state = if gone { State::Gone } else { State::Alive(RawObject::from_json(body).ok()?) };
        Some((key, Pending { uid, revision, state }))
    }
}

impl KindWrites {
    /// The writes that `cache` has not told of. Those it has told of are forgotten here.
    ///
    /// Must be called before the cache is read: a write that is forgotten is one the cache has.
    pub(crate) fn unseen(&self, cache: &dyn CacheView) -> Vec<(ObjectKey, Pending)> {
        let mut pending = self.pending.lock();
        pending.retain(|key, write| !Seen::of(write, key, cache));
        pending.iter().map(|(key, write)| (key.clone(), write.clone())).collect()
    }

    /// The same of one object.
    pub(crate) fn unseen_of(&self, key: &ObjectKey, cache: &dyn CacheView) -> Option<Pending> {
        let mut pending = self.pending.lock();
        let write = pending.get(key)?;
        if Seen::of(write, key, cache) {
            pending.remove(key);
            return None;
        }
        Some(write.clone())
    }
}
