//! Manifests that refer to a manifest, such as the SBOM of an image.

use super::Registry;
use crate::{Descriptor, Digest, Error, Index, Manifest, Reference, Result, Store, media_type};

impl Registry {
    /// Pushes a manifest that refers to `subject`. A registry without a list of such manifests gets a list as an index, whose tag is made
    /// of the subject's digest.
    pub(super) async fn push_referrer(
        &self,
        store: &Store,
        target: &Reference,
        subject: &Digest,
        referrer: &Descriptor,
    ) -> Result<()> {
        let by_digest = target.with_digest(referrer.digest.clone());
        if self.put_manifest(store, &by_digest, referrer).await? {
            return Ok(());
        }
        let list = target.with_tag(&format!("sha256-{}", subject.hex()))?;
        let mut index = match self.manifest(&list).await? {
            Some((_, bytes)) => serde_json::from_slice(&bytes).map_err(|error| {
                Error::Invalid(format!("{list} is no list of referring manifests: {error}"))
            })?,
            None => Index::new(Vec::new()),
        };
        if index.manifests.iter().any(|other| other.digest == referrer.digest) {
            return Ok(());
        }
        index.manifests.push(referrer.clone());
        let bytes = serde_json::to_vec(&index).map_err(Error::invalid)?;
        self.put_bytes(&list, media_type::INDEX, bytes).await.map(drop)
    }
}

impl Store {
    /// Returns the named manifests that refer to a manifest.
    pub fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>> {
        let mut found: Vec<Descriptor> = Vec::new();
        for entry in self.list()? {
            if !media_type::is_manifest(&entry.descriptor.media_type) || !self.has(&entry.descriptor.digest) {
                continue;
            }
            let manifest: Manifest = self.document(&entry.descriptor.digest)?;
            if manifest.subject.as_ref().is_none_or(|other| other.digest != *subject) {
                continue;
            }
            let artifact = manifest.artifact_type.unwrap_or(manifest.config.media_type);
            let described = Descriptor {
                annotations: manifest.annotations,
                artifact_type: Some(artifact),
                platform: None,
                ..entry.descriptor
            };
            if !found.iter().any(|other| other.digest == described.digest) {
                found.push(described);
            }
        }
        Ok(found)
    }

    /// Returns whether a manifest or an index has a blob.
    pub(crate) fn reaches(&self, descriptor: &Descriptor, blob: &Digest) -> bool {
        let manifests = self.manifests_of(descriptor).unwrap_or_default();
        manifests.iter().any(|digest| {
            let manifest = self.document::<Manifest>(digest).ok();
            manifest.is_some_and(|it| {
                it.config.digest == *blob || it.layers.iter().any(|layer| layer.digest == *blob)
            })
        })
    }
}
