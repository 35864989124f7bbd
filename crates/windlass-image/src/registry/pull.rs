//! Pulling an image from a registry into a store.

use std::io::Write as _;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Method;

use super::transport::Call;
use super::{Access, Progress, Registry, Step};
use crate::{
    Descriptor, Digest, Error, Image, Index, Manifest, Platform, Reference, Result, Store, media_type,
};

/// The number of blobs that are pulled at the same time.
const AT_ONCE: usize = 3;

/// How often the transfer of a blob is begun again.
const RETRIES: u32 = 3;

impl Registry {
    /// Pulls an image for a platform, and names the image in the store. Blobs that the store has are not transferred.
    ///
    /// A pull that fails leaves no name and no incomplete blob. Complete layers stay for the next pull, until garbage collection.
    pub async fn pull(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        progress: &dyn Progress,
    ) -> Result<Image> {
        let (top_type, top) = self.manifest(reference).await?.ok_or_else(|| missing(reference))?;
        let mut named = described(&top_type, &top)?;
        let manifest_bytes = if media_type::is_index(&named.media_type) {
            self.chosen(reference, &top, platform).await?
        } else {
            top.clone()
        };
        let manifest: Manifest = serde_json::from_slice(&manifest_bytes)
            .map_err(|error| Error::Invalid(format!("the manifest of {reference} is invalid: {error}")))?;
        let mut pulls = Vec::new();
        // With a closure in place of the loop, the pull would not be Send.
        for blob in std::iter::once(&manifest.config).chain(&manifest.layers) {
            pulls.push(self.pull_blob(store, reference, blob, progress));
        }
        stream::iter(pulls).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        store.put(&manifest_bytes)?;
        named.digest = store.put(&top)?;
        let image = Image::load(store, &named.digest, platform)?
            .ok_or_else(|| Error::Invalid(format!("{reference} is no image for {platform}")))?;
        store.tag(reference, &named)?;
        Ok(image)
    }

    /// Returns the manifest of an index for a platform.
    async fn chosen(&self, reference: &Reference, index: &[u8], platform: &Platform) -> Result<Vec<u8>> {
        let index: Index = serde_json::from_slice(index)
            .map_err(|error| Error::Invalid(format!("the index of {reference} is invalid: {error}")))?;
        let chosen = crate::image::choose(&index, platform).ok_or_else(|| {
            Error::NotFound(format!(
                "no matching manifest for {platform} in the manifest list entries of {reference}"
            ))
        })?;
        let by_digest = reference.with_digest(chosen.digest.clone());
        let (_, bytes) = self.manifest(&by_digest).await?.ok_or_else(|| missing(&by_digest))?;
        Ok(bytes)
    }

    /// Pulls a blob, unless the store has the blob.
    async fn pull_blob(
        &self,
        store: &Store,
        reference: &Reference,
        blob: &Descriptor,
        progress: &dyn Progress,
    ) -> Result<()> {
        if std::fs::metadata(store.blob_path(&blob.digest)).is_ok_and(|file| file.len() == blob.size) {
            progress.report(blob, Step::Present);
            return Ok(());
        }
        for _ in 0..RETRIES {
            match self.transfer(store, reference, blob, progress).await {
                Err(Error::Unavailable(why)) => tracing::debug!(%blob.digest, why, "pulling a blob again"),
                result => return result,
            }
        }
        self.transfer(store, reference, blob, progress).await
    }

    async fn transfer(
        &self,
        store: &Store,
        reference: &Reference,
        blob: &Descriptor,
        progress: &dyn Progress,
    ) -> Result<()> {
        let uri = self.uri(reference, &format!("blobs/{}", blob.digest)).await?;
        let reply = self.send(reference, Access::Pull, Call::new(Method::GET, uri)).await?;
        let mut reply = reply.successful().await?;
        let mut writer = store.writer()?;
        while let Some(part) = reply.part().await? {
            if writer.size() + part.len() as u64 > blob.size {
                let (digest, size) = (&blob.digest, blob.size);
                return Err(Error::Invalid(format!(
                    "the blob {digest} of {reference} is larger than {size} bytes"
                )));
            }
            writer.write_all(&part).map_err(|error| Error::storage("write to", store.folder(), error))?;
            progress.report(blob, Step::Moved(writer.size()));
        }
        if writer.size() < blob.size {
            let (found, size) = (writer.size(), blob.size);
            return Err(Error::Unavailable(format!(
                "the registry sent {found} of {size} bytes of the blob {} of {reference}",
                blob.digest
            )));
        }
        writer.commit(Some(&blob.digest))?;
        progress.report(blob, Step::Done);
        Ok(())
    }
}

fn missing(reference: &Reference) -> Error {
    Error::NotFound(format!("{reference}: manifest unknown"))
}

/// Describes a manifest or an index. The bytes tell which, because some registries send a wrong media type.
fn described(media_type: &str, bytes: &[u8]) -> Result<Descriptor> {
    let document: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::Invalid(format!("the manifest {} is invalid: {error}", Digest::of(bytes))))?;
    if document["schemaVersion"] == 1 {
        return Err(Error::Invalid(format!(
            "the manifest {} has the media type {media_type:?}, which is not supported: build the image again",
            Digest::of(bytes)
        )));
    }
    let guess = if document.get("manifests").is_some() { media_type::INDEX } else { media_type::MANIFEST };
    let known = |text: &&str| media_type::is_index(text) || media_type::is_manifest(text);
    let own = document["mediaType"].as_str().filter(known);
    let sent = Some(media_type).filter(known);
    let chosen = own
        .or(sent)
        .filter(|text| media_type::is_index(text) == media_type::is_index(guess))
        .unwrap_or(guess);
    Ok(Descriptor::of(chosen, bytes))
}
