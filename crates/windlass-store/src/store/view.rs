//! Immutable pictures of a whole server.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use rpds::RedBlackTreeMapSync;

use windlass_wire::GroupResource;

use super::Stored;

/// A kind of stored object: the group and the plural name, for all versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// The API group, empty for the core group.
    pub group: Arc<str>,
    /// The plural name in lower case.
    pub resource: Arc<str>,
}

impl ResourceId {
    /// Creates the name of a resource from the API group and the plural name.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }

    /// Returns the name of the resource in errors.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.resource)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// The objects of a resource.
#[derive(Clone)]
struct Objects {
    by_key: RedBlackTreeMapSync<Arc<str>, Arc<Stored>>,
    /// Exclusive claims of objects, and the key of the claimant.
    claims: RedBlackTreeMapSync<Box<str>, Arc<str>>,
    /// The revision of the last change.
    changed: u64,
}

impl Objects {
    fn empty() -> Self {
        Self { by_key: RedBlackTreeMapSync::new_sync(), claims: RedBlackTreeMapSync::new_sync(), changed: 0 }
    }
}

/// The expiry of an object that the server removes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry {
    /// The time of the removal.
    pub at: Timestamp,
    /// The resource of the object.
    pub id: ResourceId,
    /// The key of the object.
    pub key: Arc<str>,
}

/// All objects of a server at a revision. Immutable; a clone costs a few pointers.
#[derive(Clone)]
pub struct View {
    revision: u64,
    resources: RedBlackTreeMapSync<ResourceId, Objects>,
    expiries: RedBlackTreeMapSync<Expiry, ()>,
}

impl View {
    pub(super) fn empty() -> Self {
        // Revision 1 is taken: "0" has a special meaning in requests.
        Self {
            revision: 1,
            resources: RedBlackTreeMapSync::new_sync(),
            expiries: RedBlackTreeMapSync::new_sync(),
        }
    }

    /// Returns the revision of the last write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the revision of the last write or removal of an object of the resource; 0 without a write.
    pub fn changed(&self, id: &ResourceId) -> u64 {
        self.resources.get(id).map_or(0, |objects| objects.changed)
    }

    /// Returns the object stored under `key`: `namespace/name`, or the name of a cluster-scoped object.
    pub fn get(&self, id: &ResourceId, key: &str) -> Option<&Arc<Stored>> {
        self.resources.get(id)?.by_key.get(key)
    }

    /// Works like [`View::get`], with the view's own key.
    pub fn entry(&self, id: &ResourceId, key: &str) -> Option<(&Arc<str>, &Arc<Stored>)> {
        self.resources.get(id)?.by_key.get_key_value(key)
    }

    /// Returns whether an object of the resource, except the object under `but_for`, has an exclusive claim.
    pub fn is_claimed(&self, id: &ResourceId, claim: &str, but_for: &str) -> bool {
        let holder = self.resources.get(id).and_then(|objects| objects.claims.get(claim));
        holder.is_some_and(|holder| **holder != *but_for)
    }

    /// Returns the number of objects of a resource, in all namespaces.
    pub fn count(&self, id: &ResourceId) -> usize {
        self.resources.get(id).map_or(0, |objects| objects.by_key.size())
    }

    /// Returns the objects that are due for removal at `now`, sorted by due time.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = &Expiry> {
        self.expiries.keys().take_while(move |expiry| expiry.at <= now)
    }

    /// Returns the objects of a resource in key order, of a namespace or of all namespaces.
    pub fn range<'a>(
        &'a self,
        id: &ResourceId,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> + use<'a> {
        self.range_from(id, namespace, None)
    }

    /// Works like [`View::range`], beginning at the first key that is not less than `start`.
    pub fn range_from<'a>(
        &'a self,
        id: &ResourceId,
        namespace: Option<&str>,
        start: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> + use<'a> {
        let prefix = namespace.map(|namespace| format!("{namespace}/"));
        let from: Arc<str> = match (start, &prefix) {
            (Some(start), Some(prefix)) => start.max(prefix.as_str()).into(),
            (Some(start), None) => start.into(),
            (None, Some(prefix)) => prefix.as_str().into(),
            (None, None) => "".into(),
        };
        let objects = self.resources.get(id);
        objects
            .into_iter()
            .flat_map(move |objects| objects.by_key.range(from.clone()..))
            .take_while(move |(key, _)| prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix.as_str())))
    }

    /// Returns the state after an object was written.
    pub(super) fn with(&self, revision: u64, id: &ResourceId, key: &Arc<str>, stored: Arc<Stored>) -> Self {
        let mut objects = self.resources.get(id).cloned().unwrap_or_else(Objects::empty);
        let mut expiries = self.expiries.clone();
        if let Some(old) = objects.by_key.get(key) {
            forget_attrs(&mut objects.claims, &mut expiries, id, key, old);
        }
        for claim in &stored.attrs().claims {
            objects.claims.insert_mut(claim.clone(), Arc::clone(key));
        }
        if let Some(at) = stored.attrs().expires {
            expiries.insert_mut(Expiry { at, id: id.clone(), key: Arc::clone(key) }, ());
        }
        objects.by_key.insert_mut(Arc::clone(key), stored);
        objects.changed = revision;
        Self { revision, resources: self.resources.insert(id.clone(), objects), expiries }
    }

    /// Returns the state after an object was removed.
    pub(super) fn without(&self, revision: u64, id: &ResourceId, key: &str) -> Self {
        let Some(objects) = self.resources.get(id) else { return self.clone().at(revision) };
        let mut objects = objects.clone();
        let mut expiries = self.expiries.clone();
        if let Some((key, old)) =
            objects.by_key.get_key_value(key).map(|(key, old)| (key.clone(), old.clone()))
        {
            forget_attrs(&mut objects.claims, &mut expiries, id, &key, &old);
        }
        objects.by_key.remove_mut(key);
        objects.changed = revision;
        Self { revision, resources: self.resources.insert(id.clone(), objects), expiries }
    }

    /// Returns the state after all objects of a resource were removed.
    pub(super) fn without_resource(&self, revision: u64, id: &ResourceId) -> Self {
        let mut expiries = self.expiries.clone();
        for (key, stored) in self.range(id, None) {
            if let Some(at) = stored.attrs().expires {
                expiries.remove_mut(&Expiry { at, id: id.clone(), key: Arc::clone(key) });
            }
        }
        Self { revision, resources: self.resources.remove(id), expiries }
    }

    pub(super) fn at(mut self, revision: u64) -> Self {
        self.revision = revision;
        self
    }
}

fn forget_attrs(
    claims: &mut RedBlackTreeMapSync<Box<str>, Arc<str>>,
    expiries: &mut RedBlackTreeMapSync<Expiry, ()>,
    id: &ResourceId,
    key: &Arc<str>,
    old: &Stored,
) {
    for claim in &old.attrs().claims {
        claims.remove_mut(claim);
    }
    if let Some(at) = old.attrs().expires {
        expiries.remove_mut(&Expiry { at, id: id.clone(), key: Arc::clone(key) });
    }
}
