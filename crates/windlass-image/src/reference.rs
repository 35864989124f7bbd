//! Names of images, as Docker reads the names.

use std::fmt;
use std::str::FromStr;

use crate::Digest;

/// The registry of names without a registry.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The host that serves [`DEFAULT_REGISTRY`].
const DEFAULT_HOST: &str = "registry-1.docker.io";

/// The tag of names without a tag and without a digest.
const DEFAULT_TAG: &str = "latest";

/// The longest repository with its registry, in bytes.
const LONGEST: usize = 255;

/// Why a name is no name of an image, in Docker's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseReferenceError {
    /// The form is wrong.
    #[error("invalid reference format")]
    Format,
    /// The repository has upper-case letters.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    UpperCase(String),
    /// The name is longer than 255 bytes.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// The name looks like the ID of an image.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    LooksLikeId(String),
    /// The digest is wrong.
    #[error("{0}")]
    Digest(String),
}

/// The name of an image: `registry/repository:tag@digest`.
///
/// Parsing completes a short name: `web` is `docker.io/library/web:latest`. A name with a digest and without a tag stays without a tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Returns the registry, with its port if the name has a port: `127.0.0.1:5000`.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the host, with a port, that serves the registry. The host of `docker.io` has another name.
    pub fn host(&self) -> &str {
        if self.registry == DEFAULT_REGISTRY { DEFAULT_HOST } else { &self.registry }
    }

    /// Returns the repository, without the registry: `library/web`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the tag, if the name has a tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest, if the name has a digest.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Returns the registry and the repository: `docker.io/library/web`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Returns the name with a digest instead of the tag: `docker.io/library/web@sha256:…`.
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self { tag: None, digest: Some(digest), ..self.clone() }
    }

    /// Returns the name with a tag instead of the tag and the digest.
    pub fn with_tag(&self, tag: &str) -> Result<Self, ParseReferenceError> {
        check_tag(tag)?;
        Ok(Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() })
    }

    /// Returns the same repository and tag at another registry.
    pub fn at_registry(&self, registry: &str) -> Result<Self, ParseReferenceError> {
        check_registry(registry)?;
        Ok(Self { registry: registry.to_owned(), ..self.clone() })
    }

    /// Returns the tag or the digest as the last part of a URL: the digest, if the name has a digest.
    pub fn tag_or_digest(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_else(|| DEFAULT_TAG.to_owned()),
        }
    }

    /// Returns whether the registry is on this machine: `localhost`, or a loopback address.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.registry)
    }
}

/// Returns whether a registry, with or without a port, is `localhost` or a loopback address.
pub(crate) fn is_loopback(registry: &str) -> bool {
    let host = match registry.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => registry.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl FromStr for Reference {
    type Err = ParseReferenceError;

    fn from_str(text: &str) -> Result<Self, ParseReferenceError> {
        if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(ParseReferenceError::LooksLikeId(text.to_owned()));
        }
        let (text, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse().map_err(ParseReferenceError::Digest)?)),
            None => (text, None),
        };
        let (registry, rest) = split_registry(text);
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (rest, None),
        };
        check_registry(registry)?;
        if repository.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(ParseReferenceError::UpperCase(repository.to_owned()));
        }
        tag.iter().try_for_each(|tag| check_tag(tag))?;
        if !repository.split('/').all(is_component) {
            return Err(ParseReferenceError::Format);
        }
        if registry.len() + 1 + repository.len() > LONGEST {
            return Err(ParseReferenceError::TooLong);
        }
        let is_short = registry == DEFAULT_REGISTRY && !repository.contains('/');
        let repository = if is_short { format!("library/{repository}") } else { repository.to_owned() };
        let tag = tag.or_else(|| digest.is_none().then(|| DEFAULT_TAG.to_owned()));
        Ok(Self { registry: registry.to_owned(), repository, tag, digest })
    }
}

