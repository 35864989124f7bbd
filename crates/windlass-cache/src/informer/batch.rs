//! Changes that one thread reads from a watch, and another thread applies to the informer.

use super::{InformerCore, InformerFeed};
use crate::{
    ObjectKey, ObjectRef, ReflectorId,
    object::{NewObject, Sharing},
    reflector::{ReflectorEvent, ReflectorStore},
    scan::{Field, ScanError, ScanOptions},
    scanner::Scanned,
};

/// Changes that a [`Reflector`](crate::Reflector) has shown, in order, until a [`BatchApplier`] applies the changes.
#[derive(Debug, Default)]
pub struct ChangeBatch {
    changes: Vec<Change>,
    /// The objects of the changes, and behind them unused objects, whose memory is reused.
    objects: Vec<NewObject>,
    used: usize,
    /// The bytes of JSON.
    bytes: usize,
}

#[derive(Debug)]
enum Change {
    BeginList,
    /// The next object was created or changed.
    Upsert,
    /// The next object was deleted.
    Delete,
    Unreadable(Option<ObjectKey>),
    EndList,
    Progress(String),
    Notice(ReflectorEvent),
}

/// Objects beyond this number do not keep their memory.
const KEPT: usize = 1;

impl ChangeBatch {
    /// Returns whether the batch has no change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the bytes of the JSON of all objects.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees the memory that a single change does not need.
    pub fn shrink(&mut self) {
        self.objects.truncate(KEPT.max(self.used));
        self.changes.shrink_to(KEPT);
    }

    fn read(&mut self, object: Scanned<'_>, change: Change) -> Result<(), ScanError> {
        if self.used == self.objects.len() {
            self.objects.push(NewObject::default());
        }
        object.read(&mut self.objects[self.used])?;
        self.bytes += self.objects[self.used].json_length();
        self.used += 1;
        self.changes.push(change);
        Ok(())
    }
}

impl ReflectorStore for ChangeBatch {
    fn begin_list(&mut self) {
        self.changes.push(Change::BeginList);
    }

    fn upsert(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        self.read(object, Change::Upsert)
    }

    fn delete(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        self.read(object, Change::Delete)
    }

    fn unreadable(&mut self, key: Option<&ObjectKey>) {
        self.changes.push(Change::Unreadable(key.cloned()));
    }

    fn end_list(&mut self) {
        self.changes.push(Change::EndList);
    }

    fn progress(&mut self, resource_version: &str) {
        self.changes.push(Change::Progress(resource_version.to_owned()));
    }

    fn notice(&mut self, notice: ReflectorEvent) {
        self.changes.push(Change::Notice(notice));
    }
}

/// Applies the batches of a watch to an informer.
#[derive(Debug)]
pub struct BatchApplier {
    informer: InformerCore,
    source: ReflectorId,
    sharing: Sharing,
}

impl BatchApplier {
    /// Creates an applier for a watch whose reflector scans with `options`.
    pub fn new(informer: InformerCore, source: ReflectorId, options: &ScanOptions) -> Self {
        Self { informer, source, sharing: Sharing::new(options) }
    }

    /// Applies the changes of a batch, which becomes empty. The changes become visible together, as in [`InformerCore::feed`].
    pub fn apply(&mut self, batch: &mut ChangeBatch) {
        let sharing = &mut self.sharing;
        self.informer.feed(self.source, |feed| {
            let mut objects = batch.objects.iter();
            for change in batch.changes.drain(..) {
                match change {
                    Change::BeginList => feed.begin_list(),
                    Change::Upsert => objects.next().into_iter().for_each(|object| feed.put(object, sharing)),
                    Change::Delete => {
                        objects.next().into_iter().for_each(|object| feed.remove(object, sharing));
                    }
                    Change::Unreadable(key) => feed.unreadable(key.as_ref()),
                    Change::EndList => feed.end_list(),
                    Change::Progress(version) => feed.progress(&version),
                    Change::Notice(notice) => feed.notice(notice),
                }
            }
            feed.shared_memory(sharing.memory());
        });
        (batch.used, batch.bytes) = (0, 0);
    }
}

impl InformerFeed<'_, '_> {
    fn put(&mut self, object: &NewObject, sharing: &mut Sharing) {
        let object_ref = ObjectRef::of_new(self.source, object);
        // Cannot fail: the object has been read.
        let _ = self.transaction.upsert(object_ref, !self.state.synced, |old| Ok(sharing.store(object, old)));
    }

    fn remove(&mut self, object: &NewObject, sharing: &mut Sharing) {
        let text = |field| std::str::from_utf8(object.field(field)).unwrap_or_default();
        let (namespace, name) = (text(Field::Namespace), text(Field::Name));
        let last = sharing.store(object, None);
        self.transaction.remove(self.source, Some(namespace), name, Some(last));
    }
}
