//! Unpacked images, shared by all containers of the images.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Limits, chain_id, layers};
use crate::store::FileLock;
use crate::{Digest, Error, Image, Result, Store};

/// An unpacked image in a store. The files are shared: containers must not write to them. Garbage collection keeps the files as long as
/// the value lives.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    _in_use: FileLock,
}

impl Root {
    /// Returns the folder with the files.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the unpacked files of an image. Images with the same layers are unpacked once, also by several processes. Blocks the thread.
pub fn root(store: &Store, image: &Image, limits: &Limits) -> Result<Root> {
    let chain = chain_id(&image.image_config().rootfs.diff_ids).unwrap_or_else(|| Digest::of(b""));
    let roots = store.folder().join("roots");
    let path = roots.join(chain.hex());
    let lock = roots.join(format!("{}.lock", chain.hex()));
    // Another lock than that of the users, who keep their lock as long as a container runs.
    let unpacking = roots.join(format!("{}.unpack.lock", chain.hex()));
    loop {
        if !path.is_dir() {
            let _alone = FileLock::exclusive(&unpacking)?;
            // Garbage collection leaves the draft alone.
            let _draft = FileLock::shared(&lock)?;
            if !path.is_dir() {
                unpack(store, image, &roots, &path, limits)?;
            }
        }
        // Garbage collection may have removed the files before the lock was there.
        let in_use = FileLock::shared(&lock)?;
        if path.is_dir() {
            return Ok(Root { path, _in_use: in_use });
        }
    }
}

/// Unpacks into a draft, and renames the draft.
fn unpack(store: &Store, image: &Image, roots: &Path, path: &Path, limits: &Limits) -> Result<()> {
    let prefix = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let cannot = |error| Error::storage("create a folder in", roots, error);
    let draft = tempfile::Builder::new().prefix(&prefix).tempdir_in(roots).map_err(cannot)?;
    let files = draft.path().join("files");
    fs::create_dir(&files).map_err(cannot)?;
    layers(store, image, &files, limits)?;
    match fs::rename(&files, path) {
        // Another process was first, on a file system without locks.
        Err(_) if path.is_dir() => Ok(()),
        renamed => renamed.map_err(|error| Error::storage("rename", &files, error)),
    }
}
