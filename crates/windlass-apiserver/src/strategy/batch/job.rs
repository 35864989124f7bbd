//! Jobs.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::{job_status, policies};
use crate::meta;
use crate::strategy::apps::{default_template, label_selector};
use crate::strategy::checks::{dns_label_warning, domain_path};
use crate::strategy::core::{pod_template_warnings, validate_template};
use crate::strategy::fields::{default, entry_mut, map_at, spec_mut, text};
use crate::strategy::place::{self, Errors, Place};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::{ApiError, LabelSelector, names};

const JOBS: Facts = Facts {
    orphans_by_default: true,
    selectable: &[("status.successful", "/status/succeeded")],
    ..Facts::SPEC
};

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
/// The number of completions above which an indexed job has limits on failures.
const MANY_COMPLETIONS: i64 = 100_000;

pub(super) struct Jobs;

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

/// Sets the labels in a job's selector, unless the client set the labels.
fn label_with_owner(labels: &mut Map<String, Value>, name: &str, uid: &str) {
    for label in UID_LABELS {
        labels.entry(label).or_insert_with(|| uid.into());
    }
    for label in NAME_LABELS {
        labels.entry(label).or_insert_with(|| name.into());
    }
}

impl Strategy for Jobs {
    fn facts(&self) -> &'static Facts {
        &JOBS
    }

    fn default(&self, object: &mut Value) {
        default_job(spec_mut(object));
        // The labels of the pods are the default of the job's labels. In a new job, they are added later.
        if map_at(object, "/metadata/labels").is_none_or(Map::is_empty)
            && let Some(labels) = map_at(object, "/spec/template/metadata/labels")
            && labels.contains_key(UID_LABELS[1])
        {
            let labels = Value::Object(labels.clone());
            meta::set(object, "labels", Some(labels));
        }
    }

    fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = JOBS.selectable_value(object, field);
        if field == "status.successful" && value.is_empty() { "0".to_owned() } else { value }
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
            default(spec, "selector", json!({}));
            if let Some(selector) = entry_mut(spec, "selector") {
                default(selector, "matchLabels", json!({}));
                if let Some(labels) = entry_mut(selector, "matchLabels") {
                    labels.entry(UID_LABELS[1]).or_insert_with(|| uid.clone().into());
                }
            }
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

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("", object, |job, errors| {
            validate_generated(job, errors);
            validate_spec(&job.at("spec"), errors);
            validate_host_name(job, errors);
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        place::validate("", object, |job, errors| {
            // kube-apiserver validates the spec again, and repeats its errors.
            validate_spec(&job.at("spec"), errors);
            validate_change(job, &job.with(old), errors);
        })
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        place::validate("", object, |job, errors| job_status::validate(job, &job.with(old), errors))
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = JOBS.unenforced_warning().into_iter().collect();
        let spec = &object["spec"];
        if old.is_none() {
            warnings.extend(dns_label_warning(object, "this is used in Pod names and hostnames"));
        }
        if old.is_none_or(|old| old["spec"] != *spec) {
            let number = |field: &str| spec.get(field).and_then(Value::as_i64);
            let is_large = number("completions").is_some_and(|count| count > MANY_COMPLETIONS)
                && number("parallelism").is_some_and(|count| count > 10_000);
            if text(spec, "completionMode") == "Indexed" && is_large {
                warnings.push("spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail".to_owned());
            }
            warnings.extend(pod_template_warnings("spec.template.", &spec["template"]));
        }
        warnings
    }
}

