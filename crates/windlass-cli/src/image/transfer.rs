//! Pushes and pulls.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use windlass_image::{Credentials, Login, Platform, Reference, Registry, RegistryOptions, Store};

use super::progress::Bar;
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// The longest password, in bytes.
const LONGEST_PASSWORD: u64 = 1 << 16;

/// How a registry is reached.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// The name at the registry. The password is read from standard input.
    pub(crate) user: Option<String>,
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) plain_http: bool,
}

impl Connection {
    /// Returns a client. Reads the password from standard input if there is a name.
    pub(crate) fn registry(&self) -> Result<Registry> {
        let mut options = RegistryOptions::default();
        options.ca_files.clone_from(&self.ca_files);
        options.plain_http = self.plain_http;
        options.insecure_registries = insecure_registries();
        options.credentials = match &self.user {
            Some(user) => Credentials::of([Login::password(user, password()?)]),
            None => Credentials::from_files(),
        };
        Ok(Registry::new(options)?)
    }
}

/// Returns the registries, with the configuration of the project and the user.
pub(crate) fn registry_of_project() -> Result<Registry> {
    Connection { user: None, ca_files: Vec::new(), plain_http: false }.registry()
}

/// Returns the registries that `windlass.toml` allows to be reached by plain HTTP. Outside of a project there are none.
fn insecure_registries() -> Vec<String> {
    Workspace::current().map(|workspace| workspace.project.image.insecure_registries).unwrap_or_default()
}

fn password() -> Result<String> {
    let mut text = String::new();
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Err(
            "--password-stdin reads the password from a pipe, and standard input is a terminal".into()
        );
    }
    stdin.by_ref().take(LONGEST_PASSWORD).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Pushes an image. Returns the image's name with the digest.
pub(crate) async fn push(
    store: &Store,
    image: &Reference,
    target: &Reference,
    registry: &Registry,
    notes: &mut Output,
) -> Result<String> {
    let bar = Bar::new("pushing");
    let pushed = registry.push(store, image, target, &bar).await;
    bar.clear();
    let pushed = pushed?;
    notes.line(format_args!(
        "pushed {target}: {} blobs sent ({}), {} were there, {} mounted",
        pushed.transferred,
        super::megabytes(bar.moved()),
        pushed.present,
        pushed.mounted
    ));
    Ok(target.with_digest(pushed.digest).to_string())
}

/// Pulls an image. Returns the image's name with the digest.
pub(crate) async fn pull(
    store: &Store,
    image: &Reference,
    platform: &Platform,
    connection: &Connection,
    notes: &mut Output,
) -> Result<String> {
    let bar = Bar::new("pulling");
    let pulled = connection.registry()?.pull(store, image, platform, &bar).await;
    bar.clear();
    let pulled = pulled?;
    notes.line(format_args!(
        "pulled {image}: {} in {} layers, {} transferred",
        super::megabytes(pulled.size()),
        pulled.layers().len(),
        super::megabytes(bar.moved())
    ));
    Ok(image.with_digest(pulled.digest().clone()).to_string())
}
