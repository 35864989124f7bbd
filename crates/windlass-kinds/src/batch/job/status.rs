//! Validation of the status of a job. A field that a write does not change is not validated.

use std::collections::BTreeSet;

use super::indexes;
use crate::field::{Errors, Field};

/// Returns whether a status has a condition that is true.
pub(super) fn is_true(status: &Field<'_>, kind: &str) -> bool {
    status
        .at("conditions")
        .items()
        .any(|condition| condition.at("type").text() == kind && condition.at("status").text() == "True")
}

fn is_false(status: &Field<'_>, kind: &str) -> bool {
    status
        .at("conditions")
        .items()
        .any(|condition| condition.at("type").text() == kind && condition.at("status").text() == "False")
}

/// The conditions of a status that matter, and whether a write changes them.
struct Conditions {
    complete: [bool; 2],
    failed: [bool; 2],
    target: [bool; 2],
    met: [bool; 2],
}

impl Conditions {
    fn of(status: &Field<'_>, old: &Field<'_>) -> Self {
        let both = |kind| [is_true(status, kind), is_true(old, kind)];
        Self {
            complete: both("Complete"),
            failed: both("Failed"),
            target: both("FailureTarget"),
            met: both("SuccessCriteriaMet"),
        }
    }

    fn finished(&self) -> [bool; 2] {
        [self.complete[0] || self.failed[0], self.complete[1] || self.failed[1]]
    }
}

fn changes(pair: [bool; 2]) -> bool {
    pair[0] != pair[1]
}

/// Validates a write of the status.
pub(super) fn validate(job: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (status, before) = (job.at("status"), old.at("status"));
    let conditions = Conditions::of(&status, &before);
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.at(name).not_negative(errors);
    }
    validate_uncounted(&status.at("uncountedTerminatedPods"), errors);
    validate_conditions(job, &before, &conditions, errors);
    validate_times(job, old, &conditions, errors);
    validate_finished(job, &status, &before, &conditions, errors);
    validate_indexes(job, &status, &before, errors);
    validate_transitions(job, &status, &before, &conditions, errors);
}

fn validate_uncounted(pods: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for uid in ["succeeded", "failed"].into_iter().flat_map(|list| pods.at(list).items()) {
        if uid.text().is_empty() {
            errors.push(uid.invalid("must not be empty"));
        } else if !seen.insert(uid.text()) {
            errors.push(uid.duplicate());
        }
    }
}

