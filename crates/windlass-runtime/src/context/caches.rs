//! The caches that one controller declared.

use std::{sync::Arc, time::Duration};

use hashbrown::HashMap;
use kube_core::{ApiResource, Resource, metadata::PartialObjectMeta};
use parking_lot::RwLock;
use windlass_cache::{DecodeError, RawObject};

use crate::{
    client::path::GroupResource,
    error::{Error, Result},
    informer::SharedInformer,
    kind::Object,
    kind_cache::KindCache,
    lister::Lister,
    read_your_writes::{LogId, WriteLog, WriteRef},
    reader::Reader,
    undecodable::UndecodableReporter,
};

/// Makes the caches of kinds that no watch declares. Only a fake cluster does: a real cache is empty until its first list has ended.
pub(crate) trait UndeclaredCaches: Send + Sync {
    /// Makes the cache of a kind, which shows its objects from the beginning.
    fn informer(&self, resource: &ApiResource) -> Result<SharedInformer>;

    /// The resource with this API version and kind.
    fn resource_of_kind(&self, api_version: &str, kind: &str) -> ApiResource;
}

/// The caches of a controller, by kind. Reading another kind is an error: a [`Lister`] never starts a watch silently.
pub(crate) struct Caches {
    reader: Reader,
    writes: WriteLog,
    reporter: Arc<UndecodableReporter>,
    kinds: RwLock<HashMap<GroupResource, Vec<DeclaredCache>, foldhash::fast::FixedState>>,
    undeclared: Option<Arc<dyn UndeclaredCaches>>,
}

/// A cache that reads may use.
struct DeclaredCache {
    /// The name of the watch; `None` for the one that reads without a name use.
    name: Option<String>,
    /// The number of watches that declared it.
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
    pub(crate) fn new(reader: Reader, writes: WriteLog, reporter: Arc<UndecodableReporter>) -> Self {
        Self { reader, writes, reporter, kinds: RwLock::default(), undeclared: None }
    }

    /// Lets reads use kinds that no watch declares.
    pub(crate) fn with_undeclared(mut self, undeclared: Arc<dyn UndeclaredCaches>) -> Self {
        self.undeclared = Some(undeclared);
        self
    }

