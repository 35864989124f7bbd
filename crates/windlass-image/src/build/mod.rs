//! Building images: a layer of files, a configuration, a manifest, and an index for several platforms.
//!
//! Equal recipes make equal bytes: entries are sorted, times are those of the recipe, and owners are numbers. The bytes of a compressed
//! layer depend on the version of the compressor as well, so a digest is reproducible with one version of Windlass.

mod archive;
mod files;

use crate::document::Annotations;
use crate::{
    Config, Descriptor, Digest, Error, History, ImageConfig, Index, Manifest, Platform, Result, RootFs,
    Store, media_type,
};

pub use self::archive::{archive, copy};
pub use self::files::{Compression, Files};

/// The contents of an empty configuration.
const EMPTY: &[u8] = b"{}";

/// An image to build.
#[derive(Debug)]
pub struct Recipe {
    /// The files: one layer.
    pub files: Files,
    /// How a container starts.
    pub config: Config,
    /// The platform of the programs.
    pub platform: Platform,
    /// The time of the files and of the image, in seconds since 1970.
    pub time: u64,
    /// The same time in RFC 3339.
    pub created: String,
    /// The program that made the image, for the history.
    pub created_by: String,
    /// The compression of the layer.
    pub compression: Compression,
}

/// Builds an image in a store, without a name. Returns the manifest, with its platform.
pub fn image(store: &Store, recipe: &Recipe) -> Result<Descriptor> {
    let (layer, diff_id) = recipe.files.write(store, recipe.time, recipe.compression)?;
    let config = ImageConfig {
        created: Some(recipe.created.clone()),
        author: None,
        platform: recipe.platform.clone(),
        config: recipe.config.clone(),
        rootfs: RootFs { kind: "layers".to_owned(), diff_ids: vec![diff_id] },
        history: vec![History {
            created: Some(recipe.created.clone()),
            created_by: Some(recipe.created_by.clone()),
            empty_layer: false,
        }],
    };
    let config = put(store, media_type::CONFIG, &config)?;
    let mut manifest = Manifest::new(config, vec![layer]);
    manifest.annotations = labels_for_manifest(&recipe.config.labels);
    let mut descriptor = put(store, media_type::MANIFEST, &manifest)?;
    descriptor.platform = Some(recipe.platform.clone());
    Ok(descriptor)
}

/// Builds an index of images in a store, without a name.
pub fn index(store: &Store, images: Vec<Descriptor>) -> Result<Descriptor> {
    put(store, media_type::INDEX, &Index::new(images))
}

/// Builds a manifest in a store, without a name, that refers to `subject` and has a document such as an SBOM.
pub fn attach(
    store: &Store,
    subject: &Descriptor,
    artifact_type: &str,
    document: &[u8],
) -> Result<Descriptor> {
    store.put(EMPTY)?;
    store.put(document)?;
    let config = Descriptor::of(media_type::EMPTY, EMPTY);
    let mut manifest = Manifest::new(config, vec![Descriptor::of(artifact_type, document)]);
    manifest.artifact_type = Some(artifact_type.to_owned());
    manifest.subject = Some(Descriptor::new(&subject.media_type, subject.digest.clone(), subject.size));
    put(store, media_type::MANIFEST, &manifest)
}

fn labels_for_manifest(labels: &Annotations) -> Annotations {
    let is_standard = |key: &&String| key.starts_with("org.opencontainers.image.");
    labels
        .iter()
        .filter(|(key, _)| is_standard(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Serialises and stores a document.
fn put<T: serde::Serialize>(store: &Store, media_type: &str, document: &T) -> Result<Descriptor> {
    let bytes = serde_json::to_vec(document).map_err(Error::invalid)?;
    let digest: Digest = store.put(&bytes)?;
    Ok(Descriptor::new(media_type, digest, bytes.len() as u64))
}
