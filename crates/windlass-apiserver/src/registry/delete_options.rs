//! `DeleteOptions`: preconditions, grace period and propagation of a deletion.

use std::collections::HashSet;

use http::header;
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::Call;
use super::decode::{wrong_group_version, wrong_type_meta};
use super::options;
use crate::meta;
use crate::route::Query;
use crate::wire::{self, ApiError};

const DELETE_OPTIONS: &str = "DeleteOptions";
const IGNORE_READ_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The propagation policy: the effect of a deletion on dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// The `DeleteOptions` of the body and the query.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    pub(super) grace_period_seconds: Option<i64>,
    propagation: Option<Propagation>,
    pub(super) orphan_dependents: Option<bool>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) dry_run: bool,
    /// True if an object is to be removed that cannot be read.
    pub(super) ignores_read_errors: bool,
}

impl DeleteOptions {
    /// Returns the client's grace period. A negative grace period counts as a second.
    pub(super) fn grace(&self) -> Option<i64> {
        self.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds })
    }

    pub(super) fn parse(call: &Call<'_>) -> Result<Self, ApiError> {
        // The query counts only where there is no body.
        if call.body.is_empty() {
            Self::of(&Value::Null, &call.query)
        } else {
            Self::of(&read_body(call)?, &Query::default())
        }
    }

    /// Reads the options from `body`, a `DeleteOptions` with fields of the right types, and from a query.
    pub(super) fn of(body: &Value, query: &Query) -> Result<Self, ApiError> {
        let field = |name: &str| body.get(name).filter(|value| !value.is_null());
        let grace_period_seconds = match (field("gracePeriodSeconds"), query.get("gracePeriodSeconds")) {
            (Some(value), _) => value.as_i64(),
            (None, Some(text)) => Some(options::parse_integer(text)?),
            (None, None) => None,
        };
        let mut errors = Vec::new();
        let policy =
            field("propagationPolicy").and_then(Value::as_str).or_else(|| query.get("propagationPolicy"));
        let orphan_dependents =
            field("orphanDependents").and_then(Value::as_bool).or_else(|| query.flag("orphanDependents"));
        let propagation = match policy {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", other, &known).of_named_type());
                None
            }
        };
        if propagation.is_some() && orphan_dependents.is_some() {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                policy.unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        let in_body = field("dryRun").and_then(Value::as_array).into_iter().flatten();
        // Go decodes null in a list of texts as an empty text.
        let in_body = in_body.map(|value| value.as_str().unwrap_or_default());
        let dry_run = options::dry_run(in_body.chain(query.all("dryRun")), &mut errors);
        let ignores_read_errors = field(IGNORE_READ_ERRORS)
            .and_then(Value::as_bool)
            .or_else(|| query.flag(IGNORE_READ_ERRORS))
            .unwrap_or_default();
        if ignores_read_errors {
            let others = [
                ("propagationPolicy", policy.is_some()),
                ("orphanDependents", orphan_dependents.is_some()),
                ("gracePeriodSeconds", grace_period_seconds.is_some()),
                ("preconditions", field("preconditions").is_some() || has_preconditions(query)),
            ];
            errors.extend(others.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| {
                FieldError::invalid(IGNORE_READ_ERRORS, true, format!("cannot be set together with .{name}"))
            }));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid_options(DELETE_OPTIONS, &errors));
        }
        let precondition = |name: &str| {
            body.get("preconditions")
                .and_then(|found| found.get(name))
                .and_then(Value::as_str)
                .or_else(|| query.get(name).filter(|wanted| !wanted.is_empty()))
                .map(str::to_owned)
        };
        Ok(Self {
            grace_period_seconds,
            propagation,
            orphan_dependents,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run,
            ignores_read_errors,
        })
    }

    /// Refuses the option that only the deletion of a single object may have.
    pub(super) fn expect_read_errors(&self) -> Result<(), ApiError> {
        if !self.ignores_read_errors {
            return Ok(());
        }
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let error = FieldError::invalid(IGNORE_READ_ERRORS, true, why);
        Err(ApiError::invalid_options(DELETE_OPTIONS, &[error]))
    }

    /// Returns the options for webhooks. A grace period of the kind replaces the client's grace period.
    pub(super) fn to_json(&self, grace_period_seconds: Option<i64>) -> Value {
        let mut options = json!({"kind": DELETE_OPTIONS, "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = grace_period_seconds.or(self.grace_period_seconds) {
            options["gracePeriodSeconds"] = seconds.into();
        }
        for (field, precondition) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(precondition) = precondition {
                options["preconditions"][field] = precondition.clone().into();
            }
        }
        if let Some(orphan) = self.orphan_dependents {
            options["orphanDependents"] = orphan.into();
        }
        if let Some(policy) = self.propagation {
            options["propagationPolicy"] = format!("{policy:?}").into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Returns whether the client left the choice of a propagation policy to the kind.
    pub(super) fn has_no_propagation(&self) -> bool {
        self.propagation.is_none() && self.orphan_dependents.is_none()
    }

    /// Returns whether owned objects are orphaned.
    fn orphans(&self, object: &Value, by_default: bool) -> bool {
        match (self.orphan_dependents, self.propagation) {
            (Some(orphan), _) => orphan,
            (None, Some(policy)) => policy == Propagation::Orphan,
            (None, None) => meta::finalizers(object)
                .find(|finalizer| [ORPHAN, FOREGROUND].contains(finalizer))
                .map_or(by_default, |finalizer| finalizer == ORPHAN),
        }
    }

    /// Returns whether dependents are deleted before the owner.
    fn foreground(&self, object: &Value) -> bool {
        match (self.orphan_dependents, self.propagation) {
            (Some(_), _) => false,
            (None, Some(policy)) => policy == Propagation::Foreground,
            (None, None) => meta::finalizers(object).any(|finalizer| finalizer == FOREGROUND),
        }
    }

    /// Sets the finalizers that tell the garbage collector the propagation policy. `orphans_by_default` is
    /// the default of the kind; `None` for a kind without dependents.
    pub(super) fn mark(&self, object: &mut Value, orphans_by_default: Option<bool>) {
        let (orphan, foreground) = match orphans_by_default {
            Some(by_default) => (self.orphans(object, by_default), self.foreground(object)),
            None => (false, false),
        };
        let present: Vec<String> = meta::finalizers(object).map(str::to_owned).collect();
        let mut wanted: Vec<String> =
            present.iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).cloned().collect();
        if orphan {
            wanted.push(ORPHAN.to_owned());
        }
        if foreground {
            wanted.push(FOREGROUND.to_owned());
        }
        let had: HashSet<&str> = present.iter().map(String::as_str).collect();
        let same = wanted.len() == present.len() && wanted.iter().all(|name| had.contains(name.as_str()));
        if !same {
            meta::set_finalizers(object, &wanted);
        }
    }
}

