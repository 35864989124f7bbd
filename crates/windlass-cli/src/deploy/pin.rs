//! Pins an image: the digest that a tag means now.

/// Returns the digest of an image, such as `sha256:…`, if the local image store or the registry knows the image. Returns `None` for an
/// image that has a digest already.
pub(crate) async fn pin(image: &str) -> Option<String> {
    if image.contains('@') {
        return None;
    }
    digest(image).await
}

/// The seam to the image store and to registries.
async fn digest(_image: &str) -> Option<String> {
    None
}
