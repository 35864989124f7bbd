//! Errors of lists and watches.

use std::time::Duration;

use serde::Deserialize;

use crate::{frame::UnreadableObject, scan::ScanError};

/// A failed list or watch. The reflector retries without help; the error is for logs and metrics.
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
    Refused(ErrorStatus),
    #[error("{0}")]
    Stalled(&'static str),
    #[error("the response is invalid: {0}")]
    Corrupt(#[from] ScanError),
    #[error("the response ended before it was complete")]
    Truncated,
    #[error("the watch ended right after it began")]
    Short,
    #[error(transparent)]
    UnreadableObject(#[from] UnreadableObject),
}

/// An error response of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ErrorStatus {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) details: Option<Details>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Details {
    #[serde(deserialize_with = "seconds")]
    retry_after_seconds: u64,
    causes: Vec<Cause>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

/// Reads any number as seconds, because a strange number must not hide the rest of the status.
fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_f64().map_or(0, |seconds| seconds as u64))
}

impl WatchError {
    /// Returns the status code of the server's response; `None` without a response.
    pub fn code(&self) -> Option<u16> {
        match &self.kind {
            WatchErrorKind::Refused(status) => Some(status.code),
            _ => None,
        }
    }

    /// Returns whether the server forbids the list or watch (403): a role lacks `list` or `watch` on the resource.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Returns whether the server does not have the kind (404), because the CRD is not installed.
    pub fn is_unknown_kind(&self) -> bool {
        self.code() == Some(404)
    }
}

impl WatchErrorKind {
    /// Returns whether the connection failed, here or behind a proxy. The next request may then reach a
    /// different server.
    pub(super) fn may_hide_a_restart(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Stalled(_) | Self::Truncated => true,
            Self::Refused(status) => matches!(status.code, 502..=504),
            Self::Corrupt(_) | Self::Short | Self::UnreadableObject(_) => false,
        }
    }
}

impl ErrorStatus {
    /// Reads the body of an error response, which should be a `Status`.
    pub(super) fn read(code: u16, body: &[u8]) -> Self {
        let status = serde_json::from_slice::<Self>(body).unwrap_or_default();
        Self { code: if status.code == 0 { code } else { status.code }, ..status }
    }

    pub(super) fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// Returns whether a watch cannot show the deletion of an object that the server cannot read. A later watch from the same resource
    /// version fails, too.
    pub(super) fn is_unreadable_deletion(&self) -> bool {
        self.reason == "StorageReadError"
    }

    /// Returns whether the server does not have the requested resource version yet. The server lags or was
    /// replaced.
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

impl std::fmt::Display for ErrorStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, reason, message, .. } = self;
        match code {
            401 => write!(f, "the credentials are not accepted (401): {message}"),
            403 => write!(f, "forbidden (403): {message}; grant the verbs list and watch on this resource"),
            404 => write!(f, "the server does not have this kind (404); waiting until its CRD is installed"),
            _ => {
                write!(f, "the server responded {code}")?;
                [(" ", reason), (": ", message)]
                    .iter()
                    .filter(|(_, text)| !text.is_empty())
                    .try_for_each(|(before, text)| write!(f, "{before}{text}"))
            }
        }
    }
}
