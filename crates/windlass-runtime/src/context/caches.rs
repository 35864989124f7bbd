//! The caches that a controller declared.

use std::{
    any::Any,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use hashbrown::HashMap;
use kube_core::ApiResource;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use windlass_cache::{DecodeError, RawObject};

use super::typed_listers::TypedListers;
use crate::{
    client::path::{GroupResource, GroupResourceRef},
    error::{Error, Result},
    informer::SharedInformer,
    kind::Object,
    kind_cache::KindCache,
    kind_ref::KindRef,
    lister::Lister,
    read_your_writes::{JournalId, WriteJournal, WriteRef},
    reader::Reader,
    undecodable::UndecodableReporter,
};

/// Makes the caches of kinds that no watch declares, in a fake cluster only: a real cache is empty until the first list has ended.
pub(crate) trait UndeclaredCaches: Send + Sync {
    /// Makes the cache of a kind, which shows the objects from the beginning.
    fn informer(&self, resource: &ApiResource) -> Result<SharedInformer>;

    /// Returns the resource with this API version and kind.
    fn resource_of_kind(&self, api_version: &str, kind: &str) -> ApiResource;
}

/// The caches of a controller, by kind. A read of an undeclared kind is an error: a [`Lister`] never starts a watch silently.
pub(crate) struct Caches {
    reader: Reader,
    journal: WriteJournal,
    reporter: Arc<UndecodableReporter>,
    kinds: RwLock<HashMap<GroupResource, Vec<DeclaredCache>, foldhash::fast::FixedState>>,
    typed: TypedListers,
    undeclared: Option<Arc<dyn UndeclaredCaches>>,
    /// The handles of the controller, which may add watches.
    handles: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// The kinds that will be declared when the server serves the kinds.
    expected: RwLock<Vec<GroupResource>>,
}

/// A cache that reads may use.
struct DeclaredCache {
    /// The name of the watch; `None` for the watch that reads without a name use.
    name: Option<String>,
    /// The number of watches that declared the cache.
    watches: usize,
    cache: Arc<KindCache>,
}

impl DeclaredCache {
    fn metadata_only(&self) -> bool {
        self.cache.informer.options().metadata_only
    }

    fn api_version(&self) -> &str {
        &self.cache.informer.resource().api_version
    }

    fn is(&self, name: Option<&str>, informer: &SharedInformer) -> bool {
        self.name.as_deref() == name && self.cache.informer.is_same(informer)
    }
}

impl Caches {
    pub(crate) fn new(reader: Reader, journal: WriteJournal, reporter: Arc<UndecodableReporter>) -> Self {
        Self {
            reader,
            journal,
            reporter,
            kinds: RwLock::default(),
            typed: TypedListers::default(),
            undeclared: None,
            handles: OnceLock::new(),
            expected: RwLock::default(),
        }
    }

    /// Announces a declaration: until then, the error of a read says that the server does not serve the kind.
    pub(crate) fn expect(&self, resource: &ApiResource) {
        self.expected.write().push(GroupResource::of(resource));
    }

    /// Lets failed reads of undeclared kinds be repeated while a handle lives: a handle may add the watch of the kind.
    pub(crate) fn set_handles(&self, handles: Weak<dyn Any + Send + Sync>) {
        let _ = self.handles.set(handles);
    }

    /// Returns the error of a read without a declaration: a terminal error, unless a handle may add the declaration.
    pub(crate) fn undeclared(&self, error: Error) -> Error {
        let may_be_added = self.handles.get().is_some_and(|handles| handles.strong_count() > 0);
        if may_be_added { error } else { Error::terminal(error) }
    }

    /// Lets reads use kinds that no watch declares.
    pub(crate) fn with_undeclared(mut self, undeclared: Arc<dyn UndeclaredCaches>) -> Self {
        self.undeclared = Some(undeclared);
        self
    }

    /// Declares the cache of a watch.
    ///
    /// # Errors
    /// Two caches would fit a read.
    pub(crate) fn declare(&self, name: Option<&str>, informer: &SharedInformer) -> Result<()> {
        let resource = informer.resource();
        let mut kinds = self.kinds.write();
        let declared = kinds.entry(GroupResource::of(resource)).or_default();
        if let Some(known) = declared.iter_mut().find(|known| known.is(name, informer)) {
            known.watches += 1;
            return Ok(());
        }
        let metadata_only = informer.options().metadata_only;
        let clashes = |known: &DeclaredCache| {
            // Watches of two versions of a kind are told apart by the version.
            known.name.as_deref() == name
                && (name.is_some()
                    || known.metadata_only() == metadata_only && known.api_version() == resource.api_version)
        };
        if declared.iter().any(clashes) {
            let (reader, kind) = (&self.reader, &resource.kind);
            return Err(Error::setup(match (name, reader) {
                (_, Reader::Runnable(_)) => format!(
                    "{reader} reads {kind} twice with different namespaces or selectors, so a read of {kind} is ambiguous; declare one cache"
                ),
                (None, _) => format!(
                    "{reader} watches {kind} twice with different namespaces or selectors, so a read of {kind} is \
                     ambiguous; name the kind of one watch, `kind::<{kind}>().named(..)`, and read with `lister_of` of the same \
                     argument, or mark the watch `.without_reads()`"
                ),
                (Some(name), _) => {
                    format!("{reader} names two different watches of {kind} {name:?}; give one another name")
                }
            }));
        }
        // A single record of unseen writes for each watch, however many names the watch has.
        let cache = declared.iter().find(|known| known.cache.informer.is_same(informer)).map_or_else(
            || {
                let writes = self.journal.follow(GroupResource::of(resource), informer.clone());
                Arc::new(KindCache::new(informer.clone(), writes, self.reporter.clone()))
            },
            |known| known.cache.clone(),
        );
        declared.push(DeclaredCache { name: name.map(str::to_owned), watches: 1, cache });
        drop(kinds);
        self.typed.clear();
        Ok(())
    }

    /// Takes back a declaration of [`declare`](Self::declare).
    pub(crate) fn retract(&self, name: Option<&str>, informer: &SharedInformer) {
        let resource = GroupResource::of(informer.resource());
        let mut kinds = self.kinds.write();
        let Some(declared) = kinds.get_mut(&resource) else { return };
        if let Some(place) = declared.iter().position(|known| known.is(name, informer)) {
            declared[place].watches -= 1;
            if declared[place].watches == 0 {
                declared.remove(place);
            }
        }
        if declared.is_empty() {
            kinds.remove(&resource);
        }
        drop(kinds);
        self.typed.clear();
    }

    /// Returns a cache of a kind: of the version of `resource`, or else of another version.
    fn find(&self, resource: &ApiResource, fits: impl Fn(&DeclaredCache) -> bool) -> Option<Arc<KindCache>> {
        let kinds = self.kinds.read();
        let declared = kinds.get(&GroupResourceRef::of(resource)).into_iter().flatten();
        let fitting = || declared.clone().filter(|known| fits(known));
        let of_version = fitting().find(|known| known.api_version() == resource.api_version);
        of_version.or_else(|| fitting().next()).map(|known| known.cache.clone())
    }

    /// Returns the lister of a kind that `C` names, if the kind was read before.
    pub(crate) fn known_lister<C: 'static>(&self) -> Option<Lister<C>> {
        self.typed.known()
    }

    /// Returns a lister of a kind that `C` names.
    pub(crate) fn lister<C: Object>(&self) -> Result<Lister<C>> {
        self.typed.get(|| {
            let kind = C::static_kind().ok_or_else(|| {
                Error::setup(format!(
                    "{}: a `DynamicObject` may be of any kind; name the kind: `lister_of(&resource)`",
                    self.reader
                ))
            })?;
            self.find_lister(&kind.resource, None, C::metadata_api())
        })
    }

    /// Returns a lister of a kind, or of the watch that the kind names.
    pub(crate) fn lister_of<C>(&self, kind: &KindRef<C>) -> Result<Lister<C>>
    where
        C: DeserializeOwned + Send + Sync + 'static,
    {
        self.find_lister(&kind.kind.resource, kind.name.as_deref(), kind.metadata_only)
    }

    /// Returns a lister of a kind: of the watch with a name, of the metadata, or of whole objects.
    pub(crate) fn find_lister<C>(
        &self,
        resource: &ApiResource,
        name: Option<&str>,
        metadata: bool,
    ) -> Result<Lister<C>>
    where
        C: DeserializeOwned + Send + Sync + 'static,
    {
        let found = match name {
            Some(name) => self.named(resource, name, metadata)?,
            None if metadata => self.metadata(resource)?,
            None => self.whole(resource)?,
        };
        found.map(Lister::new).ok_or_else(|| {
            self.undeclared(match name {
                Some(name) => self.no_such_name(resource, name),
                None => self.not_declared(resource, metadata),
            })
        })
    }

    /// Returns the cache of whole objects that reads without a name use.
    pub(super) fn whole(&self, resource: &ApiResource) -> Result<Option<Arc<KindCache>>> {
        let find = || self.find(resource, |known| known.name.is_none() && !known.metadata_only());
        if let (None, Some(undeclared)) = (find(), &self.undeclared) {
            self.declare(None, &undeclared.informer(resource)?)?;
        }
        Ok(find())
    }

    /// Returns the cache with a name. A cache of whole objects also serves reads of the metadata.
    fn named(&self, resource: &ApiResource, name: &str, metadata: bool) -> Result<Option<Arc<KindCache>>> {
        let is_named = |known: &DeclaredCache| known.name.as_deref() == Some(name);
        match self.find(resource, |known| is_named(known) && (metadata || !known.metadata_only())) {
            None if self.undeclared.is_some() => self.whole(resource),
            found => Ok(found),
        }
    }

    /// Returns the cache that reads of the metadata without a name use: of the metadata, or else of whole
    /// objects.
    fn metadata(&self, resource: &ApiResource) -> Result<Option<Arc<KindCache>>> {
        match self.find(resource, |known| known.name.is_none() && known.metadata_only()) {
            None => self.whole(resource),
            found => Ok(found),
        }
    }

    fn no_such_name(&self, resource: &ApiResource, name: &str) -> Error {
        let kind = &resource.kind;
        Error::setup(format!(
            "{} reads the watch of {kind} named {name:?}, but declares none; declare `Watch::owned(kind::<{kind}>().named({name:?}))` \
             or another watch with this name",
            self.reader
        ))
    }

    fn not_declared(&self, resource: &ApiResource, metadata: bool) -> Error {
        let kind = &resource.kind;
        if self.expected.read().contains(&GroupResource::of(resource)) {
            return Error::setup(format!(
                "{} reads {kind}, which the API server does not serve yet; is its CRD installed?",
                self.reader
            ));
        }
        if metadata {
            return Error::not_declared(self.reader.clone(), format!("PartialObjectMeta<{kind}>"));
        }
        if self.find(resource, |known| known.name.is_none() && known.metadata_only()).is_some() {
            return Error::setup(format!(
                "{} watches only the metadata of {kind}; read a `PartialObjectMeta<{kind}>`, or watch {kind} whole",
                self.reader
            ));
        }
        Error::not_declared(self.reader.clone(), kind.as_str())
    }

    /// Returns the resource with this API version and kind, if declared.
    pub(crate) fn resource_of_kind(&self, api_version: &str, kind: &str) -> Option<ApiResource> {
        let kinds = self.kinds.read();
        let mut resources = kinds.values().flatten().map(|known| known.cache.informer.resource());
        resources.find(|known| known.api_version == api_version && known.kind == kind).cloned().or_else(
            || self.undeclared.as_ref().map(|undeclared| undeclared.resource_of_kind(api_version, kind)),
        )
    }

    /// Reports an object that a mapper could not decode.
    pub(crate) fn report_undecodable(&self, resource: &ApiResource, object: &RawObject, error: &DecodeError) {
        for known in self.kinds.read().get(&GroupResourceRef::of(resource)).into_iter().flatten() {
            known.cache.informer.report_undecodable(object);
        }
        self.reporter.report(resource, object, error);
    }

    /// The journal of the client that these caches belong to.
    pub(crate) fn journal(&self) -> &WriteJournal {
        &self.journal
    }

    /// Returns the identity of the followed client.
    fn log(&self) -> JournalId {
        self.journal.id()
    }

    /// Returns the caches that hold the written kind; none for a write to a further cluster.
    fn caches_of(&self, write: &WriteRef) -> Vec<Arc<KindCache>> {
        if write.log != self.log() {
            return Vec::new();
        }
        let kinds = self.kinds.read();
        kinds.get(&*write.resource).into_iter().flatten().map(|known| known.cache.clone()).collect()
    }

    /// Returns whether all caches that hold the written kind have seen a write, will never show the write, or have been failing for `patience`.
    pub(crate) fn have_seen(&self, write: &WriteRef, patience: Duration) -> bool {
        self.caches_of(write).iter().all(|cache| cache.has_seen(write, patience))
    }

    /// Completes when [`have_seen`](Self::have_seen) is true.
    pub(crate) async fn seen(&self, write: &WriteRef, patience: Duration) {
        for cache in self.caches_of(write) {
            cache.seen(write, patience).await;
        }
    }

    /// Forgets the writes that the caches have seen, and returns the number of writes that stay.
    pub(crate) fn sweep(&self) -> usize {
        let kinds = self.kinds.read();
        kinds.values().flatten().map(|known| known.cache.sweep()).sum()
    }
}
