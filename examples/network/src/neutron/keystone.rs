//! Tokens of Keystone, API version 3.

use std::{sync::Arc, time::Duration};

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Error, transport::Transport};

/// A token with less time left is renewed.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// Credentials of a user in a project.
#[derive(Clone)]
pub struct Credentials {
    /// The URL of Keystone, such as `https://keystone.example.com:5000/v3`.
    pub auth_url: String,
    /// The name of the user.
    pub username: String,
    /// The password.
    pub password: String,
    /// The domain of the user.
    pub user_domain: String,
    /// The name of the project.
    pub project: String,
    /// The domain of the project.
    pub project_domain: String,
}

/// Obtains a token, keeps the token, and renews the token before expiry.
#[derive(Clone)]
pub(super) struct Tokens {
    credentials: Arc<Credentials>,
    transport: Transport,
    current: Arc<Mutex<Option<Token>>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) id: String,
    expires: Timestamp,
}

impl Token {
    /// Returns whether the token can be used for another request.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.expires.duration_since(now) > MARGIN
    }
}

impl Tokens {
    pub(super) fn new(credentials: Credentials, timeout: Duration) -> Result<Self, Error> {
        let transport = Transport::new("Keystone", timeout)?;
        Ok(Self { credentials: Arc::new(credentials), transport, current: Arc::default() })
    }

    /// Returns a token that is fresh at `now`. Concurrent callers share a request.
    pub(super) async fn token(&self, now: Timestamp) -> Result<Token, Error> {
        let mut current = self.current.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.is_fresh(now)) {
            return Ok(token.clone());
        }
        let token = self.obtain().await?;
        *current = Some(token.clone());
        Ok(token)
    }

    /// Drops a refused token. The next caller obtains a new token.
    pub(super) async fn forget(&self, refused: &Token) {
        let mut current = self.current.lock().await;
        if current.as_ref() == Some(refused) {
            *current = None;
        }
    }

    async fn obtain(&self) -> Result<Token, Error> {
        let url = format!("{}/auth/tokens", self.credentials.auth_url.trim_end_matches('/'));
        let reply = self.transport.send(Method::POST, &url, None, Some(&self.credentials.body())).await?;
        let id = reply.headers.get("X-Subject-Token").and_then(|value| value.to_str().ok());
        let undecodable = |reason: &str| Error::Undecodable { server: "Keystone", reason: reason.to_owned() };
        let id = id.ok_or_else(|| undecodable("no header X-Subject-Token"))?.to_owned();
        let body: Value = reply.json()?;
        let expires = body["token"]["expires_at"].as_str().and_then(|time| time.parse().ok());
        let expires = expires.ok_or_else(|| undecodable("no time in token.expires_at"))?;
        Ok(Token { id, expires })
    }
}

impl Credentials {
    fn body(&self) -> Value {
        json!({ "auth": {
            "identity": { "methods": ["password"], "password": { "user": {
                "name": self.username, "password": self.password, "domain": { "name": self.user_domain } } } },
            "scope": { "project": { "name": self.project, "domain": { "name": self.project_domain } } },
        } })
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { auth_url, username, project, .. } = self;
        f.debug_struct("Credentials")
            .field("auth_url", auth_url)
            .field("username", username)
            .field("project", project)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
