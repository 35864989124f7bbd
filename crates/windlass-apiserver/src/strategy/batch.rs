//! Jobs and cron jobs.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::apps::{default_template, validate_template_of};
use super::checks::{enumerated, immutable, invalid_names, validate_not_negative};
use super::fields::{default, entry_mut, map_at, spec_mut, text, text_at};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::meta;
use crate::wire::{ApiError, LabelSelector, names};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "jobs" => &Jobs,
        "cronjobs" => &CronJobs,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const JOBS: Facts = Facts {
    orphans_by_default: true,
    selectable: &[("status.successful", "/status/succeeded")],
    unenforced: Some("no pods are made, because there is no job controller"),
    ..Facts::SPEC
};
const CRON_JOBS: Facts = Facts {
    name: cron_job_name,
    unenforced: Some("no jobs are made, because there is no cron job controller"),
    ..Facts::SPEC
};

/// Checks the name of a cron job. The controller appends eleven characters to it for the names of jobs.
fn cron_job_name(value: &str, prefix: bool) -> Vec<String> {
    let mut problems = names::subdomain_name(value, prefix);
    if !prefix && value.len() > 52 {
        problems.push("must be no more than 52 characters".to_owned());
    }
    problems
}

const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

struct Jobs;

fn default_job(spec: &mut Map<String, Value>) {
    if spec.get("completions").is_none_or(Value::is_null)
        && spec.get("parallelism").is_none_or(Value::is_null)
    {
        spec.insert("completions".to_owned(), 1.into());
    }
    default(spec, "parallelism", 1);
    let per_index = spec.contains_key("backoffLimitPerIndex");
    default(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let failures = spec.contains_key("podFailurePolicy");
    default(spec, "podReplacementPolicy", if failures { "Failed" } else { "TerminatingOrFailed" });
    default_template(spec);
}

fn validate_job_template(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = validate_template_of(spec, path);
    let policy = text_at(spec, "/template/spec/restartPolicy");
    let field = format!("{path}.spec.restartPolicy");
    if policy.is_empty() || policy == "Always" {
        errors.push(FieldError::required(field, "valid values: \"OnFailure\", \"Never\""));
    }
    errors
}

/// Sets the labels by which a job selects its pods.
fn label_with_owner(labels: &mut Map<String, Value>, name: &str, uid: &str) {
    for label in UID_LABELS {
        labels.insert(label.to_owned(), uid.into());
    }
    for label in NAME_LABELS {
        labels.insert(label.to_owned(), name.into());
    }
}

impl Strategy for Jobs {
    fn facts(&self) -> &'static Facts {
        &JOBS
    }

    fn default(&self, object: &mut Value) {
        default_job(spec_mut(object));
    }

    fn unsupported_field(&self, field: &str) -> Option<String> {
        Some(format!("field label {} not supported for Job", windlass_schema::go_quote(field)))
    }

    fn orphaning_warning(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        )
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let (name, uid) = (meta::name(object).to_owned(), meta::uid(object).to_owned());
        if object.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
            let spec = spec_mut(object);
            if let Some(template) = entry_mut(spec, "template") {
                default(template, "metadata", json!({}));
                if let Some(metadata) = entry_mut(template, "metadata") {
                    default(metadata, "labels", json!({}));
                    if let Some(labels) = entry_mut(metadata, "labels") {
                        label_with_owner(labels, &name, &uid);
                    }
                }
            }
            spec.insert("selector".to_owned(), json!({"matchLabels": {UID_LABELS[0]: uid}}));
        }
        // The labels of the pods are the default of the job's labels.
        if map_at(object, "/metadata/labels").is_none_or(Map::is_empty)
            && let Some(labels) = map_at(object, "/spec/template/metadata/labels").cloned()
        {
            meta::set(object, "labels", Some(Value::Object(labels)));
        }
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let spec = spec_mut(object);
        if let Some(selector) = old.pointer("/spec/selector") {
            default(spec, "selector", selector.clone());
        }
        if let Some(completions) = old.pointer("/spec/completions") {
            default(spec, "completions", completions.clone());
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let counts = [
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
        ];
        validate_not_negative(spec, &counts, &mut errors);
        if let Some(selector) = spec.get("selector") {
            let labels = map_at(spec, "/template/metadata/labels");
            if !LabelSelector::from_object(selector).matches(labels) {
                let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
                let detail = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
            }
        }
        errors.extend(validate_job_template(spec, "spec.template"));
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = immutable(object, old, "/spec/completions");
        errors.extend(immutable(object, old, "/spec/selector"));
        let suspended = old.pointer("/spec/suspend") == Some(&Value::Bool(true))
            && old.pointer("/status/startTime").is_none_or(Value::is_null);
        if suspended {
            validate_scheduling_only(object, old, &mut errors);
        } else {
            errors.extend(immutable(object, old, "/spec/template"));
        }
        errors.extend(immutable(object, old, "/spec/completionMode"));
        errors
    }
}

/// Checks that only the scheduling of the pods changes, the part of the template that is mutable before a job starts.
fn validate_scheduling_only(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let fixed = |object: &Value| {
        let mut pod =
            object.pointer("/spec/template/spec").and_then(Value::as_object).cloned().unwrap_or_default();
        for field in
            ["affinity", "nodeSelector", "tolerations", "schedulingGates", "topologySpreadConstraints"]
        {
            pod.remove(field);
        }
        pod
    };
    let (new, before) = (fixed(object), fixed(old));
    if new != before {
        errors.push(FieldError::invalid("spec.template.spec", Value::Object(new), "field is immutable"));
    }
}

struct CronJobs;

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

impl Strategy for CronJobs {
    fn facts(&self) -> &'static Facts {
        &CRON_JOBS
    }

    fn default(&self, object: &mut Value) {
        if let Some(template) = entry_mut(spec_mut(object), "jobTemplate")
            && let Some(spec) = entry_mut(template, "spec")
        {
            default_template(spec);
        }
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let schedule = text(spec, "schedule");
        if schedule.is_empty() {
            errors.push(FieldError::required("spec.schedule", ""));
        } else if let Some(why) = schedule_problem(schedule) {
            errors.push(FieldError::invalid("spec.schedule", schedule, why));
        }
        if schedule.contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid("spec.schedule", schedule, detail));
        }
        if let Some(zone) = spec.get("timeZone").and_then(Value::as_str) {
            errors.extend(invalid_names("spec.timeZone", zone, time_zone_problems(zone)));
        }
        validate_not_negative(spec, &["startingDeadlineSeconds"], &mut errors);
        let known = ["Allow", "Forbid", "Replace"];
        errors.extend(enumerated("spec.concurrencyPolicy", text(spec, "concurrencyPolicy"), &known));
        if let Some(job) = spec.pointer("/jobTemplate/spec") {
            errors.extend(validate_job_template(job, "spec.jobTemplate.spec.template"));
        }
        validate_not_negative(spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], &mut errors);
        errors
    }
}
