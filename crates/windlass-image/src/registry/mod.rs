//! A client of registries, by the distribution protocol.

mod answer;
mod auth;
mod challenge;
mod credentials;
mod docker_config;
mod options;
mod progress;
mod pull;
mod push;
mod referrers;
mod transport;
mod upload;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::{HeaderValue, Method, StatusCode, Uri};

pub use self::credentials::{Credentials, Login};
pub use self::options::RegistryOptions;
pub use self::progress::{NoProgress, Progress, Step};
pub use self::push::Pushed;
use self::transport::{Call, Reply, Transport};
use crate::{Digest, Error, Reference, Result, media_type};

/// The media types of manifests and indexes, for the header `Accept`.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json, \
                         application/vnd.docker.distribution.manifest.v2+json";

/// A client of all registries.
///
/// The client authenticates as a registry asks for: with a name and a password, or with a token of the registry's token service. A request
/// that a registry answers with 5xx or 429 is repeated up to three times, with back-off. All bytes are checked by their digests.
#[derive(Debug)]
pub struct Registry {
    transport: Transport,
    options: RegistryOptions,
    /// The scheme of each registry that was reached.
    schemes: Mutex<HashMap<String, &'static str>>,
    /// The value of the header `Authorization`, by registry and scope.
    authorizations: Mutex<HashMap<(String, String), HeaderValue>>,
}

/// The access of a request to a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Pull,
    Push,
}

impl Registry {
    /// Makes a client. Fails if a CA file cannot be read.
    pub fn new(options: RegistryOptions) -> Result<Self> {
        let transport = Transport::new(&options)?;
        Ok(Self { transport, options, schemes: Mutex::default(), authorizations: Mutex::default() })
    }

    /// Returns the digest of the manifest or index with a name at its registry. Returns `None` if the registry has no such image.
    pub async fn digest(&self, reference: &Reference) -> Result<Option<Digest>> {
        let uri = self.uri(reference, &format!("manifests/{}", reference.tag_or_digest())).await?;
        let call = Call::new(Method::HEAD, uri).accept(MANIFESTS);
        let reply = self.send(reference, Access::Pull, call).await?;
        if reply.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let reply = reply.successful().await?;
        if let Some(digest) = reply.header("docker-content-digest").and_then(|digest| digest.parse().ok()) {
            return Ok(Some(digest));
        }
        self.manifest(reference).await.map(|found| found.map(|(_, bytes)| Digest::of(&bytes)))
    }

    /// Returns the media type and the bytes of a manifest or index. Returns `None` if the registry has no such manifest.
    async fn manifest(&self, reference: &Reference) -> Result<Option<(String, Vec<u8>)>> {
        let uri = self.uri(reference, &format!("manifests/{}", reference.tag_or_digest())).await?;
        let reply = self.send(reference, Access::Pull, Call::new(Method::GET, uri).accept(MANIFESTS)).await?;
        if reply.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let reply = reply.successful().await?;
        let promised: Option<Digest> =
            reply.header("docker-content-digest").and_then(|digest| digest.parse().ok());
        let media_type = reply.header("content-type").unwrap_or(media_type::MANIFEST).to_owned();
        let bytes = reply.bytes(crate::store::LARGEST_DOCUMENT).await?;
        let found = Digest::of(&bytes);
        for expected in reference.digest().into_iter().chain(&promised) {
            if *expected != found {
                let what = format!("the manifest of {reference}");
                return Err(Error::WrongDigest { what, expected: expected.clone(), found });
            }
        }
        Ok(Some((media_type, bytes)))
    }

    /// Returns the address of a path in a repository.
    async fn uri(&self, reference: &Reference, path: &str) -> Result<Uri> {
        let scheme = self.scheme(reference).await?;
        let text = format!("{scheme}://{}/v2/{}/{path}", reference.host(), reference.repository());
        text.parse().map_err(|error| Error::Invalid(format!("{text} is no address: {error}")))
    }

    /// Returns the scheme of a registry. Plain HTTP is tried if HTTPS fails, and the registry is a loopback address or is configured.
    async fn scheme(&self, reference: &Reference) -> Result<&'static str> {
        let host = reference.host();
        if self.options.plain_http {
            return Ok("http");
        }
        if let Some(scheme) = lock(&self.schemes).get(host) {
            return Ok(scheme);
        }
        let may_be_plain = reference.is_loopback() || self.options.is_insecure(reference.registry());
        let scheme = match self.probe("https", host).await {
            Ok(()) => "https",
            Err(error) if !may_be_plain => return Err(error.with_hint()),
            Err(error) => match self.probe("http", host).await {
                Ok(()) => "http",
                // Without a listener, both errors are the same.
                Err(plain) if plain.is_connect() => return Err(plain.into_error()),
                Err(_) => return Err(error.with_hint()),
            },
        };
        lock(&self.schemes).insert(host.to_owned(), scheme);
        Ok(scheme)
    }

    async fn probe(&self, scheme: &str, host: &str) -> Result<(), transport::Failure> {
        let uri: Uri = format!("{scheme}://{host}/v2/")
            .parse()
            .map_err(|error| transport::Failure::new(host, format!("no address: {error}")))?;
        let reply = self.transport.once(&Call::new(Method::GET, uri)).await?;
        // A server with TLS answers a plain request with 400.
        if scheme == "http" && reply.status() == StatusCode::BAD_REQUEST {
            return Err(transport::Failure::new(host, "the registry speaks no plain HTTP".to_owned()));
        }
        Ok(())
    }

    /// Sends a request, with the authorization that the registry asks for. A refused HEAD has no text, so the refusal of the same GET is
    /// returned in its place.
    async fn send(&self, reference: &Reference, access: Access, mut call: Call) -> Result<Reply> {
        let reply = self.authorized(reference, access, &mut call).await?;
        if call.method != Method::HEAD
            || reply.status().is_success()
            || reply.status() == StatusCode::NOT_FOUND
        {
            return Ok(reply);
        }
        call.method = Method::GET;
        match self.transport.once(&call).await {
            Ok(explained) if explained.status() == reply.status() => Ok(explained),
            _ => Ok(reply),
        }
    }

    /// Sends a request, and sets the authorization of the request.
    async fn authorized(&self, reference: &Reference, access: Access, call: &mut Call) -> Result<Reply> {
        let scope = match access {
            Access::Pull => format!("repository:{}:pull", reference.repository()),
            Access::Push => format!("repository:{}:pull,push", reference.repository()),
        };
        let key = (reference.host().to_owned(), scope.clone());
        let known = lock(&self.authorizations).get(&key).cloned();
        call.authorization =
            known.filter(|_| call.uri.authority().is_some_and(|it| it.as_str() == reference.host()));
        let reply = self.transport.send(call).await?;
        if reply.status() != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        let challenges = reply.challenges();
        let mut last = reply;
        for login in self.options.credentials.logins(reference).await? {
            let answered = self.authorization(reference, &challenges, &scope, login.as_ref()).await?;
            let Some(authorization) = answered else { continue };
            call.authorization = Some(authorization.clone());
            let reply = self.transport.send(call).await?;
            if !matches!(reply.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                lock(&self.authorizations).insert(key, authorization);
                return Ok(reply);
            }
            last = reply;
        }
        Ok(last)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
