//! Pins an image: the digest that a tag means now.

use std::time::Duration;

use tokio::time::timeout;
use windlass_image::Reference;

use crate::image::{self, registry_of_project};

/// The time limit for an answer of the registry. Without an answer, the image is deployed by tag.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Returns the digest of an image, such as `sha256:…`, if the registry knows the image. The local image store
/// is asked first for a cluster with nodes that read the store, such as the nodes of `windlass cluster`.
/// Returns `None` for an image that has a digest already.
pub(crate) async fn pin(image: &str, reads_store: bool) -> Option<String> {
    if image.contains('@') {
        return None;
    }
    let reference: Reference = image.parse().ok()?;
    if let Some(digest) = reads_store.then(|| in_store(&reference)).flatten() {
        return Some(digest);
    }
    let registry = registry_of_project().ok()?;
    match timeout(ANSWERED_WITHIN, registry.digest(&reference)).await {
        Ok(Ok(digest)) => digest.map(|digest| digest.to_string()),
        // The cluster may reach the registry although this machine does not.
        Ok(Err(_)) | Err(_) => None,
    }
}

fn in_store(reference: &Reference) -> Option<String> {
    let store = image::open_of_user().ok()?;
    let found = store.resolve(reference).ok()??;
    Some(found.digest.to_string())
}
