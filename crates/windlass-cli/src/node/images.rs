//! The images of a node.

use std::sync::Arc;

use windlass_image::unpack::Limits;
use windlass_image::{RegistryOptions, Store};
use windlass_node::StoreImages;

use crate::error::Result;

/// Returns the images of the local store and of `registries`. An image may have `largest` bytes without compression.
pub(super) fn images(registries: Vec<String>, largest: u64) -> Result<Arc<StoreImages>> {
    let mut options = RegistryOptions::default();
    options.insecure_registries.clone_from(&registries);
    let limits = Limits { bytes: largest, ..Limits::default() };
    Ok(Arc::new(StoreImages::new(store()?, options, registries).with_limits(limits)))
}

/// Opens the local store.
pub(super) fn store() -> Result<Store> {
    let folder = Store::default_folder().ok_or(
        "the store of images has no folder: set XDG_CACHE_HOME or HOME to a folder that can be written",
    )?;
    Ok(Store::open(folder)?)
}
