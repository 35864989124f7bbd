//! Pushing an image from a store to a registry.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;

use super::transport::Call;
use super::{Access, Progress, Registry};
use crate::{Descriptor, Digest, Error, Index, Manifest, Reference, Result, Store, media_type};

/// A pushed image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pushed {
    /// The digest of the image at the registry.
    pub digest: Digest,
    /// The number of blobs that were transferred.
    pub transferred: u32,
    /// The number of blobs that the registry took from another of its repositories.
    pub mounted: u32,
    /// The number of blobs that the registry had.
    pub present: u32,
}

impl Registry {
    /// Pushes an image or an index that the store knows as `source` to a registry, as `target`, together with the manifests that refer to
    /// it, such as an SBOM. Blobs that the registry has are not transferred.
    pub async fn push(
        &self,
        store: &Store,
        source: &Reference,
        target: &Reference,
        progress: &dyn Progress,
    ) -> Result<Pushed> {
        let descriptor = store.resolve(source)?.ok_or_else(|| {
            Error::NotFound(format!(
                "the store has no image {source}: build the image with `windlass image build`"
            ))
        })?;
        let mut pushed = Pushed { digest: descriptor.digest.clone(), transferred: 0, mounted: 0, present: 0 };
        let mut sent = BTreeSet::new();
        let mut subjects = vec![descriptor.digest.clone()];
        if media_type::is_index(&descriptor.media_type) {
            let index: Index = store.document(&descriptor.digest)?;
            for manifest in &index.manifests {
                if !store.has(&manifest.digest) {
                    let platform =
                        manifest.platform.as_ref().map_or_else(String::new, |it| format!(" for {it}"));
                    return Err(Error::NotFound(format!(
                        "the store has not the image{platform} of {source}"
                    )));
                }
                self.push_blobs(store, target, &manifest.digest, &mut sent, &mut pushed, progress).await?;
                self.put_manifest(store, &target.with_digest(manifest.digest.clone()), manifest).await?;
                subjects.push(manifest.digest.clone());
            }
        } else {
            self.push_blobs(store, target, &descriptor.digest, &mut sent, &mut pushed, progress).await?;
        }
        self.put_manifest(store, target, &descriptor).await?;
        for subject in &subjects {
            for referrer in store.referrers(subject)? {
                self.push_blobs(store, target, &referrer.digest, &mut sent, &mut pushed, progress).await?;
                self.push_referrer(store, target, subject, &referrer).await?;
            }
        }
        Ok(pushed)
    }

    /// Uploads the blobs of a manifest.
    async fn push_blobs(
        &self,
        store: &Store,
        target: &Reference,
        manifest: &Digest,
        sent: &mut BTreeSet<Digest>,
        pushed: &mut Pushed,
        progress: &dyn Progress,
    ) -> Result<()> {
        let manifest: Manifest = store.document(manifest)?;
        for blob in manifest.layers.iter().chain(std::iter::once(&manifest.config)) {
            if sent.insert(blob.digest.clone()) {
                self.upload(store, target, blob, pushed, progress).await?;
            }
        }
        Ok(())
    }

    /// Puts a manifest or an index. Returns whether the registry keeps a list of the manifests that refer to a manifest.
    pub(super) async fn put_manifest(
        &self,
        store: &Store,
        target: &Reference,
        manifest: &Descriptor,
    ) -> Result<bool> {
        let bytes = store.read(&manifest.digest)?;
        self.put_bytes(target, &manifest.media_type, bytes).await
    }

    pub(super) async fn put_bytes(
        &self,
        target: &Reference,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<bool> {
        let expected = Digest::of(&bytes);
        let uri = self.uri(target, &format!("manifests/{}", target.tag_or_digest())).await?;
        let call = Call::new(Method::PUT, uri).body(media_type, Bytes::from(bytes));
        let reply = self.send(target, Access::Push, call).await?.successful().await?;
        if let Some(found) =
            reply.header("docker-content-digest").and_then(|digest| digest.parse::<Digest>().ok())
            && found != expected
        {
            return Err(Error::WrongDigest {
                what: format!("the pushed manifest of {target}"),
                expected,
                found,
            });
        }
        Ok(reply.header("oci-subject").is_some())
    }
}