fn validate_conditions(job: &Field<'_>, before: &Field<'_>, found: &Conditions, errors: &mut Errors) {
    let status = &job.at("status");
    let list = status.at("conditions");
    let [complete, failed, target, met] =
        [found.complete, found.failed, found.target, found.met].map(|pair| pair[0]);
    let mut refuse = |is_wrong: bool, detail: &str| {
        if is_wrong {
            errors.push(list.invalid_omitted(detail));
        }
    };
    let is_checked = changes(found.complete) || changes(found.failed);
    refuse(is_checked && complete && failed, "cannot set Complete=True and Failed=true conditions");
    let is_checked = changes(found.complete) || changes(found.target);
    refuse(is_checked && complete && target, "cannot set Complete=True and FailureTarget=true conditions");
    let is_failed_changed =
        changes(found.failed) || status.at("failedIndexes").value() != before.at("failedIndexes").value();
    refuse(
        is_failed_changed && failed && !target,
        "cannot set Failed=True condition without the FailureTarget=true condition",
    );
    let is_checked = changes(found.complete) || changes(found.met);
    refuse(
        is_checked && complete && !met,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    );
    refuse(met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    refuse(met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    refuse(
        job.at_path("spec/successPolicy").is_set() && complete && !met,
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
    );
}

fn validate_times(job: &Field<'_>, old: &Field<'_>, found: &Conditions, errors: &mut Errors) {
    let (status, before) = (job.at("status"), old.at("status"));
    let (start, end) = (status.at("startTime"), status.at("completionTime"));
    let is_end_changed = end.value() != before.at("completionTime").value();
    let is_start_changed = start.value() != before.at("startTime").value();
    if is_end_changed || changes(found.complete) {
        if end.is_set() && !found.complete[0] {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            errors.push(end.invalid(detail));
        }
        if !end.is_set() && found.complete[0] {
            errors.push(end.required("completionTime is required for Complete jobs"));
        }
    }
    // Times in this form are ordered like their texts.
    let is_before = start.is_set() && end.is_set() && end.text() < start.text();
    if (is_end_changed || is_start_changed) && is_before {
        errors.push(end.invalid("must be equal to or after `startTime`"));
    }
}

fn validate_finished(
    job: &Field<'_>,
    status: &Field<'_>,
    before: &Field<'_>,
    found: &Conditions,
    errors: &mut Errors,
) {
    let finished = found.finished();
    let is_changed = |name: &str| changes(finished) || status.at(name).value() != before.at(name).value();
    let (active, ready) = (status.at("active"), status.at("ready"));
    if finished[0] && is_changed("active") && active.int() > 0 {
        errors.push(active.invalid("active>0 is invalid for finished job"));
    }
    let start = status.at("startTime");
    let runs_nothing =
        job.at_path("spec/suspend").flag() && job.at_path("spec/completions").value().as_i64() == Some(0);
    if finished[0] && is_changed("startTime") && !runs_nothing && !start.is_set() {
        errors.push(start.required("startTime is required for finished job"));
    }
    let uncounted = status.at("uncountedTerminatedPods");
    let is_uncounted = ["failed", "succeeded"].iter().any(|list| !uncounted.at(list).is_empty());
    if finished[0] && is_changed("uncountedTerminatedPods") && is_uncounted {
        errors.push(uncounted.invalid("must be empty for finished job"));
    }
    let terminating = status.at("terminating");
    if finished[0] && is_changed("terminating") && terminating.int() > 0 {
        errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
    }
    let is_ready_changed =
        ["ready", "active"].iter().any(|name| status.at(name).value() != before.at(name).value());
    if is_ready_changed && ready.is_set() && ready.int() > active.int() {
        errors.push(ready.invalid("cannot set more ready pods than active"));
    }
}

fn validate_indexes(job: &Field<'_>, status: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    let (completed, failed) = (status.at("completedIndexes"), status.at("failedIndexes"));
    let completions = job.at_path("spec/completions");
    let is_completed_changed = completed.text() != before.at("completedIndexes").text();
    let is_failed_changed = failed.value() != before.at("failedIndexes").value();
    let per_index = job.at_path("spec/backoffLimitPerIndex").is_set();
    let parse = |place: &Field<'_>, name: &str, errors: &mut Errors| {
        if let Err(why) = indexes::count(place.text(), completions.int()) {
            errors.push(place.invalid_as(place.text(), format!("error parsing {name}: {why}")));
        }
    };
    if is_completed_changed && completions.is_set() {
        parse(&completed, "completedIndexes", errors);
    }
    if is_failed_changed && completions.is_set() && per_index && failed.is_set() {
        parse(&failed, "failedIndexes", errors);
    }
    let is_indexed = job.at_path("spec/completionMode").text() == "Indexed";
    if is_completed_changed && !completed.text().is_empty() && !is_indexed {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(completed.invalid(detail));
    }
    if is_failed_changed && !per_index && failed.is_set() {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(failed.invalid(detail));
    }
    if (is_completed_changed || is_failed_changed)
        && completions.is_set()
        && let Some(index) = indexes::overlap(completed.text(), failed.text(), completions.int())
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.push(failed.invalid(detail));
    }
}

fn validate_transitions(
    job: &Field<'_>,
    status: &Field<'_>,
    before: &Field<'_>,
    found: &Conditions,
    errors: &mut Errors,
) {
    let list = status.at("conditions");
    for (kind, pair) in
        [("Failed", found.failed), ("Complete", found.complete), ("FailureTarget", found.target)]
    {
        if pair == [false, true] {
            errors.push(list.invalid_omitted(format!("cannot disable the terminal {kind}=True condition")));
        }
    }
    let (failed, succeeded) = (status.at("failed"), status.at("succeeded"));
    if failed.int() < before.at("failed").int() {
        errors.push(failed.invalid_as(failed.int(), "cannot decrease the failed counter"));
    }
    let spec = job.at("spec");
    let is_elastic = spec.at("completionMode").text() == "Indexed"
        && spec.at("completions").value() == spec.at("parallelism").value();
    if !is_elastic && succeeded.int() < before.at("succeeded").int() {
        errors.push(succeeded.invalid_as(succeeded.int(), "cannot decrease the succeeded counter"));
    }
    let (end, old_end) = (status.at("completionTime"), before.at("completionTime"));
    if end.is_set() && old_end.is_set() && end.value() != old_end.value() {
        errors.push(end.invalid("field is immutable"));
    }
    let (start, old_start) = (status.at("startTime"), before.at("startTime"));
    let resumes = is_true(before, "Suspended") && is_false(status, "Suspended");
    if old_start.is_set() && start.value() != old_start.value() && !spec.at("suspend").flag() && !resumes {
        errors.push(start.invalid("field is immutable for unsuspended job once set"));
    }
    if found.met == [false, true] {
        errors.push(list.invalid_omitted("cannot disable the SuccessCriteriaMet=True condition"));
    }
    if found.complete[1] && found.met == [true, false] {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        errors.push(list.invalid_omitted(detail));
    }
}
