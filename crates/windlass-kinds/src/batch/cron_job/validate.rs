//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::{CronJobs, schedule};
use crate::batch::job::validate_job_spec;
use crate::checks::dns_label_warning;
use crate::field::{self, Errors, Field};
use crate::json::text;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::warnings::pod_template_warnings;
use crate::subresource::Subresource;

impl Validate for CronJobs {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| validate(spec, None, errors))
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return Vec::new();
        }
        field::validate("spec", &object["spec"], |spec, errors| {
            validate(spec, Some(&spec.with(&old["spec"])), errors);
        })
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = Vec::new();
        if old.is_none() {
            warnings.extend(dns_label_warning(object, "this is used in Pod names and hostnames"));
        }
        if old.is_none_or(|old| old["spec"] != object["spec"]) {
            let path = "spec.jobTemplate.spec.template.";
            warnings.extend(pod_template_warnings(path, &object["spec"]["jobTemplate"]["spec"]["template"]));
        }
        if text(&object["spec"], "schedule").contains("TZ") {
            warnings.push("cannot use TZ or CRON_TZ in spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
        }
        warnings
    }
}

/// Returns why a text is not the name of a time zone. Without a time zone database, all names are valid.
fn time_zone_problems(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let mut problems = Vec::new();
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        problems.push(detail.to_owned());
    }
    if schedule::is_unknown_zone(zone) {
        problems.push(format!("unknown time zone {zone}"));
    }
    problems
}

fn validate(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let (times, zone) = (spec.at("schedule"), spec.at("timeZone"));
    if !times.require(errors) {
        if let Some(why) = schedule::problem(times.text()) {
            errors.push(times.invalid(why));
        }
        let has_zone = times.text().contains("TZ");
        let had_zone = old.is_some_and(|old| old.at("schedule").text().contains("TZ"));
        if has_zone && !had_zone {
            errors.push(times.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
        } else if has_zone && zone.is_set() {
            errors.push(times.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
        }
    }
    spec.at("startingDeadlineSeconds").not_negative(errors);
    if zone.is_set() && old.is_none_or(|old| old.at("timeZone").value() != zone.value()) {
        zone.check(time_zone_problems, errors);
    }
    spec.at("concurrencyPolicy").require_one_of(&["Allow", "Forbid", "Replace"], errors);
    let job = spec.at_path("jobTemplate/spec");
    validate_job_spec(&job, errors);
    let (selector, manual) = (job.at("selector"), job.at("manualSelector"));
    if selector.is_set() {
        errors.push(selector.invalid("`selector` will be auto-generated"));
    }
    if manual.flag() {
        errors.push(manual.unsupported_as(true, &["nil", "false"]));
    }
    for limit in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.at(limit).not_negative(errors);
    }
}
