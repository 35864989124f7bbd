//! Blobs that are written to a store.

use std::fs::{self, File};
use std::io::{self, Write};
use std::time::SystemTime;

use tempfile::NamedTempFile;

use super::Store;
use crate::{Digest, Error, Hasher, Result};

/// A blob that is not complete. The blob is in the store after [`commit`](Self::commit); dropping the writer removes the bytes.
#[derive(Debug)]
pub struct BlobWriter {
    store: Store,
    draft: NamedTempFile,
    hasher: Hasher,
    size: u64,
}

impl BlobWriter {
    pub(super) fn new(store: &Store) -> Result<Self> {
        let folder = store.folder.join("uploads");
        let draft =
            NamedTempFile::new_in(&folder).map_err(|error| Error::storage("write to", &folder, error))?;
        Ok(Self { store: store.clone(), draft, hasher: Hasher::new(), size: 0 })
    }

    /// Returns a name that no other blob has that is written at the moment.
    pub(crate) fn id(&self) -> String {
        let name = self.draft.path().file_name().unwrap_or_default().to_string_lossy();
        name.chars().filter(char::is_ascii_alphanumeric).collect()
    }

    /// Returns the number of bytes that were written.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the digest of the bytes that were written.
    pub fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }

    /// Moves the blob into the store, and returns the blob's digest. Fails if the digest is not the expected digest.
    pub fn commit(self, expected: Option<&Digest>) -> Result<Digest> {
        let found = self.hasher.finish();
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(Error::WrongDigest {
                what: "the blob".to_owned(),
                expected: expected.clone(),
                found,
            });
        }
        let path = self.store.blob_path(&found);
        // A crash of the machine may have cut a blob off.
        if fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() == self.size) {
            // A blob that is used again is not garbage for the next hour.
            let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        } else {
            self.draft.persist(&path).map_err(|error| Error::storage("write", &path, error.error))?;
        }
        Ok(found)
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.draft.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.flush()
    }
}
