//! Jobs and cron jobs.

mod cron_job;
mod job;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("cronjobs", &cron_job::KIND), ("jobs", &job::KIND)];