/// Checks that generated labels and selectors are unchanged.
fn validate_generated(job: &Place<'_>, errors: &mut Errors) {
    let spec = job.at("spec");
    let selector = spec.at("selector");
    if spec.at("manualSelector").flag() || !selector.is_set() {
        return;
    }
    let labels = spec.below("template/metadata/labels");
    let (uid, name) = (job.below("metadata/uid").text(), job.below("metadata/name").text());
    let expected =
        [(UID_LABELS[0], uid), (NAME_LABELS[0], name), (UID_LABELS[1], uid), (NAME_LABELS[1], name)];
    for (key, value) in expected {
        let label = labels.key(key);
        let detail = format!("must be '{value}'");
        if !label.is_set() {
            errors.push(label.required(detail));
        } else if label.text() != value {
            errors.push(label.invalid_as(labels.value().clone(), detail));
        }
    }
    let generated: Map<String, Value> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let mut problems = Errors::new();
    label_selector(&selector, &mut problems);
    if problems.is_empty() && !LabelSelector::from_object(selector.value()).matches(Some(&generated)) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn validate_spec(spec: &Place<'_>, errors: &mut Errors) {
    validate_job_spec(spec, errors);
    let (selector, labels) = (spec.at("selector"), spec.below("template/metadata/labels"));
    if !selector.is_set() {
        errors.push(selector.required(""));
    }
    let before = errors.len();
    label_selector(&selector, errors);
    let is_valid = errors.len() == before;
    let matches = selector.is_set() && LabelSelector::from_object(selector.value()).matches(labels.map());
    if is_valid && !matches {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

/// Validates the spec of a job or of the template of a job.
pub(super) fn validate_job_spec(spec: &Place<'_>, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for count in counts {
        spec.at(count).not_negative(errors);
    }
    let per_index = spec.at("backoffLimitPerIndex");
    if spec.at("maxFailedIndexes").is_set() && !per_index.is_set() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    let manager = spec.at("managedBy");
    if manager.is_set() {
        domain_path(&manager, errors);
        if manager.text().len() > 63 {
            errors.push(manager.too_long(63));
        }
    }
    validate_mode(spec, errors);
    policies::validate(spec, errors);
    validate_template(&spec.at("template"), errors);
    let restart = spec.below("template/spec/restartPolicy");
    match restart.text() {
        "" | "Always" => errors.push(restart.required("valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" => {
            if spec.at("podFailurePolicy").is_set() {
                let detail = "only \"Never\" is supported when podFailurePolicy is specified";
                errors.push(restart.invalid(detail));
            }
        }
        _ => errors.push(restart.unsupported(&["OnFailure", "Never"])),
    }
}

fn validate_mode(spec: &Place<'_>, errors: &mut Errors) {
    let mode = spec.at("completionMode");
    mode.one_of(&["NonIndexed", "Indexed"], errors);
    if mode.text() == "Indexed" {
        validate_indexed(spec, errors);
    } else if !mode.is_set() || mode.text() == "NonIndexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"].map(|field| spec.at(field)) {
            if field.is_set() {
                errors.push(field.invalid("requires indexed completion mode"));
            }
        }
    }
}

fn validate_indexed(spec: &Place<'_>, errors: &mut Errors) {
    let (completions, parallelism) = (spec.at("completions"), spec.at("parallelism"));
    let failed = spec.at("maxFailedIndexes");
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    if parallelism.int() > 100_000 {
        let detail = "must be less than or equal to 100000 when completion mode is Indexed";
        errors.push(parallelism.invalid(detail));
    }
    if completions.is_set() && failed.is_set() && failed.int() > completions.int() {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    if failed.int() > 100_000 {
        errors.push(failed.invalid("must be less than or equal to 100000"));
    }
    if completions.int() <= MANY_COMPLETIONS || !spec.at("backoffLimitPerIndex").is_set() {
        return;
    }
    if !failed.is_set() {
        errors.push(failed.required("must be specified when completions is above 100000"));
    }
    for (field, most) in [(parallelism, 10_000), (failed, 10_000)] {
        if field.int() > most {
            let detail = format!(
                "must be less than or equal to {most} when completions are above 100000 and used with backoff limit per index"
            );
            errors.push(field.invalid(detail));
        }
    }
}

/// Checks that the name of the last pod of an indexed job is a host name.
fn validate_host_name(job: &Place<'_>, errors: &mut Errors) {
    let completions = job.below("spec/completions").int();
    if job.below("spec/completionMode").text() != "Indexed" || completions <= 0 {
        return;
    }
    let name = job.below("metadata/name");
    let host = format!("{}-{}", name.text(), completions - 1);
    if !names::dns_1123_label(&host).is_empty() {
        errors.push(name.invalid(format!("will not able to create pod with invalid DNS label: {host}")));
    }
}

fn validate_change(job: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    let (spec, before) = (job.at("spec"), old.at("spec"));
    let completions = spec.at("completions");
    if completions.value() != before.at("completions").value() {
        if spec.at("completionMode").text() != "Indexed" {
            errors.push(completions.invalid("field is immutable"));
        } else if completions.is_set() && completions.int() != spec.at("parallelism").int() {
            errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
        }
    }
    let immutable = |name: &str, errors: &mut Errors| {
        let field = spec.at(name);
        if field.value() != before.at(name).value() {
            errors.push(field.invalid("field is immutable"));
        }
    };
    immutable("selector", errors);
    validate_template_change(&spec, old, errors);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        immutable(field, errors);
    }
}

/// Validates a change of the template. Before the job starts, scheduling and resources may change.
fn validate_template_change(spec: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    let (template, before) = (spec.at("template"), old.below("spec/template"));
    let suspended = old.below("spec/suspend").flag();
    let was_suspended = job_status::is_true(&old.at("status"), "Suspended");
    let is_mutable = suspended
        && (!old.below("status/startTime").is_set() || was_suspended)
        && old.below("status/active").int() == 0;
    if !is_mutable {
        if template.value() != before.value() {
            errors.push(template.invalid("field is immutable"));
        }
        return;
    }
    let pod = template.at("spec");
    if fixed(pod.value(), before.at("spec").value()) != fixed(before.at("spec").value(), pod.value()) {
        errors.push(pod.invalid("field is immutable"));
    }
}

/// Returns the part of a pod's spec that is fixed. The resources of containers with the same name in both are not.
fn fixed(spec: &Value, other: &Value) -> Value {
    let mut fixed = spec.clone();
    let Some(fields) = fixed.as_object_mut() else { return fixed };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    if let Some(affinity) = entry_mut(fields, "affinity") {
        affinity.remove("nodeAffinity");
        if affinity.is_empty() {
            fields.remove("affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        let others = other.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(containers) = fields.get_mut(list).and_then(Value::as_array_mut) else { continue };
        if containers.len() != others.len() {
            continue;
        }
        for (container, other) in containers.iter_mut().zip(others) {
            if text(container, "name") == text(other, "name")
                && let Some(container) = container.as_object_mut()
            {
                container.remove("resources");
            }
        }
    }
    fixed
}
