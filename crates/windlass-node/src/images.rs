//! Where a runtime takes its images from.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use windlass_image::unpack::{self, Limits};
use windlass_image::{
    Credentials, Digest, Error, Login, NoProgress, Platform, Reference, Registry, RegistryOptions, Store,
};

use crate::{Credential, Image, PullError, RuntimeError};

/// The files of an image, and how the image's program starts.
pub struct Unpacked {
    /// The directory with the files. Containers share the directory, and do not write to the directory.
    pub directory: PathBuf,
    /// The configuration.
    pub config: ImageConfig,
    /// Keeps the files in the store.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacked").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// How the program of an image starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// The user: `UID`, `UID:GID`, `NAME` or `NAME:GROUP`. Empty is root.
    pub user: String,
    /// The program and its first arguments.
    pub entry_point: Vec<String>,
    /// Further arguments, or the program if there is no entry point.
    pub arguments: Vec<String>,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// The working directory. Empty is `/`.
    pub working_directory: String,
    /// The signal that asks the program to stop. Default: 15 (`SIGTERM`).
    pub stop_signal: Option<i32>,
}

/// The images of a runtime.
#[async_trait]
pub trait Images: Send + Sync + 'static {
    /// Returns the image with a name, if the image is on this machine.
    async fn find(&self, reference: &str) -> Result<Option<Image>, RuntimeError>;

    /// Returns whether the image may be pulled.
    fn may_pull(&self, reference: &str) -> bool;

    /// Pulls an image.
    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError>;

    /// Unpacks the image with an [ID](Image::id).
    async fn unpack(&self, id: &str) -> Result<Unpacked, RuntimeError>;
}

/// The images of a store, and of registries.
#[derive(Clone, Debug)]
pub struct StoreImages {
    store: Store,
    registries: RegistryOptions,
    /// The registries, beside those on this machine, that may be asked.
    allowed: Vec<String>,
    limits: Limits,
}

impl StoreImages {
    /// Takes images from `store`. Pulls images from registries on this machine and from the registries `allowed`, such as
    /// `registry.example.com:5000`.
    pub fn new(store: Store, registries: RegistryOptions, allowed: Vec<String>) -> Self {
        Self { store, registries, allowed, limits: Limits::default() }
    }

    /// Sets the most that an image may contain. Default: [`Limits::default`].
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// Pulls an image and unpacks the image, so that an image that cannot be unpacked is not taken for an image of this machine.
fn pull(
    registry: &Registry,
    store: &Store,
    name: &Reference,
    limits: &Limits,
    handle: &tokio::runtime::Handle,
) -> Result<Image, Error> {
    let before = store.resolve(name)?;
    let pulled = handle.block_on(registry.pull(store, name, &Platform::host(), &NoProgress))?;
    if let Err(error) = unpack::root(store, &pulled, limits) {
        match before {
            Some(earlier) => store.tag(name, &earlier)?,
            None => drop(store.remove(name)?),
        }
        return Err(error);
    }
    Ok(shown(name, &pulled))
}

async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    panicked: impl FnOnce(String) -> E,
) -> Result<T, E> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(error.to_string())))
}

#[async_trait]
impl Images for StoreImages {
    async fn find(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        let Ok(reference) = reference.parse::<Reference>() else { return Ok(None) };
        let store = self.store.clone();
        let found = blocking(
            move || store.find(&reference).map(|found| found.map(|image| shown(&reference, &image))),
            Error::Invalid,
        );
        found.await.map_err(|error| RuntimeError::Create(error.to_string()))
    }

    fn may_pull(&self, reference: &str) -> bool {
        reference.parse::<Reference>().is_ok_and(|reference| {
            reference.is_loopback() || self.allowed.iter().any(|allowed| allowed == reference.registry())
        })
    }

    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError> {
        let name: Reference = reference.parse().map_err(|error| {
            PullError::InvalidName(format!("couldn't parse image name {reference:?}: {error}"))
        })?;
        let logins = credentials.iter().map(|login| Login::password(&login.user, &login.password));
        let mut options = self.registries.clone();
        if !credentials.is_empty() {
            options.credentials = Credentials::of(logins);
        }
        let (store, limits) = (self.store.clone(), self.limits);
        let handle = tokio::runtime::Handle::current();
        // On a thread of its own: a pull whose caller goes away completes, and the next attempt finds the image.
        let work = move || {
            let registry = Registry::new(options)?;
            pull(&registry, &store, &name, &limits, &handle)
        };
        blocking(work, Error::Invalid).await.map_err(pull_error)
    }

