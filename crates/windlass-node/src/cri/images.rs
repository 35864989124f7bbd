//! The images of the container runtime, and those of the local store.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use windlass_image::{Digest, Reference, RegistryServer, Store};

use super::client::{CallError, Client, IMAGE};
use super::info;
use super::message::{
    Empty, Id, Image as CriImage, ImageRequest, ImageSpec, ImageStatusResponse, Login, PullImageRequest,
};
use super::request::ImageUser;
use crate::images::{Images, StoreImages, signal_number};
use crate::{Credential, Image, PullError, RuntimeError};

/// The longest pull of an image.
const PULL: Duration = Duration::from_secs(30 * 60);

/// The repository of an image on its way from the local store to the container runtime.
const REPOSITORY: &str = "windlass/store";

/// An image of the container runtime, and how its program starts.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) user: ImageUser,
    pub(super) stop_signal: Option<i32>,
}

/// The images.
pub(super) struct CriImages {
    client: Arc<Client>,
    store: Store,
    local: StoreImages,
    /// One import at a time. Two replicas want one image.
    importing: tokio::sync::Mutex<()>,
    /// The IDs of the images that came from the store.
    imported: Mutex<BTreeSet<String>>,
}

impl CriImages {
    pub(super) fn new(client: Arc<Client>, store: Store, local: StoreImages) -> Self {
        Self { client, store, local, importing: tokio::sync::Mutex::default(), imported: Mutex::default() }
    }

    /// Returns the image of the local store, else the image of the container runtime.
    pub(super) async fn find(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        let Ok(name) = reference.parse::<Reference>() else { return Ok(None) };
        if let Some(image) = self.local.find(reference).await? {
            return Ok(Some(image));
        }
        let status = self.status(reference).await?;
        Ok(status.image.map(|image| shown(&name.name(), image)))
    }

    pub(super) fn may_pull(&self, reference: &str) -> bool {
        self.local.may_pull(reference)
    }

    /// Pulls an image. The container runtime asks the registry, as its own configuration says.
    pub(super) async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError> {
        let name: Reference = reference.parse().map_err(|error| {
            PullError::InvalidName(format!("Failed to apply default image tag {reference:?}: {error}"))
        })?;
        let mut last = None;
        for login in credentials.iter().map(Some).chain([None]) {
            match self.pull_once(reference, login).await {
                Err(error @ PullError::Unauthorized(_)) => last = last.or(Some(error)),
                Err(error) => return Err(error),
                Ok(id) => {
                    let status = self.status(&id).await.map_err(|error| pull_error(&error))?;
                    let image = status.image.map(|image| shown(&name.name(), image));
                    return image.ok_or_else(|| {
                        PullError::Storage(format!("image {reference} was pulled, and is not there"))
                    });
                }
            }
        }
        Err(last.unwrap_or_else(|| PullError::Unauthorized(format!("image {reference} was not pulled"))))
    }

    /// Returns the ID of the image.
    async fn pull_once(&self, reference: &str, login: Option<&Credential>) -> Result<String, PullError> {
        let login = login.map(|login| Login { user: login.user.clone(), password: login.password.clone() });
        let request = PullImageRequest { image: Some(spec(reference)), login };
        let pulled: Result<Id, _> = self.client.call(IMAGE, "PullImage", &request, PULL).await;
        pulled.map(|pulled| pulled.id).map_err(|error| pull_error(&error))
    }

    async fn status(&self, image: &str) -> Result<ImageStatusResponse, CallError> {
        self.client.image("ImageStatus", &ImageRequest { image: Some(spec(image)), verbose: true }).await
    }

    /// Returns the image with an [ID](Image::id). Imports the image from the local store if the container runtime has no such image.
    pub(super) async fn prepare(&self, id: &str) -> Result<Found, RuntimeError> {
        if let Some(found) = self.prepared(id).await? {
            return Ok(found);
        }
        let _importing = self.importing.lock().await;
        if let Some(found) = self.prepared(id).await? {
            return Ok(found);
        }
        self.import(id).await?;
        self.prepared(id).await?.ok_or_else(|| RuntimeError::NotFound(format!("image {id}")))
    }

    async fn prepared(&self, id: &str) -> Result<Option<Found>, RuntimeError> {
        let ImageStatusResponse { image, info } = self.status(id).await?;
        Ok(image.map(|image| Found {
            user: user(&image),
            stop_signal: info::stop_signal(&info).and_then(|signal| signal_number(&signal)),
        }))
    }

