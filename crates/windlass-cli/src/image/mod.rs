//! Images of operators: `windlass image`.

mod build;
mod bundle;
mod compile;
mod elf;
mod load;
mod metadata;
mod program;
mod progress;
mod recipe;
mod sbom;
mod time_zones;
mod transfer;

use std::path::Path;
use std::time::Duration;

use windlass_image::{Reference, Store};

pub(crate) use windlass_image::build::Compression;

pub(crate) use self::build::{BuildRequest, build};
pub(crate) use self::bundle::{BundleRequest, build_bundle};
pub(crate) use self::compile::Linking;
pub(crate) use self::load::{Destination, load};
pub(crate) use self::transfer::{Connection, pull, push, registry_of_project};
use crate::error::{Advice, Result};
use crate::output::Output;

/// The environment variable that names the folder of the store.
pub(crate) const STORE: &str = "WINDLASS_IMAGES";

/// The time for which a blob without a name stays in the store: a running command may name the blob's image
/// later.
const GRACE: Duration = Duration::from_secs(3600);

/// Opens the store in a folder, or the store of the user.
pub(crate) fn open(folder: Option<&Path>) -> Result<Store> {
    let folder = folder.map(Path::to_owned).or_else(Store::default_folder).ok_or_else(|| {
        Advice::new("there is no home for the store of images", "set HOME, or name a folder with --store")
    })?;
    // The processes that mount the images have another working directory.
    Ok(Store::open(std::path::absolute(folder)?)?)
}

/// Opens the store that the environment names, or the store of the user.
pub(crate) fn open_of_user() -> Result<Store> {
    let named = std::env::var_os(STORE).filter(|folder| !folder.is_empty());
    open(named.as_deref().map(Path::new))
}

/// Prints the images of a store.
pub(crate) fn list(store: &Store, out: &mut Output) -> Result<()> {
    let mut lines = vec![["NAME".to_owned(), "DIGEST".to_owned(), "SIZE".to_owned()]];
    for entry in store.list()?.iter().filter(|entry| entry.reference.tag().is_some()) {
        let size =
            store.find(&entry.reference)?.map_or_else(|| "-".to_owned(), |image| megabytes(image.size()));
        let digest: String = entry.descriptor.digest.to_string().chars().take(19).collect();
        lines.push([entry.reference.to_string(), digest, size]);
    }
    let width = lines.iter().map(|[name, ..]| name.len()).max().unwrap_or_default();
    lines
        .iter()
        .for_each(|[name, digest, size]| out.line(format_args!("{name:width$}  {digest:19}  {size}")));
    Ok(())
}

/// Removes names.
pub(crate) fn remove(store: &Store, images: &[Reference]) -> Result<()> {
    for image in images {
        if !store.remove(image)? {
            return Err(format!("the store has no image {image}").into());
        }
    }
    Ok(())
}

/// Removes the files of images without a name.
pub(crate) fn prune(store: &Store, all: bool, out: &mut Output) -> Result<()> {
    let collected = store.collect_garbage(if all { Duration::ZERO } else { GRACE })?;
    out.line(format_args!(
        "removed {} blobs ({}) and {} unpacked images",
        collected.blobs,
        megabytes(collected.bytes),
        collected.roots
    ));
    Ok(())
}

/// Returns a size in MB.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