/// Splits a name at its first slash, if a registry is before the slash.
fn split_registry(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        Some(("index.docker.io", rest)) => (DEFAULT_REGISTRY, rest),
        Some((first, rest))
            if first == "localhost"
                || first.contains(['.', ':'])
                || first.bytes().any(|byte| byte.is_ascii_uppercase()) =>
        {
            (first, rest)
        }
        _ => (DEFAULT_REGISTRY, text),
    }
}

fn check_registry(registry: &str) -> Result<(), ParseReferenceError> {
    let (host, port) = match registry.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or(ParseReferenceError::Format)?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(ParseReferenceError::Format);
            }
            let port = if port.is_empty() { None } else { port.strip_prefix(':').or(Some("")) };
            ("ipv6", port)
        }
        None => match registry.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (registry, None),
        },
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let is_valid = host.split('.').all(is_label) && port.is_none_or(is_port);
    if is_valid { Ok(()) } else { Err(ParseReferenceError::Format) }
}

fn check_tag(tag: &str) -> Result<(), ParseReferenceError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_valid = tag.len() <= 128
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    if is_valid { Ok(()) } else { Err(ParseReferenceError::Format) }
}

/// Returns whether a part of a repository is lower-case letters and digits, separated by `.`, `_`, `__` or any number of `-`.
fn is_component(part: &str) -> bool {
    let is_alphanumeric = |byte: char| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !part.starts_with(is_alphanumeric) || !part.ends_with(is_alphanumeric) {
        return false;
    }
    part.split(is_alphanumeric).all(|separator| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    })
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn full(text: &str) -> String {
        text.parse::<Reference>().expect(text).to_string()
    }

    #[test]
    fn short_names_are_completed() {
        assert_eq!(full("web"), "docker.io/library/web:latest");
        assert_eq!(full("me/web:1.0"), "docker.io/me/web:1.0");
        assert_eq!(full("index.docker.io/web"), "docker.io/library/web:latest");
        assert_eq!(full("localhost/web"), "localhost/web:latest");
        assert_eq!(full("mock.com:5000/operator-demo:v1"), "mock.com:5000/operator-demo:v1");
        assert_eq!(full("[::1]:5000/a/b__c--d.e:v1"), "[::1]:5000/a/b__c--d.e:v1");
        let digest = Digest::of(b"");
        assert_eq!(full(&format!("web@{digest}")), format!("docker.io/library/web@{digest}"));
        assert_eq!(full(&format!("web:1@{digest}")), format!("docker.io/library/web:1@{digest}"));
    }

    #[test]
    fn wrong_names_are_refused_in_the_words_of_docker() {
        for text in [
            "",
            ":",
            "a//b",
            "/a",
            "a/",
            "-a",
            "a-",
            "a___b",
            "a:-1",
            "a:",
            "a b",
            "a..b",
            "x.y:port/a",
            "..",
            "a/../b",
            "x.y/a:b:c",
            "[::1/a",
            "[::1]5000/a",
        ] {
            assert_eq!(text.parse::<Reference>(), Err(ParseReferenceError::Format), "{text:?}");
        }
        let message = |text: &str| text.parse::<Reference>().expect_err(text).to_string();
        assert_eq!(message("me/Web"), "invalid reference format: repository name (me/Web) must be lowercase");
        assert_eq!(message("a@sha256:1"), "invalid checksum digest length");
        assert!(message(&"a".repeat(300)).contains("255"));
        assert!(message(&"a".repeat(64)).contains("64-byte hexadecimal"));
    }

    #[test]
    fn loopback_registries_are_known() {
        for registry in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.8.0.1", "[::1]:5000"] {
            assert!(is_loopback(registry), "{registry}");
        }
        for registry in ["mock.com:5000", "10.0.0.1", "localhost.example.com", "[fe80::1]:1"] {
            assert!(!is_loopback(registry), "{registry}");
        }
    }
}
