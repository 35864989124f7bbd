//! The state of a pod whose programs run.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::container::{ContainerMemory, Output};

/// The state of a real pod. The object shows it, but is never read back while this kubelet lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct RealMemory {
    pub containers: BTreeMap<String, ContainerMemory>,
    pub(super) volumes: Part,
    pub sandbox: Part,
    /// When the files of the volumes are written again.
    pub(super) refresh_at: Option<Timestamp>,
    pub(super) is_refreshing: bool,
    /// The digest of the labels and annotations at the last write of the volumes, for volumes of the downward API.
    pub(super) metadata: Option<u64>,
    /// True if all init containers have completed or, for sidecars, started.
    pub is_initialised: bool,
    /// True if `activeDeadlineSeconds` has passed.
    pub is_overdue: bool,
    pub(super) stopping_until: Option<Timestamp>,
    pub(super) is_adopted: bool,
}

/// A part of a pod that is made once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    #[default]
    Absent,
    Failed {
        failures: u32,
        retry_at: Timestamp,
    },
    Busy {
        failures: u32,
    },
    Ready,
    Removing {
        failures: u32,
    },
    /// The removal has failed.
    NotRemoved {
        failures: u32,
        retry_at: Timestamp,
    },
    Removed,
}

impl Part {
    /// Returns the number of earlier failures if an attempt is due.
    pub(super) fn is_due(self, now: Timestamp, out: &mut Output) -> Option<u32> {
        match self {
            Self::Absent => Some(0),
            Self::Failed { failures, retry_at } if retry_at <= now => Some(failures),
            Self::Failed { retry_at, .. } => {
                out.wake(retry_at);
                None
            }
            _ => None,
        }
    }

    /// Returns the number of earlier failures if the removal is due.
    pub(super) fn is_removal_due(self, now: Timestamp, out: &mut Output) -> Option<u32> {
        match self {
            Self::Ready | Self::Absent | Self::Failed { .. } => Some(0),
            Self::NotRemoved { failures, retry_at } if retry_at <= now => Some(failures),
            Self::NotRemoved { retry_at, .. } => {
                out.wake(retry_at);
                None
            }
            Self::Busy { .. } | Self::Removing { .. } | Self::Removed => None,
        }
    }

    /// Returns the part after a failure: the pause is `first`, doubled with each failure up to `most`.
    pub(super) fn failed(self, first: Duration, most: Duration, now: Timestamp) -> Self {
        let retry = |failures: u32| {
            let pause = first.saturating_mul(1_u32 << failures.min(12)).min(most);
            (failures.saturating_add(1), now.checked_add(pause).unwrap_or(now))
        };
        match self {
            Self::Busy { failures } => {
                let (failures, retry_at) = retry(failures);
                Self::Failed { failures, retry_at }
            }
            Self::Removing { failures } => {
                let (failures, retry_at) = retry(failures);
                Self::NotRemoved { failures, retry_at }
            }
            other => other,
        }
    }
}