    async fn unpack(&self, id: &str) -> Result<Unpacked, RuntimeError> {
        let digest: Digest = id.parse().map_err(|_| RuntimeError::NotFound(format!("image {id}")))?;
        let (store, limits) = (self.store.clone(), self.limits);
        let work = move || {
            let Some(image) = store.find_by_id(&digest)? else { return Ok(None) };
            let root = unpack::root(&store, &image, &limits)?;
            let config = start_config(image.config());
            Ok(Some(Unpacked { directory: root.path().to_owned(), config, guard: Box::new(root) }))
        };
        let unpacked = blocking(work, Error::Invalid).await;
        unpacked
            .map_err(|error| RuntimeError::Create(format!("failed to unpack image {id}: {error}")))?
            .ok_or_else(|| RuntimeError::NotFound(format!("image {id}")))
    }
}

fn shown(reference: &Reference, image: &windlass_image::Image) -> Image {
    Image {
        id: image.id().to_string(),
        digested: format!("{}@{}", reference.name(), image.digest()),
        size: image.size(),
    }
}

fn start_config(config: &windlass_image::Config) -> ImageConfig {
    let pair =
        |entry: &String| entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    ImageConfig {
        user: config.user.clone(),
        entry_point: config.entrypoint.clone(),
        arguments: config.cmd.clone(),
        environment: config.env.iter().filter_map(pair).collect(),
        working_directory: config.working_dir.clone(),
        stop_signal: signal_number(&config.stop_signal),
    }
}

/// Reads `SIGTERM`, `TERM` or `15`.
pub(crate) fn signal_number(text: &str) -> Option<i32> {
    const NAMES: [(&str, i32); 10] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("KILL", 9),
        ("USR1", 10),
        ("USR2", 12),
        ("ALRM", 14),
        ("TERM", 15),
        ("WINCH", 28),
    ];
    let name = text.strip_prefix("SIG").unwrap_or(text);
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number).or_else(|| text.parse().ok())
}

fn pull_error(error: Error) -> PullError {
    let text = error.to_string();
    match error {
        Error::Name(_) => PullError::InvalidName(text),
        Error::NotFound(_) => PullError::NotFound(text),
        Error::Unauthorized(_) => PullError::Unauthorized(text),
        Error::Invalid(_) | Error::WrongDigest { .. } => PullError::Invalid(text),
        Error::Storage { .. } => PullError::Storage(text),
        _ => PullError::Unavailable(text),
    }
}

/// Directories as images, for tests. Nothing can be pulled.
#[derive(Clone, Debug, Default)]
pub struct DirectoryImages {
    images: HashMap<String, (PathBuf, ImageConfig)>,
}

impl DirectoryImages {
    /// Adds a directory as the image `name`.
    pub fn with(mut self, name: &str, directory: impl Into<PathBuf>, config: ImageConfig) -> Self {
        self.images.insert(name.to_owned(), (directory.into(), config));
        self
    }
}

#[async_trait]
impl Images for DirectoryImages {
    async fn find(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        let image = || Image { id: reference.to_owned(), digested: reference.to_owned(), size: 0 };
        Ok(self.images.contains_key(reference).then(image))
    }

    fn may_pull(&self, _: &str) -> bool {
        false
    }

    async fn pull(&self, reference: &str, _: &[Credential]) -> Result<Image, PullError> {
        Err(PullError::NotFound(format!("image {reference} is not a directory of this test")))
    }

    async fn unpack(&self, id: &str) -> Result<Unpacked, RuntimeError> {
        let (directory, config) =
            self.images.get(id).ok_or_else(|| RuntimeError::NotFound(format!("image {id}")))?;
        Ok(Unpacked { directory: directory.clone(), config: config.clone(), guard: Box::new(()) })
    }
}
