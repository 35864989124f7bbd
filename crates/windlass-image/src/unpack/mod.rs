//! Unpacking: writes the files of an image to a folder.
//!
//! Layers come from strangers. All paths stay below the folder: each path is walked component by component without following symbolic
//! links, and links are resolved as if the folder were the root. A path with `..`, a limit that is exceeded, and a layer whose digest
//! does not match end the unpacking with [`Error::Invalid`] or [`Error::WrongDigest`].
//!
//! Left out: device nodes, pipes, extended attributes, and the bits for setuid and setgid. All files belong to the user who unpacks. So that the programs of a
//! container can use files of other owners, all users get the owner's rights to the files that do not belong to user 0.

mod decode;
mod header;
mod layer;
mod root;
mod tree;

use std::path::Path;

use self::decode::LayerReader;
pub use self::root::{Root, root};
use self::tree::Tree;
pub use crate::digest::chain_id;
use crate::{Error, Image, Result, Store};

/// The most that an image may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of all layers without compression, in bytes. Default: 16 GiB.
    pub bytes: u64,
    /// The number of entries of all layers. Default: 1,000,000.
    pub entries: u64,
    /// The bytes of a layer without compression for each compressed byte, after the first 64 MiB. Default: 200.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 16 << 30, entries: 1_000_000, ratio: 200 }
    }
}

/// Writes the files of an image to an empty folder, which must exist. Blocks the thread.
pub fn layers(store: &Store, image: &Image, folder: &Path, limits: &Limits) -> Result<()> {
    let tree = Tree::open(folder)?;
    let mut left = *limits;
    for (layer, diff_id) in image.layers().iter().zip(&image.image_config().rootfs.diff_ids) {
        let named = |error| match error {
            Error::Invalid(message) => Error::Invalid(format!("layer {}: {message}", layer.digest)),
            other => other,
        };
        let reader = LayerReader::new(store.blob(&layer.digest)?, &left).map_err(named)?;
        let (found, size, entries) = layer::apply(reader, &tree, &left).map_err(named)?;
        if found != *diff_id {
            let what = format!("layer {}, without compression,", layer.digest);
            return Err(Error::WrongDigest { what, expected: diff_id.clone(), found });
        }
        left.bytes = left.bytes.saturating_sub(size);
        left.entries = left.entries.saturating_sub(entries);
    }
    Ok(())
}
