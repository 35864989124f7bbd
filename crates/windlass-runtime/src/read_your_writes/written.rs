//! Writes under way, and the replies.

use std::sync::{Arc, Weak};

use http::{Method, Request};
use kube_client::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_cache::{ObjectKey, RawObject};

use super::{
    LogId, State, UnseenWrites, Write, WriteRef,
    answer::{Answer, Metadata},
    note,
};
use crate::resource_path::{GroupResource, ResourcePath};

/// A write under way to a kind that some cache holds.
pub(crate) struct Written {
    pub(super) log: LogId,
    pub(super) followers: Vec<Arc<UnseenWrites>>,
    pub(super) resource: Arc<GroupResource>,
    /// The key in the path; a create has none.
    pub(super) named: Option<ObjectKey>,
    /// The uid and the resource version of the object in each cache, before a write with a reply of another
    /// kind.
    pub(super) before: Vec<Option<(String, u64)>>,
    pub(super) reply: Reply,
}

/// The contents of the reply to a write.
pub(super) enum Reply {
    /// The created object.
    Created,
    /// The object as changed.
    Changed,
    /// The deleted object, or a `Status`.
    Deleted,
    /// The objects that were deleted, as a list.
    DeletedCollection,
    /// Another kind, such as `Scale`.
    OtherKind,
}

