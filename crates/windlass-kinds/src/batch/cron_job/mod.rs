//! Cron jobs.

mod defaults;
mod table;
mod validate;

mod schedule;

use serde_json::{Value, json};
use windlass_wire::{ApiError, names};

use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &CronJobs,
    prepare: &CronJobs,
    validate: &CronJobs,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    pod_spec: Some("/spec/jobTemplate/spec/template/spec"),
    name: cron_job_name,
    ..KindConfig::SPEC
};

/// Checks the name of a cron job. The controller appends eleven characters to it for the names of jobs.
fn cron_job_name(value: &str, prefix: bool) -> Vec<String> {
    let mut problems = names::subdomain_name(value, prefix);
    if !prefix && value.len() > 52 {
        problems.push("must be no more than 52 characters".to_owned());
    }
    problems
}

pub(super) struct CronJobs;

impl Prepare for CronJobs {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }
}
