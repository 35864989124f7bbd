//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::CronJobs;
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

/// Returns why a schedule is invalid. Descriptors such as `@daily` are valid.
fn schedule_problem(schedule: &str) -> Option<String> {
    if let Some(word) = schedule.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        let fits = known.contains(&word) || word.starts_with("every ");
        return (!fits).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule
        .split_whitespace()
        .filter(|field| !field.starts_with("TZ=") && !field.starts_with("CRON_TZ="))
        .collect();
    if fields.len() != 5 {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    fields.iter().zip(bounds).find_map(|(field, (least, most))| schedule_field_problem(field, least, most))
}

fn schedule_field_problem(field: &str, least: u32, most: u32) -> Option<String> {
    for part in field.split(',') {
        let range = part.split_once('/').map_or(part, |(range, _)| range);
        for end in range.split('-').filter(|end| !matches!(*end, "*" | "?")) {
            let is_name = end.len() == 3 && end.bytes().all(|byte| byte.is_ascii_alphabetic());
            match end.parse::<u32>() {
                Err(_) if is_name => {}
                Err(_) => {
                    return Some(format!(
                        "failed to parse int from {end}: strconv.Atoi: parsing {}: invalid syntax",
                        windlass_schema::go_quote(end)
                    ));
                }
                Ok(value) if value < least => {
                    return Some(format!("beginning of range ({value}) below minimum ({least}): {field}"));
                }
                Ok(value) if value > most => {
                    return Some(format!("end of range ({value}) above maximum ({most}): {field}"));
                }
                Ok(_) => {}
            }
        }
    }
    None
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
    let database = jiff::tz::db();
    if zone != "Local" && !database.is_definitively_empty() && database.get(zone).is_err() {
        problems.push(format!("unknown time zone {zone}"));
    }
    problems
}

fn validate(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let (schedule, zone) = (spec.at("schedule"), spec.at("timeZone"));
    if !schedule.require(errors) {
        if let Some(why) = schedule_problem(schedule.text()) {
            errors.push(schedule.invalid(why));
        }
        let has_zone = schedule.text().contains("TZ");
        let had_zone = old.is_some_and(|old| old.at("schedule").text().contains("TZ"));
        if has_zone && !had_zone {
            errors.push(schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
        } else if has_zone && zone.is_set() {
            errors.push(schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
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
