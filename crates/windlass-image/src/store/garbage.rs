//! Removal of blobs and unpacked images that no name needs.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{FileLock, Store};
use crate::digest::chain_id;
use crate::{Digest, Error, ImageConfig, Result};

/// Removed blobs and unpacked images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The number of removed blobs.
    pub blobs: u64,
    /// The size of the removed blobs, in bytes.
    pub bytes: u64,
    /// The number of removed unpacked images.
    pub roots: u64,
}

impl Store {
    /// Removes blobs and unpacked images that no named image needs.
    ///
    /// Blobs that were written less than `grace` ago stay: another process may name their image soon. An unpacked image that a process
    /// uses stays too.
    pub fn collect_garbage(&self, grace: Duration) -> Result<Collected> {
        let _lock = self.lock()?;
        let reached = self.reached()?;
        let chains = self.chains(&reached);
        let mut collected = Collected::default();
        for entry in entries(&self.folder.join("blobs/sha256"))? {
            let is_needed = entry.file_name().to_str().is_some_and(|name| reached.contains(name));
            if !is_needed && is_older(&entry, grace) {
                collected.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
                collected.blobs += 1;
                remove_file(&entry.path())?;
            }
        }
        for entry in entries(&self.folder.join("uploads"))?.iter().filter(|entry| is_older(entry, grace)) {
            remove_file(&entry.path())?;
        }
        for entry in entries(&self.folder.join("roots"))? {
            collected.roots += u64::from(remove_root(&entry, &chains, grace)?);
        }
        Ok(collected)
    }

    /// Returns the digests that the names reach, in hexadecimal digits.
    fn reached(&self) -> Result<HashSet<String>> {
        let roots = self.list()?.into_iter().map(|entry| entry.descriptor.digest);
        let (referrers, images): (Vec<_>, Vec<_>) =
            roots.map(|digest| (self.subject(&digest), digest)).partition(|(subject, _)| subject.is_some());
        let mut reached = HashSet::new();
        self.reach(images.into_iter().map(|(_, digest)| digest).collect(), &mut reached);
        // An SBOM is needed as long as its image.
        for (subject, digest) in referrers {
            if subject.is_some_and(|subject| reached.contains(subject.hex())) {
                self.reach(vec![digest], &mut reached);
            }
        }
        Ok(reached)
    }

    /// Returns the manifest that a manifest refers to.
    fn subject(&self, digest: &Digest) -> Option<Digest> {
        digest_of(&self.document::<Value>(digest).ok()?["subject"])
    }

    /// Adds manifests, and the digests that the manifests reach.
    fn reach(&self, mut waiting: Vec<Digest>, reached: &mut HashSet<String>) {
        while let Some(digest) = waiting.pop() {
            if !reached.insert(digest.hex().to_owned()) || !self.has(&digest) {
                continue;
            }
            // Only manifests and indexes are in `waiting`. A broken document reaches nothing.
            let Ok(document) = self.document::<Value>(&digest) else { continue };
            waiting.extend(digests(&document, "manifests"));
            reached.extend(digests(&document, "layers").map(|digest| digest.hex().to_owned()));
            reached.extend(digest_of(&document["config"]).map(|digest| digest.hex().to_owned()));
        }
    }

    /// Returns the chain IDs of all configurations among the digests, in hexadecimal digits.
    fn chains(&self, reached: &HashSet<String>) -> HashSet<String> {
        let configs = reached.iter().filter_map(|hex| {
            let digest: Digest = format!("sha256:{hex}").parse().ok()?;
            let is_small = fs::metadata(self.blob_path(&digest)).ok()?.len() <= super::LARGEST_DOCUMENT;
            let config: ImageConfig = is_small.then(|| self.document(&digest).ok()).flatten()?;
            chain_id(&config.rootfs.diff_ids).map(|chain| chain.hex().to_owned())
        });
        configs.collect()
    }
}

fn digests<'a>(document: &'a Value, key: &str) -> impl Iterator<Item = Digest> + 'a {
    document[key].as_array().into_iter().flatten().filter_map(digest_of)
}

fn digest_of(descriptor: &Value) -> Option<Digest> {
    descriptor["digest"].as_str()?.parse().ok()
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let cannot = |error| Error::storage("read", folder, error);
    fs::read_dir(folder).map_err(cannot)?.collect::<Result<_, _>>().map_err(cannot)
}

fn is_older(entry: &DirEntry, grace: Duration) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).unwrap_or_default() >= grace)
}

/// Removes an unpacked image, or what a killed process has left of an unpacked image. Returns whether an image was removed.
fn remove_root(entry: &DirEntry, chains: &HashSet<String>, grace: Duration) -> Result<bool> {
    let name = entry.file_name();
    let Some(chain) = name.to_str().and_then(|name| name.split('.').next()) else { return Ok(false) };
    let is_root = name.to_str() == Some(chain);
    let is_lock = Path::new(&name).extension().is_some_and(|extension| extension == "lock");
    if is_lock || (is_root && chains.contains(chain)) || !is_older(entry, grace) {
        return Ok(false);
    }
    let path = entry.path();
    let lock = path.with_file_name(format!("{chain}.lock"));
    let Some(_lock) = FileLock::try_exclusive(&lock)? else { return Ok(false) };
    fs::remove_dir_all(&path).map_err(|error| Error::storage("remove", &path, error))?;
    Ok(is_root)
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::storage("remove", path, error))
        }
        _ => Ok(()),
    }
}