/// Returns whether a query has preconditions of a deletion.
fn has_preconditions(query: &Query) -> bool {
    ["uid", "resourceVersion"].into_iter().any(|name| !query.text(name).is_empty())
}

fn read_body(call: &Call<'_>) -> Result<Value, ApiError> {
    let content_type = call.header(header::CONTENT_TYPE);
    let decoded = wire::decode_options(content_type, call.body, |bytes| call.state.decode_protobuf(bytes))?;
    let text = |field: &str| decoded.value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let version = text("apiVersion").unwrap_or("meta.k8s.io/v1");
    if let Some(why) = wrong_type_meta(&decoded.value).or_else(|| wrong_group_version(version)) {
        return Err(ApiError::bad_request(why));
    }
    let kind = text("kind").unwrap_or(DELETE_OPTIONS);
    if kind != DELETE_OPTIONS {
        return Err(ApiError::bad_request(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            windlass_schema::go_quote(kind),
            windlass_schema::go_quote(version)
        )));
    }
    let schema = call.state.catalog.schema("", "v1", DELETE_OPTIONS);
    match schema.and_then(|schema| windlass_schema::decode_error(&schema, DELETE_OPTIONS, &decoded.value)) {
        Some(why) => Err(ApiError::bad_request(why)),
        None => Ok(decoded.value),
    }
}
