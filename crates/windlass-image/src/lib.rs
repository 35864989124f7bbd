//! OCI images without a daemon: build, store, push, pull and unpack images, and serve the images as a registry.
//!
//! [`Store`] keeps images in a folder that all processes of a user share. A [`Reference`] names an image, [`Image`] is an image of a
//! store, and [`unpack`] writes the files of an image to a folder. The crate knows no Kubernetes object.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
pub mod build;
mod registry;
mod server;

pub mod unpack;

mod image;

mod store;

mod document;
mod error;

mod platform;
mod reference;

mod digest;

pub use self::digest::{Digest, Hasher};
pub use self::document::{Config, Descriptor, History, ImageConfig, Index, Manifest, RootFs, media_type};
pub use self::error::{Error, Result};
pub use self::image::Image;
pub use self::platform::Platform;
pub use self::reference::{ParseReferenceError, Reference};
pub use self::registry::{Credentials, Login, NoProgress, Progress, Pushed, Registry, RegistryOptions, Step};
pub use self::server::RegistryServer;
pub use self::store::{BlobWriter, Collected, Entry, Store};
