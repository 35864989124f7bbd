//! Names and passwords for registries.

use std::fmt;

use super::docker_config::DockerConfigs;
use crate::{Reference, Result};

/// A name and a password, or a token.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// A name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token that the token service exchanges for a token for a request.
    IdentityToken(String),
}

impl Login {
    /// Makes a login with a name and a password.
    pub fn password(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self::Password { user: user.into(), password: password.into() }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => {
                f.debug_struct("Password").field("user", user).finish_non_exhaustive()
            }
            Self::IdentityToken(_) => f.debug_tuple("IdentityToken").finish_non_exhaustive(),
        }
    }
}

/// Names and passwords for registries. Default: none, so that requests are anonymous.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    given: Vec<Login>,
    files: bool,
}

impl Credentials {
    /// Tries the logins at each registry, in their order, then a request without a login.
    pub fn of(logins: impl IntoIterator<Item = Login>) -> Self {
        Self { given: logins.into_iter().collect(), files: false }
    }

    /// Reads the files of Docker and podman, as they are at each request: `$REGISTRY_AUTH_FILE`, else `$DOCKER_CONFIG/config.json` or
    /// `~/.docker/config.json` with credential helpers, else `$XDG_RUNTIME_DIR/containers/auth.json` and `~/.config/containers/auth.json`.
    pub fn from_files() -> Self {
        Self { given: Vec::new(), files: true }
    }

    /// Returns the logins to try for a repository, in their order. `None` is a request without a login.
    pub(super) async fn logins(&self, reference: &Reference) -> Result<Vec<Option<Login>>> {
        let mut logins: Vec<Option<Login>> = self.given.iter().cloned().map(Some).collect();
        if self.files {
            logins.extend(DockerConfigs::of_user().login(reference).await?.map(Some));
        }
        logins.push(None);
        Ok(logins)
    }
}