    /// Declares the cache of a watch.
    ///
    /// # Errors
    /// Reads would not know which of two caches to use.
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
                     ambiguous; name one of the watches with `.named(..)` and read it with `lister_named`, or mark it \
                     `.events_only()`"
                ),
                (Some(name), _) => {
                    format!("{reader} names two different watches of {kind} {name:?}; give one another name")
                }
            }));
        }
        // One record of unseen writes for each watch, however many names it has.
        let cache = declared.iter().find(|known| known.cache.informer.is_same(informer)).map_or_else(
            || {
                let writes = self.writes.follow(GroupResource::of(resource), informer.clone());
                Arc::new(KindCache::new(informer.clone(), writes, self.reporter.clone()))
            },
            |known| known.cache.clone(),
        );
        declared.push(DeclaredCache { name: name.map(str::to_owned), watches: 1, cache });
        Ok(())
    }

    /// Takes back one declaration of [`declare`](Self::declare).
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
    }

    /// Returns a cache of a kind: of the version of `resource`, or else of another version.
    fn find(&self, resource: &ApiResource, fits: impl Fn(&DeclaredCache) -> bool) -> Option<Arc<KindCache>> {
        let kinds = self.kinds.read();
        let fitting =
            || kinds.get(&GroupResource::of(resource)).into_iter().flatten().filter(|known| fits(known));
        let of_version = fitting().find(|known| known.api_version() == resource.api_version);
        of_version.or_else(|| fitting().next()).map(|known| known.cache.clone())
    }

    /// A lister of a kind that `C` names by itself.
    pub(crate) fn lister<C: Object>(&self) -> Result<Lister<C>> {
        self.lister_dynamic(&self.resource_of::<C>()?)
    }

    pub(crate) fn lister_dynamic<C: Object>(&self, resource: &ApiResource) -> Result<Lister<C>> {
        self.whole(resource)?.map(Lister::new).ok_or_else(|| self.not_declared(resource))
    }

    /// The cache of whole objects that reads without a name use.
    pub(super) fn whole(&self, resource: &ApiResource) -> Result<Option<Arc<KindCache>>> {
        let find = || self.find(resource, |known| known.name.is_none() && !known.metadata_only());
        if let (None, Some(undeclared)) = (find(), &self.undeclared) {
            self.declare(None, &undeclared.informer(resource)?)?;
        }
        Ok(find())
    }

    /// A lister of the watch that was given a name.
    pub(crate) fn lister_named<C: Object>(&self, name: &str) -> Result<Lister<C>> {
        let kinds = self.kinds.read();
        let static_kind = C::static_kind().map(|kind| GroupResource::of(&kind.resource));
        let mut declared = kinds
            .iter()
            .filter(|(resource, _)| static_kind.as_ref().is_none_or(|wanted| wanted == *resource))
            .flat_map(|(_, declared)| declared);
        let found = declared.find(|known| known.name.as_deref() == Some(name) && !known.metadata_only());
        let found = found.map(|known| known.cache.clone());
        drop(kinds);
        let found = match (found, C::static_kind()) {
            (None, Some(kind)) if self.undeclared.is_some() => self.whole(&kind.resource)?,
            (found, _) => found,
        };
        found.map(Lister::new).ok_or_else(|| {
            let kind = static_kind.map_or_else(String::new, |kind| format!(" of {}", kind.resource));
            Error::setup(format!(
                "{} reads the watch{kind} named {name:?}, but declares none; add `.named({name:?})` to a watch",
                self.reader
            ))
        })
    }

    /// A lister of the metadata of a kind, from a watch of metadata or of whole objects.
    pub(crate) fn metadata_lister<C>(&self, resource: &ApiResource) -> Result<Lister<PartialObjectMeta<C>>>
    where
        C: Resource + Send + Sync + 'static,
    {
        let found = self
            .find(resource, |known| known.name.is_none() && known.metadata_only())
            .map_or_else(|| self.whole(resource), |found| Ok(Some(found)))?;
        found.map(Lister::new).ok_or_else(|| self.not_declared(resource))
    }

    fn resource_of<C: Object>(&self) -> Result<ApiResource> {
        C::static_kind().map(|kind| kind.resource).ok_or_else(|| {
            Error::setup(format!(
                "{}: a `DynamicObject` may be of any kind; name it: `lister_dynamic(&resource)`",
                self.reader
            ))
        })
    }

    fn not_declared(&self, resource: &ApiResource) -> Error {
        let kind = &resource.kind;
        if self.find(resource, |known| known.name.is_none() && known.metadata_only()).is_some() {
            return Error::setup(format!(
                "{} watches only the metadata of {kind}; read it with `metadata_lister`, or watch {kind} whole",
                self.reader
            ));
        }
        Error::not_declared(self.reader.clone(), kind)
    }

    /// The resource with this API version and kind, if it is declared.
    pub(crate) fn resource_of_kind(&self, api_version: &str, kind: &str) -> Option<ApiResource> {
        let kinds = self.kinds.read();
        let mut resources = kinds.values().flatten().map(|known| known.cache.informer.resource());
        resources.find(|known| known.api_version == api_version && known.kind == kind).cloned().or_else(
            || self.undeclared.as_ref().map(|undeclared| undeclared.resource_of_kind(api_version, kind)),
        )
    }

    /// Reports an object that a mapper could not decode.
    pub(crate) fn report_undecodable(&self, resource: &ApiResource, object: &RawObject, error: &DecodeError) {
        for known in self.kinds.read().get(&GroupResource::of(resource)).into_iter().flatten() {
            known.cache.informer.report_undecodable(object);
        }
        self.reporter.report(resource, object, error);
    }

    /// The writes that these caches follow.
    pub(crate) fn writes(&self) -> &WriteLog {
        &self.writes
    }

    /// The identity of the followed client.
    fn log(&self) -> LogId {
        self.writes.id()
    }

    /// The caches that hold the written kind; none if another cluster was written to.
    fn caches_of(&self, write: &WriteRef) -> Vec<Arc<KindCache>> {
        if write.log != self.log() {
            return Vec::new();
        }
        let kinds = self.kinds.read();
        kinds.get(&*write.resource).into_iter().flatten().map(|known| known.cache.clone()).collect()
    }

    /// Whether all caches that hold the written kind have seen a write, will never show the write, or have been failing for `patience`.
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
