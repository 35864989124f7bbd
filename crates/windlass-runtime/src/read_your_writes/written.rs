//! Writes under way, and the replies.

use std::sync::{Arc, Weak};

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_cache::{ObjectKey, RawObject};

use super::{
    Followers, JournalId, State, Transition, UnseenWrites, Write, WriteRef,
    answer::{Answer, Metadata, Types, scan, scan_metadata},
    note, note_transition,
};
use crate::{
    path_segment::path_segment,
    resource_path::{GroupResource, ResourcePath},
};

/// A write under way to a kind that some cache holds.
pub(crate) struct Written {
    pub(super) log: JournalId,
    pub(super) followers: Followers,
    pub(super) resource: Arc<GroupResource>,
    /// The key in the path, if the reply may lack the object.
    pub(super) named: Option<ObjectKey>,
    /// The object in each cache, before a write with a reply of another kind.
    pub(super) before: Vec<Option<RawObject>>,
    pub(super) reply: Reply,
}

/// The contents of the reply to a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// The created object.
    Created,
    /// The object as changed.
    Changed,
    /// The deleted object, or a `Status`.
    Deleted,
    /// The objects that were deleted, as a list.
    DeletedCollection,
    /// An object of a second kind, such as `Scale`.
    OtherKind,
}

impl Reply {
    /// Returns the content of the reply to a write; `None` for a reply without an object.
    pub(super) fn of(method: &Method, path: &ResourcePath<'_>) -> Option<Self> {
        let delete = *method == Method::DELETE;
        match (&path.name, path.subresource) {
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
        let (collection, _) = path.rsplit_once(&format!("/{}/", path_segment(key.name()).ok()?))?;
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
            Reply::Created | Reply::Changed | Reply::Deleted => self.finish_object(body, &Types::of(body)),
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
                // An item does not name its kind.
                let kind = list.kind.strip_suffix("List").unwrap_or(&list.kind);
                let types = Types { api_version: list.api_version.as_str().into(), kind: kind.into() };
                self.finish_object(item.get().as_bytes(), &types);
            }
            None => self.finish_absent(),
        }
    }

    fn finish_object(&self, body: &[u8], types: &Types<'_>) {
        let Some((key, write)) = self.understand(body, types) else { return };
        let mut shown_by = Vec::new();
        for follower in self.followers.iter().filter_map(Weak::upgrade) {
            let is_shown = follower.will_show(&key, &write);
            if is_shown {
                shown_by.push(Arc::downgrade(&follower));
            }
            // Readers of the cache do not expect a response in another version, or of the metadata alone. A
            // created object that the watch never shows is in no list.
            let is_readable = write.state.is_gone() || follower.has_shape(&types.api_version, &types.kind);
            if is_readable && (is_shown || self.reply != Reply::Created) {
                let write = as_held_by(&follower, write.clone(), body, types);
                follower.note(&key, Write { is_shown, ..write });
            }
        }
        if self.reply == Reply::Created {
            note_transition(|| Transition { uid: write.uid.clone(), from: 0, to: write.revision });
        }
        self.await_write(key, write.uid, write.revision, write.state.is_gone(), shown_by);
    }

    /// Lets the next reconcile wait for the end of an object that a subresource has ended: an eviction, for instance.
    fn finish_absent(&self) {
        let Some(key) = &self.named else { return };
        // By now, a cache may hold another object of the same name.
        for (follower, before) in self.followers.iter().zip(&self.before) {
            let (Some(cache), Some(before)) = (follower.upgrade(), before) else { continue };
            let (uid, revision): (Arc<str>, _) = (before.uid().into(), before.revision());
            cache.note(
                key,
                Write { uid: uid.clone(), revision, state: State::Gone, noted_at: 0, is_shown: true },
            );
            self.await_write(key.clone(), uid, revision, true, vec![follower.clone()]);
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
        self.await_newer(&key, uid, revision);
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
                self.await_newer(&key, uid, revision.saturating_add(1));
            }
        }
    }

    /// Makes the next reconcile wait until the caches that hold an object show the object at a resource
    /// version, or no longer show the object.
    fn await_newer(&self, key: &ObjectKey, uid: &str, revision: u64) {
        let holds = |follower: &&Weak<UnseenWrites>| {
            let cached = follower.upgrade().and_then(|follower| follower.cached(key));
            cached.is_some_and(|held| held.uid() == uid)
        };
        let shown_by = self.followers.iter().filter(holds).cloned().collect();
        self.await_write(key.clone(), uid.into(), revision, false, shown_by);
    }

    /// Lets the next reconcile of the current key wait until the caches `shown_by` show a write.
    fn await_write(
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

    fn understand(&self, body: &[u8], types: &Types<'_>) -> Option<(ObjectKey, Write)> {
        let is_deleted = self.reply == Reply::Deleted;
        if is_deleted && types.kind == "Status" {
            let answer = Answer::parse(body)?;
            let (key, uid) = (self.named.clone()?, answer.deleted_uid()?.into());
            return Some((key, Write { uid, revision: 0, state: State::Gone, noted_at: 0, is_shown: true }));
        }
        let object = scan(body)?;
        // Only numeric resource versions can be compared.
        let revision = object.resource_version().parse().ok()?;
        let (key, uid) = (object.key(), object.uid().into());
        let may_be_gone = is_deleted || object.deletion_timestamp().is_some();
        let is_gone = may_be_gone && Answer::parse(body)?.is_gone(is_deleted);
        let state = if is_gone { State::Gone } else { State::Alive(object) };
        Some((key, Write { uid, revision, state, noted_at: 0, is_shown: true }))
    }
}

/// Returns a write with the object in the form of a cache: a cache of metadata holds the metadata with the kind of the object.
fn as_held_by(follower: &UnseenWrites, write: Write, body: &[u8], types: &Types<'_>) -> Write {
    let Some((api_version, kind)) = follower.kind_of_metadata() else { return write };
    if write.state.is_gone() || (&*types.api_version, &*types.kind) == (api_version, kind) {
        return write;
    }
    match scan_metadata(body, api_version, kind) {
        Some(metadata) => Write { state: State::Alive(metadata), ..write },
        None => write,
    }
}

impl Write {
    /// A write that a client has read from the server.
    pub(super) fn read(object: &RawObject) -> Self {
        let (uid, revision) = (object.uid().into(), object.revision());
        Self { uid, revision, state: State::Alive(object.clone()), noted_at: 0, is_shown: true }
    }
}
