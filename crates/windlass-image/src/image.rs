//! An image of a store.

use serde_json::Value;

use crate::{
    Config, Descriptor, Digest, Error, ImageConfig, Index, Manifest, Platform, Reference, Result, Store,
};

/// An image of a store for one platform, with all of its layers.
#[derive(Clone, Debug)]
pub struct Image {
    digest: Digest,
    manifest_digest: Digest,
    manifest: Manifest,
    config: ImageConfig,
}

impl Image {
    /// Returns the image with the digest of a manifest or of an index. Returns `None` if the store has not all of its blobs.
    pub(crate) fn load(store: &Store, digest: &Digest, platform: &Platform) -> Result<Option<Self>> {
        if !store.has(digest) {
            return Ok(None);
        }
        let document: Value = store.document(digest)?;
        if document.get("manifests").is_none() {
            return Self::of_manifest(store, digest, digest, document);
        }
        let index: Index = parse(digest, document)?;
        let Some(chosen) = choose(&index, platform).filter(|manifest| store.has(&manifest.digest)) else {
            return Ok(None);
        };
        Self::of_manifest(store, digest, &chosen.digest, store.document(&chosen.digest)?)
    }

    fn of_manifest(
        store: &Store,
        digest: &Digest,
        manifest_digest: &Digest,
        document: Value,
    ) -> Result<Option<Self>> {
        let manifest: Manifest = parse(manifest_digest, document)?;
        let is_complete = |blob: &Descriptor| {
            std::fs::metadata(store.blob_path(&blob.digest)).is_ok_and(|file| file.len() == blob.size)
        };
        if !is_complete(&manifest.config) || !manifest.layers.iter().all(is_complete) {
            return Ok(None);
        }
        if !is_config(&manifest.config.media_type) {
            return Ok(None);
        }
        let config: ImageConfig = store.document(&manifest.config.digest)?;
        if config.rootfs.diff_ids.len() != manifest.layers.len() {
            return Err(Error::Invalid(format!(
                "the manifest {manifest_digest} has {} layers, and its configuration has {}",
                manifest.layers.len(),
                config.rootfs.diff_ids.len()
            )));
        }
        Ok(Some(Self { digest: digest.clone(), manifest_digest: manifest_digest.clone(), manifest, config }))
    }

    /// Returns the ID of the image: the digest of the configuration.
    pub fn id(&self) -> &Digest {
        &self.manifest.config.digest
    }

    /// Returns the digest by which a registry knows the image: that of the index if the image was found through an index, else that of the
    /// manifest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the digest of the manifest.
    pub fn manifest_digest(&self) -> &Digest {
        &self.manifest_digest
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the layers, the lowest layer first.
    pub fn layers(&self) -> &[Descriptor] {
        &self.manifest.layers
    }

    /// Returns how a container of the image starts: user, environment, entry point, arguments, working directory, stop signal.
    pub fn config(&self) -> &Config {
        &self.config.config
    }

    /// Returns the whole configuration.
    pub fn image_config(&self) -> &ImageConfig {
        &self.config
    }

    /// Returns the size of all layers, compressed, in bytes.
    pub fn size(&self) -> u64 {
        self.manifest.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.size))
    }
}

impl Store {
    /// Returns the image with a name, for the platform of this machine.
    ///
    /// A name with a digest finds each image with the digest, whatever the name is. Returns `None` if the store has no such image, or not
    /// all of its layers.
    pub fn find(&self, reference: &Reference) -> Result<Option<Image>> {
        self.find_for(reference, &Platform::host())
    }

    /// Returns the image with a name, for a platform. See [`find`](Self::find).
    pub fn find_for(&self, reference: &Reference, platform: &Platform) -> Result<Option<Image>> {
        let digest = match reference.digest() {
            Some(digest) => Some(digest.clone()),
            None => self.resolve(reference)?.map(|descriptor| descriptor.digest),
        };
        digest.map_or(Ok(None), |digest| Image::load(self, &digest, platform))
    }

    /// Returns the image whose configuration has a digest: the image's ID.
    pub fn find_by_id(&self, id: &Digest) -> Result<Option<Image>> {
        for entry in self.list()? {
            for digest in self.manifests_of(&entry.descriptor)? {
                if let Some(image) = Image::load(self, &digest, &Platform::host())?
                    && image.id() == id
                {
                    return Ok(Some(image));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the manifest of an index for a platform. A manifest without a platform is taken if no manifest has the platform.
pub(crate) fn choose<'a>(index: &'a Index, platform: &Platform) -> Option<&'a Descriptor> {
    let accepted =
        |manifest: &&Descriptor| manifest.platform.as_ref().is_some_and(|offered| platform.accepts(offered));
    let unnamed = |manifest: &&Descriptor| {
        manifest.platform.is_none() && crate::media_type::is_manifest(&manifest.media_type)
    };
    index.manifests.iter().find(accepted).or_else(|| index.manifests.iter().find(unnamed))
}

/// Returns whether a media type is that of an image's configuration.
pub(crate) fn is_config(media_type: &str) -> bool {
    matches!(media_type, crate::media_type::CONFIG | crate::media_type::DOCKER_CONFIG)
}

fn parse<T: serde::de::DeserializeOwned>(digest: &Digest, document: Value) -> Result<T> {
    serde_json::from_value(document)
        .map_err(|error| Error::Invalid(format!("the document {digest} is invalid: {error}")))
}
