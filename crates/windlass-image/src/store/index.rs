//! The names of a store's images: `index.json`.

use std::fs;

use super::{FileLock, Store};
use crate::{Descriptor, Error, Index, Reference, Result};

/// The annotation of a descriptor with the name of the image.
const NAME: &str = "org.opencontainers.image.ref.name";

/// The name under which containerd imports an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// The largest `index.json`, in bytes.
const LARGEST: u64 = 64 << 20;

/// A named image, index or artifact of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub reference: Reference,
    /// The manifest or index.
    pub descriptor: Descriptor,
}

impl Store {
    /// Returns the named images, indexes and artifacts, in the order of their names.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let entries = self.read_index()?.manifests.into_iter().filter_map(|descriptor| {
            let reference = descriptor.annotations.get(NAME)?.parse().ok()?;
            Some(Entry { reference, descriptor })
        });
        let mut entries: Vec<Entry> = entries.collect();
        entries.sort_by(|a, b| a.reference.cmp(&b.reference));
        Ok(entries)
    }

    /// Returns the manifest or index with a name.
    pub fn resolve(&self, reference: &Reference) -> Result<Option<Descriptor>> {
        let name = reference.to_string();
        let found =
            self.read_index()?.manifests.into_iter().find(|it| it.annotations.get(NAME) == Some(&name));
        Ok(found)
    }

    /// Names a manifest or an index. Another manifest loses the name.
    pub fn tag(&self, reference: &Reference, descriptor: &Descriptor) -> Result<()> {
        let name = reference.to_string();
        let mut named = descriptor.clone();
        named.annotations.insert(NAME.to_owned(), name.clone());
        named.annotations.insert(CONTAINERD_NAME.to_owned(), name.clone());
        self.change_index(|manifests| {
            manifests.retain(|other| other.annotations.get(NAME) != Some(&name));
            manifests.push(named);
            true
        })?;
        Ok(())
    }

    /// Removes a name. Returns whether the store had the name. Blobs stay until [`collect_garbage`](Self::collect_garbage).
    pub fn remove(&self, reference: &Reference) -> Result<bool> {
        let name = reference.to_string();
        self.change_index(|manifests| {
            let before = manifests.len();
            manifests.retain(|other| other.annotations.get(NAME) != Some(&name));
            manifests.len() != before
        })
    }

    pub(super) fn lock(&self) -> Result<FileLock> {
        FileLock::exclusive(&self.folder.join(".lock"))
    }

    /// Changes the descriptors of the index if `change` returns true.
    fn change_index(&self, change: impl FnOnce(&mut Vec<Descriptor>) -> bool) -> Result<bool> {
        let _lock = self.lock()?;
        let mut index = self.read_index()?;
        let changed = change(&mut index.manifests);
        if changed {
            let bytes = serde_json::to_vec(&index).map_err(Error::invalid)?;
            self.replace("index.json", &bytes)?;
        }
        Ok(changed)
    }

    fn read_index(&self) -> Result<Index> {
        let path = self.folder.join("index.json");
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Index::new(Vec::new())),
            Err(error) => return Err(Error::storage("read", &path, error)),
        };
        if size > LARGEST {
            return Err(Error::Invalid(format!("{} is larger than {LARGEST} bytes", path.display())));
        }
        let bytes = fs::read(&path).map_err(|error| Error::storage("read", &path, error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::Invalid(format!("{} is invalid: {error}", path.display())))
    }
}
