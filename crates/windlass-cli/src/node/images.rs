//! The images of a node.

use std::sync::Arc;

use windlass_image::RegistryOptions;
use windlass_image::unpack::Limits;
use windlass_node::StoreImages;

use crate::error::Result;

/// Returns the images of the store that the image commands use, and of `registries`. An image may have `largest` bytes without compression.
pub(super) fn images(registries: Vec<String>, largest: u64) -> Result<Arc<StoreImages>> {
    let store = crate::image::open_of_user()?;
    let mut options = RegistryOptions::default();
    options.insecure_registries.clone_from(&registries);
    let limits = Limits { bytes: largest, ..Limits::default() };
    Ok(Arc::new(StoreImages::new(store, options, registries).with_limits(limits)))
}
