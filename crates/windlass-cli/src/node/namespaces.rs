//! The runtime that uses the namespaces of Linux.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_image::{RegistryOptions, Store};
use windlass_node::{Namespaces, NamespacesConfig, StoreImages};

use crate::error::Result;

/// Starts the runtime, with the images of the local store and of `registries`.
pub(super) async fn start(state_dir: PathBuf, registries: Vec<String>) -> Result<Namespaces> {
    let folder = Store::default_folder().ok_or(
        "the store of images has no folder: set XDG_CACHE_HOME or HOME to a folder that can be written",
    )?;
    let store = Store::open(folder)?;
    let mut options = RegistryOptions::default();
    options.insecure_registries.clone_from(&registries);
    let images = Arc::new(StoreImages::new(store, options, registries));
    let launcher = std::env::current_exe()?;
    Ok(Namespaces::new(NamespacesConfig { launcher, state_dir, images }).await?)
}
