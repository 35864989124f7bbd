//! Jobs and cron jobs.

mod cron_job;
mod indexes;
mod job;
mod job_status;
mod policies;

use super::{Facts, FactsOnly, Strategy};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "jobs" => &job::Jobs,
        "cronjobs" => &cron_job::CronJobs,
        _ => &FactsOnly(&Facts::SPEC),
    }
}
