//! The paths of the distribution protocol.

use super::reply::Refusal;
use crate::reference::is_loopback;
use crate::{Digest, Entry, Reference, Result, Store};

/// A path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Root,
    Catalog,
    /// The repository.
    Tags(&'a str),
    /// The repository, and a tag or a digest.
    Manifest(&'a str, &'a str),
    /// The repository and the digest.
    Blob(&'a str, &'a str),
    /// The repository.
    Uploads(&'a str),
    /// The repository and the ID of an upload.
    Upload(&'a str, &'a str),
    /// The repository and the digest.
    Referrers(&'a str, &'a str),
}

impl<'a> Route<'a> {
    /// Parses a path. A repository may contain slashes, so the path is read from its end.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix("/v2")?;
        if matches!(rest, "" | "/") {
            return Some(Self::Root);
        }
        let rest = rest.strip_prefix('/')?;
        if rest == "_catalog" {
            return Some(Self::Catalog);
        }
        if let Some(name) = rest.strip_suffix("/tags/list") {
            return Some(Self::Tags(name));
        }
        if let Some(name) =
            rest.strip_suffix("/blobs/uploads/").or_else(|| rest.strip_suffix("/blobs/uploads"))
        {
            return Some(Self::Uploads(name));
        }
        let (front, last) = rest.rsplit_once('/')?;
        if let Some(name) = front.strip_suffix("/blobs/uploads") {
            return Some(Self::Upload(name, last));
        }
        let (name, kind) = front.rsplit_once('/')?;
        match kind {
            "manifests" => Some(Self::Manifest(name, last)),
            "blobs" => Some(Self::Blob(name, last)),
            "referrers" => Some(Self::Referrers(name, last)),
            _ => None,
        }
    }
}

/// A repository, at the address by which a client knows this registry.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) name: String,
    host: String,
    /// The repository with the tag `latest`.
    any: Reference,
}

impl Repository {
    pub(super) fn new(host: &str, name: &str) -> Result<Self, Refusal> {
        let any: Reference = format!("{host}/{name}:latest").parse().map_err(|_| Refusal::name_invalid())?;
        // A host without a dot and a port is no registry in a name.
        if any.repository() != name {
            return Err(Refusal::name_invalid());
        }
        Ok(Self { name: name.to_owned(), host: host.to_owned(), any })
    }

    pub(super) fn tagged(&self, tag: &str) -> Result<Reference, Refusal> {
        self.any.with_tag(tag).map_err(|_| Refusal::manifest_invalid("the tag is invalid"))
    }

    pub(super) fn digested(&self, digest: Digest) -> Reference {
        self.any.with_digest(digest)
    }

    /// Returns the images of the repository in a store. A loopback address is another name for the same registry.
    pub(super) fn entries(&self, store: &Store) -> Result<Vec<Entry>, Refusal> {
        let entries = store.list()?.into_iter();
        let is_here = |entry: &Entry| {
            entry.reference.repository() == self.name && is_same(entry.reference.registry(), &self.host)
        };
        Ok(entries.filter(is_here).collect())
    }
}

/// Returns whether two addresses are those of one registry.
pub(super) fn is_same(registry: &str, host: &str) -> bool {
    let port = |text: &str| text.rsplit_once(':').map(|(_, port)| port.to_owned());
    registry == host || (is_loopback(registry) && is_loopback(host) && port(registry) == port(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_their_ends() {
        assert_eq!(Route::parse("/v2/"), Some(Route::Root));
        assert_eq!(Route::parse("/v2/a/b/manifests/v1"), Some(Route::Manifest("a/b", "v1")));
        assert_eq!(Route::parse("/v2/a/blobs/uploads/"), Some(Route::Uploads("a")));
        assert_eq!(Route::parse("/v2/a/blobs/uploads/1"), Some(Route::Upload("a", "1")));
        assert_eq!(
            Route::parse("/v2/manifests/manifests/blobs/x"),
            Some(Route::Blob("manifests/manifests", "x"))
        );
        assert_eq!(Route::parse("/v2/a/tags/list"), Some(Route::Tags("a")));
        for path in ["/", "/v1/", "/v2x", "/v2/a", "/v2/a/other/x"] {
            assert_eq!(Route::parse(path), None, "{path}");
        }
    }

    #[test]
    fn loopback_addresses_are_one_registry() {
        assert!(is_same("127.0.0.1:5000", "localhost:5000") && is_same("mock.com:5000", "mock.com:5000"));
        assert!(!is_same("127.0.0.1:5001", "localhost:5000") && !is_same("mock.com:5000", "localhost:5000"));
    }
}
