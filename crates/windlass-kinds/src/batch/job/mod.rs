//! Jobs.

mod defaults;
mod indexes;
mod policies;
mod status;
mod table;
mod validate;

use serde_json::{Map, Value, json};
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use crate::checks::domain_path;
use crate::field::{Errors, Field};
use crate::json::{default, entry_mut, map_at, spec_mut};
use crate::kind::{IfEmpty, Kind, KindConfig, Prepare, WriteContext};
use crate::pod_template::validate::validate_template;

pub(crate) static KIND: Kind =
    Kind { defaults: &Jobs, prepare: &Jobs, validate: &Jobs, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    pod_spec: Some("/spec/template/spec"),
    orphans_by_default: true,
    orphaning_warning: Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
    ),
    selectable: &[("status.successful", "/status/succeeded")],
    selectable_if_empty: &[("status.successful", IfEmpty::Text("0"))],
    unsupported_field: Some(|field| {
        format!("field label {} not supported for Job", windlass_schema::go_quote(field))
    }),
    ..KindConfig::SPEC
};

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// The number of completions above which an indexed job has limits on failures.
const MANY_COMPLETIONS: i64 = 100_000;

pub(super) struct Jobs;

/// Sets the labels in a job's selector, unless the client set the labels.
fn label_with_owner(labels: &mut Map<String, Value>, name: &str, uid: &str) {
    for label in UID_LABELS {
        labels.entry(label).or_insert_with(|| uid.into());
    }
    for label in NAME_LABELS {
        labels.entry(label).or_insert_with(|| name.into());
    }
}

/// Validates the spec of a job or of the template of a job.
pub(super) fn validate_job_spec(spec: &Field<'_>, errors: &mut Errors) {
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
    let restart = spec.at_path("template/spec/restartPolicy");
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

fn validate_mode(spec: &Field<'_>, errors: &mut Errors) {
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

fn validate_indexed(spec: &Field<'_>, errors: &mut Errors) {
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

impl Prepare for Jobs {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
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
}
