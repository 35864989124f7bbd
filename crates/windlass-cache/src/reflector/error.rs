//! What can go wrong with a list or watch.

use std::time::Duration;

use serde::Deserialize;

use crate::{frame::BadObject, scan::ScanError};

/// Why a list or watch failed. The reflector tries again by itself; this is for logs, metrics and the person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource}: {kind}")]
pub struct WatchError {
    pub(super) resource: String,
    pub(super) kind: WatchErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WatchErrorKind {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("{0}")]
    Refused(Refusal),
    #[error("{0}")]
    Stalled(&'static str),
    #[error("the body is not what was asked for: {0}")]
    Corrupt(#[from] ScanError),
    #[error("the body ended before it was complete")]
    Truncated,
    #[error("the watch ended as soon as it had begun")]
    Short,
    #[error(transparent)]
    BadObject(#[from] BadObject),
}

/// An answer that is not the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) details: Option<Details>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Details {
    retry_after_seconds: u64,
    causes: Vec<Cause>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl WatchError {
    /// The status code of the server's answer.
    pub fn code(&self) -> Option<u16> {
        match &self.kind {
            WatchErrorKind::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }

    /// Whether the server forbids the list or watch: a role lacks `list` or `watch` on the resource.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Whether the server does not know the kind: its CRD is not installed (yet).
    pub fn is_unknown_kind(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether it concerns one object only, and the watch goes on.
    pub fn is_bad_object(&self) -> bool {
        matches!(self.kind, WatchErrorKind::BadObject(_))
    }

    /// The object that could not be read.
    pub fn bad_object(&self) -> Option<&BadObject> {
        match &self.kind {
            WatchErrorKind::BadObject(bad) => Some(bad),
            _ => None,
        }
    }
}

impl WatchErrorKind {
    /// Whether the connection failed, here or behind a proxy: another server may answer the next request.
    pub(super) fn may_hide_a_restart(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Stalled(_) | Self::Truncated => true,
            Self::Refused(refusal) => matches!(refusal.code, 502..=504),
            Self::Corrupt(_) | Self::Short | Self::BadObject(_) => false,
        }
    }
}

impl Refusal {
    /// Reads the body of an answer, which should be a `Status`.
    pub(super) fn read(code: u16, body: &[u8]) -> Self {
        let status = serde_json::from_slice::<Self>(body).unwrap_or_default();
        Self { code: if status.code == 0 { code } else { status.code }, ..status }
    }

    pub(super) fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// The server is behind the resourceVersion that was asked for, or was replaced by one that is.
    pub(super) fn is_version_too_large(&self) -> bool {
        self.causes().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.message.starts_with("Too large resource version")
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    fn causes(&self) -> impl Iterator<Item = &Cause> {
        self.details.iter().flat_map(|details| &details.causes)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, reason, message, .. } = self;
        match code {
            401 => write!(f, "the server does not know who asks (401): {message}"),
            403 => write!(f, "forbidden (403): {message}; grant the verbs list and watch on it"),
            404 => write!(f, "the server does not have this kind (404); waiting for its CRD"),
            _ => {
                write!(f, "the server answered {code}")?;
                [(" ", reason), (": ", message)]
                    .iter()
                    .filter(|(_, text)| !text.is_empty())
                    .try_for_each(|(before, text)| write!(f, "{before}{text}"))
            }
        }
    }
}