    /// Serves the local store on a loopback address, and lets the container runtime pull the image: the CRI has no other import.
    async fn import(&self, id: &str) -> Result<(), RuntimeError> {
        let missing = || RuntimeError::NotFound(format!("image {id}"));
        let failed = |why: String| {
            RuntimeError::Start(format!(
                "the container runtime did not take image {id} from the local store: {why}"
            ))
        };
        let digest: Digest = id.parse().map_err(|_| missing())?;
        let store = self.store.clone();
        let found = tokio::task::spawn_blocking(move || store.find_by_id(&digest)).await;
        let image =
            found.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        let image = image.ok_or_else(missing)?;
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let registry = RegistryServer::bind(self.store.clone(), any_port).await;
        let registry = registry.map_err(|error| failed(error.to_string()))?.read_only();
        let reference = format!("{}/{REPOSITORY}@{}", registry.address(), image.manifest_digest());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(registry.run(async move { drop(stopped.await) }));
        let pulled = self.pull_once(&reference, None).await;
        drop(stop);
        let _ = serving.await;
        let pulled = pulled.map_err(|error| failed(error.to_string()))?;
        self.imported.lock().insert(pulled);
        Ok(())
    }

    /// Removes the images that came from the local store.
    pub(super) async fn remove_imported(&self) {
        let imported = std::mem::take(&mut *self.imported.lock());
        for id in imported {
            let request = ImageRequest { image: Some(spec(&id)), verbose: false };
            if let Err(error) = self.client.image::<_, Empty>("RemoveImage", &request).await {
                tracing::debug!(%error, image = id, "an image was not removed");
            }
        }
    }
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec { image: image.to_owned() }
}

/// Returns an image in the form of a pod's status: with the digest of the registry in the name, if the
/// registry has a digest.
fn shown(name: &str, image: CriImage) -> Image {
    let own = image.digests.iter().find(|digest| digest.rsplit_once('@').is_some_and(|(of, _)| of == name));
    let digested = own.or(image.digests.first()).unwrap_or(&image.id).clone();
    Image { id: image.id, digested, size: image.size }
}

fn user(image: &CriImage) -> ImageUser {
    match &image.user {
        Some(number) => ImageUser::Number(number.value),
        None if image.user_name.is_empty() => ImageUser::Number(0),
        None => ImageUser::Name(image.user_name.clone()),
    }
}

/// Tells the failures of a pull apart by their text: container runtimes have one code for most failures.
fn pull_error(error: &CallError) -> PullError {
    let text = error.to_string();
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["invalid reference format", "invalid reference"]) {
        PullError::InvalidName(text)
    } else if has(&[
        "401",
        "403 forbidden",
        "unauthorized",
        "authorization failed",
        "access denied",
        "authentication required",
    ]) {
        PullError::Unauthorized(text)
    } else if error.code == super::client::NOT_FOUND
        || has(&["not found", "manifest unknown", "name unknown"])
    {
        PullError::NotFound(text)
    } else if has(&["no space left", "disk quota", "read-only file system"]) {
        PullError::Storage(text)
    } else if has(&["unexpected commit digest", "failed size validation", "no match for platform"]) {
        PullError::Invalid(text)
    } else {
        PullError::Unavailable(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cri::message::Int64;

    #[test]
    fn an_image_shows_the_digest_of_its_own_name() {
        let image = |digests: &[&str]| CriImage {
            id: "sha256:1".into(),
            digests: digests.iter().map(ToString::to_string).collect(),
            ..CriImage::default()
        };
        let digested = |digests: &[&str]| shown("127.0.0.1:5000/web", image(digests)).digested;
        assert_eq!(
            digested(&["a/web@sha256:2", "127.0.0.1:5000/web@sha256:3"]),
            "127.0.0.1:5000/web@sha256:3"
        );
        assert_eq!(digested(&["a/web@sha256:2"]), "a/web@sha256:2");
        assert_eq!(digested(&[]), "sha256:1");
    }

    #[test]
    fn an_image_without_a_user_is_of_root() {
        let number = CriImage { user: Some(Int64 { value: 7 }), ..CriImage::default() };
        let name = CriImage { user_name: "web".into(), ..CriImage::default() };
        assert_eq!(user(&number), ImageUser::Number(7));
        assert_eq!(user(&name), ImageUser::Name("web".into()));
        assert_eq!(user(&CriImage::default()), ImageUser::Number(0));
    }

    #[test]
    fn failures_of_a_pull_are_told_apart() {
        let kind = |code, text: &str| pull_error(&CallError::new(code, text, "PullImage"));
        let resolve = "failed to resolve reference \"127.0.0.1:5000/a:v1\": ";
        assert!(matches!(
            kind(5, &format!("{resolve}127.0.0.1:5000/a:v1: not found")),
            PullError::NotFound(_)
        ));
        assert!(matches!(
            kind(2, &format!("{resolve}unexpected status: 401 Unauthorized")),
            PullError::Unauthorized(_)
        ));
        assert!(matches!(
            kind(2, "dial tcp 127.0.0.1:5000: connect: connection refused"),
            PullError::Unavailable(_)
        ));
        assert!(matches!(kind(2, "write: no space left on device"), PullError::Storage(_)));
        assert!(matches!(
            kind(3, "failed to parse image: invalid reference format"),
            PullError::InvalidName(_)
        ));
    }
}
