//! A store of images: an OCI layout that the processes of a user share.
//!
//! ```text
//! oci-layout  index.json       the layout's version; the names of images
//! blobs/sha256/HEX             manifests, configurations and layers
//! uploads/                     blobs that are not complete
//! roots/HEX                    unpacked images, by chain ID
//! ```
//!
//! Blobs and `index.json` are replaced by atomic renames, so a reader needs no lock. Writers of `index.json` lock the file `.lock`; on file
//! systems without locks, the last of two writers at the same time wins.

mod blob;
mod garbage;
mod index;
mod lock;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

pub use self::blob::BlobWriter;
pub use self::garbage::Collected;
pub use self::index::Entry;
pub(crate) use self::lock::FileLock;
use crate::{Descriptor, Digest, Error, Result};

/// The largest index, manifest or configuration, in bytes.
pub(crate) const LARGEST_DOCUMENT: u64 = 4 << 20;

/// A store of images. Cheap to clone: a store is a path.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Returns the store's default folder: `windlass/images` in `$XDG_CACHE_HOME`, or in `~/.cache`. Returns `None` without a home.
    pub fn default_folder() -> Option<PathBuf> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(cache.join("windlass/images"))
    }

    /// Opens a store. The folder is created with mode 0700 if the folder does not exist.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self> {
        let store = Self { folder: folder.into() };
        if !store.folder.join("oci-layout").is_file() {
            store.create()?;
        }
        Ok(store)
    }

    fn create(&self) -> Result<()> {
        let existed = self.folder.is_dir();
        for folder in ["blobs/sha256", "uploads", "roots"] {
            let path = self.folder.join(folder);
            fs::create_dir_all(&path).map_err(|error| Error::storage("create", &path, error))?;
        }
        if !existed {
            make_private(&self.folder)?;
        }
        self.replace("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)
    }

    /// Returns the folder of the store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the digests of the manifests that a descriptor reaches.
    pub(crate) fn manifests_of(&self, descriptor: &Descriptor) -> Result<Vec<Digest>> {
        if !crate::media_type::is_index(&descriptor.media_type) || !self.has(&descriptor.digest) {
            return Ok(vec![descriptor.digest.clone()]);
        }
        let index: crate::Index = self.document(&descriptor.digest)?;
        Ok(index.manifests.into_iter().map(|manifest| manifest.digest).collect())
    }

    /// Returns the path of a blob, whether the blob exists or not.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs/sha256").join(digest.hex())
    }

    /// Returns whether the store has a blob.
    pub fn has(&self, digest: &Digest) -> bool {
        self.blob_path(digest).is_file()
    }

    /// Opens a blob.
    pub fn blob(&self, digest: &Digest) -> Result<File> {
        let path = self.blob_path(digest);
        File::open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound(format!("the store has no blob {digest}")),
            _ => Error::storage("open", &path, error),
        })
    }

    /// Reads a manifest, index or configuration. Fails if the document is larger than 4 MiB or has another digest.
    pub fn read(&self, digest: &Digest) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = self.blob(digest)?.take(LARGEST_DOCUMENT + 1);
        reader
            .read_to_end(&mut bytes)
            .map_err(|error| Error::storage("read", &self.blob_path(digest), error))?;
        if bytes.len() as u64 > LARGEST_DOCUMENT {
            return Err(Error::Invalid(format!(
                "the document {digest} is larger than {LARGEST_DOCUMENT} bytes"
            )));
        }
        let found = Digest::of(&bytes);
        if found != *digest {
            let what = format!("the blob {}", self.blob_path(digest).display());
            return Err(Error::WrongDigest { what, expected: digest.clone(), found });
        }
        Ok(bytes)
    }

    /// Reads and parses a document.
    pub(crate) fn document<T: serde::de::DeserializeOwned>(&self, digest: &Digest) -> Result<T> {
        let bytes = self.read(digest)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::Invalid(format!("the document {digest} is invalid: {error}")))
    }

    /// Writes a blob.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest> {
        let mut writer = self.writer()?;
        writer.write_all(bytes).map_err(|error| Error::storage("write to", &self.folder, error))?;
        writer.commit(None)
    }

    /// Begins a blob. A writer that is dropped leaves nothing behind.
    pub fn writer(&self) -> Result<BlobWriter> {
        BlobWriter::new(self)
    }

    /// Replaces a file of the layout by an atomic rename.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let cannot = |error: std::io::Error| Error::storage("write", &path, error);
        let mut draft = tempfile::NamedTempFile::new_in(&self.folder).map_err(cannot)?;
        draft.write_all(bytes).map_err(cannot)?;
        draft.persist(&path).map_err(|error| cannot(error.error))?;
        Ok(())
    }
}

#[cfg(unix)]
fn make_private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .map_err(|error| Error::storage("change the mode of", folder, error))
}

#[cfg(not(unix))]
fn make_private(_folder: &Path) -> Result<()> {
    Ok(())
}