impl Reply {
    /// Returns the contents of the reply to a write; `None` if the reply says nothing of an object.
    pub(super) fn of(request: &Request<Body>, path: &ResourcePath<'_>) -> Option<Self> {
        let delete = request.method() == Method::DELETE;
        match (path.name, path.subresource) {
            (None, None) if delete => Some(Self::DeletedCollection),
            (None, None) => Some(Self::Created),
            (Some(_), None) if delete => Some(Self::Deleted),
            (Some(_), None | Some("status" | "finalize" | "ephemeralcontainers" | "resize")) => {
                Some(Self::Changed)
            }
            (Some(_), Some("scale" | "eviction" | "binding")) => Some(Self::OtherKind),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

impl Written {
    /// Returns the path and query of a list of the object alone, if the reply to the write is not the object. A watch has the right to
    /// list, and not always the right to get.
    pub(crate) fn reads_again(&self, path: &str) -> Option<String> {
        let (Reply::OtherKind, Some(key)) = (&self.reply, &self.named) else { return None };
        let (collection, _) = path.rsplit_once(&format!("/{}/", key.name()))?;
        let selector = form_urlencoded::Serializer::new(String::new())
            .append_pair("fieldSelector", &format!("metadata.name={}", key.name()))
            .finish();
        Some(format!("{collection}?{selector}"))
    }

    /// Records the server's reply. A reply that does not parse is not recorded: reads fall back to the cache.
    pub(crate) fn finish(self, body: &[u8]) {
        match self.reply {
            Reply::DeletedCollection => self.finish_collection(body),
            Reply::OtherKind => self.finish_other_kind(body),
            Reply::Created | Reply::Changed | Reply::Deleted => self.finish_object(body, ("", "")),
        }
    }

    /// Records the object that was [read again](Self::reads_again) after the write: a list of at most one
    /// object.
    pub(crate) fn finish_read(self, body: &[u8]) {
        let Ok(list) = serde_json::from_slice::<List<Box<RawValue>>>(body) else { return };
        // Some API servers ignore the field selector.
        let is_written = |item: &RawValue| {
            let item = serde_json::from_str::<Item>(item.get());
            item.is_ok_and(|item| item.metadata.key() == self.named)
        };
        match list.items.iter().find(|item| is_written(item)) {
            Some(item) => {
                let kind = list.kind.strip_suffix("List").unwrap_or(&list.kind);
                self.finish_object(item.get().as_bytes(), (&list.api_version, kind));
            }
            None => self.finish_absent(),
        }
    }

    /// Records an object. `types` is the kind of an object from a list, which does not name its kind.
    fn finish_object(&self, body: &[u8], types: (&str, &str)) {
        let Some(answer) = Answer::parse(body) else { return };
        let (api_version, kind) = match types {
            ("", _) => (answer.api_version.clone(), answer.kind.clone()),
            (api_version, kind) => (api_version.to_owned(), kind.to_owned()),
        };
        let Some((key, write)) = self.understand(answer, body) else { return };
        let mut shown_by = Vec::new();
        for follower in &self.followers {
            let is_shown = follower.will_show(&key, &write);
            if is_shown {
                shown_by.push(Arc::downgrade(follower));
            }
            // An answer in another version, or of the metadata alone, is not what readers of the cache expect. A created object that the
            // watch never shows is in no list.
            let is_readable = write.state.is_gone() || follower.has_shape(&api_version, &kind);
            if is_readable && (is_shown || !matches!(self.reply, Reply::Created)) {
                follower.note(&key, Write { is_shown, ..write.clone() });
            }
        }
        self.expect(key, write.uid, write.revision, write.state.is_gone(), shown_by);
    }

    /// Lets the next reconcile wait for the end of an object that a subresource has ended: an eviction, for instance.
    fn finish_absent(&self) {
        let Some(key) = &self.named else { return };
        // By now, a cache may hold another object of the same name.
        for (follower, before) in self.followers.iter().zip(&self.before) {
            let Some((uid, revision)) = before else { continue };
            let (uid, revision): (Arc<str>, _) = (uid.as_str().into(), *revision);
            follower.note(
                key,
                Write { uid: uid.clone(), revision, state: State::Gone, noted_at: 0, is_shown: true },
            );
            self.expect(key.clone(), uid, revision, true, vec![Arc::downgrade(follower)]);
        }
    }

    /// Makes the next reconcile wait for a write with a reply that has the metadata of the object, such as
    /// `Scale`. Used if the object cannot be read.
    fn finish_other_kind(&self, body: &[u8]) {
        let Some(answer) = Answer::parse(body) else { return };
        let (Some(key), Some(uid), Some(revision)) =
            (self.named.clone(), answer.metadata.uid.as_deref(), answer.metadata.revision())
        else {
            return;
        };
        self.expect_newer(&key, uid, revision);
    }

    /// Makes the next reconcile wait for the deletions. The reply has the objects before or after the
    /// deletion.
    fn finish_collection(&self, body: &[u8]) {
        let Ok(list) = serde_json::from_slice::<List<Item>>(body) else { return };
        for Item { metadata } in list.items {
            let (Some(key), Some(uid), Some(revision)) =
                (metadata.key(), metadata.uid.as_deref(), metadata.revision())
            else {
                continue;
            };
            if !metadata.is_terminating() {
                self.expect_newer(&key, uid, revision + 1);
            }
        }
    }

    /// Lets the next reconcile wait until the caches that hold an object show the object at a resource version, or do not show it any more.
    fn expect_newer(&self, key: &ObjectKey, uid: &str, revision: u64) {
        let holds = |follower: &&Arc<UnseenWrites>| follower.cached(key).is_some_and(|(held, _)| held == uid);
        let shown_by = self.followers.iter().filter(holds).map(Arc::downgrade).collect();
        self.expect(key.clone(), uid.into(), revision, false, shown_by);
    }

    fn expect(
        &self,
        key: ObjectKey,
        uid: Arc<str>,
        revision: u64,
        gone: bool,
        shown_by: Vec<Weak<UnseenWrites>>,
    ) {
        let (log, resource) = (self.log, self.resource.clone());
        note(WriteRef { log, resource, key, uid, revision, gone, shown_by });
    }

    fn understand(&self, answer: Answer, body: &[u8]) -> Option<(ObjectKey, Write)> {
        let delete = matches!(self.reply, Reply::Deleted);
        if let Some(uid) = answer.deleted_uid() {
            let key = self.named.clone().filter(|_| delete)?;
            return Some((
                key,
                Write { uid: uid.into(), revision: 0, state: State::Gone, noted_at: 0, is_shown: true },
            ));
        }
        let gone = answer.is_gone(delete);
        let meta = answer.metadata;
        let key = meta.key()?;
        let uid: Arc<str> = meta.uid.as_deref()?.into();
        let revision = meta.revision()?;
        let state = if gone { State::Gone } else { State::Alive(RawObject::from_json(body).ok()?) };
        Some((key, Write { uid, revision, state, noted_at: 0, is_shown: true }))
    }
}
