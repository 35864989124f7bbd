//! The options in the query of a request. Errors are in the words of kube-apiserver.

use std::num::{IntErrorKind, ParseIntError};

use windlass_schema::{FieldError, go_quote};

use super::selection::Selection;
use crate::managed_fields;
use crate::resource::Resource;
use crate::route::Query;
use crate::wire::selector::unknown_field;
use crate::wire::{ApiError, FieldSelector, LabelSelector};

/// The reaction to fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
    /// True if an apply takes fields from other managers.
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Reads the options. `kind`, such as `CreateOptions`, is for errors.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if kind == "PatchOptions" && query.get("force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::read(query, kind, errors)
    }

    /// Reads the options of an apply.
    pub(crate) fn parse_apply(query: &Query) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if query.text("fieldManager").is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        Self::read(query, "PatchOptions", errors)
    }

    fn read(query: &Query, kind: &str, mut errors: Vec<FieldError>) -> Result<Self, ApiError> {
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let manager = query.text("fieldManager");
        errors.extend(managed_fields::problems_of_name("fieldManager", manager));
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if errors.is_empty() {
            Ok(Self { dry_run, field_validation, force: query.flag("force").unwrap_or(false) })
        } else {
            Err(ApiError::invalid_options(kind, &errors))
        }
    }
}

/// Returns whether the values of `dryRun` ask for a dry run. Adds an error for any other value.
pub(crate) fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<String> = values.map(str::to_owned).collect();
    if values.iter().any(|value| value != "All") {
        errors.push(FieldError::not_supported("dryRun", values.clone(), &["All"]));
    }
    !values.is_empty()
}

const NO_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

/// The `resourceVersionMatch` of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Unset,
    Exact,
    NotOlderThan,
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub(crate) selection: Selection,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    /// The unchanged text of the query: empty, `0` and other values differ.
    pub(crate) resource_version: String,
    pub(crate) version_match: VersionMatch,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
}

impl ListOptions {
    /// Parses the options and checks the options for a resource.
    pub(crate) fn parse(query: &Query, resource: &Resource, watch: bool) -> Result<Self, ApiError> {
        let integer = |key: &str| query.get(key).map(parse_integer).transpose();
        let limit = integer("limit")?.unwrap_or(0);
        let timeout_seconds = integer("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let labels = LabelSelector::parse(query.text("labelSelector"))?;
        let fields = FieldSelector::parse(query.text("fieldSelector"))?;
        let sent = query.flag("sendInitialEvents");
        // As in kube-apiserver, such a watch asks for the present state, and gets the bookmark behind the state.
        let is_of_state = sent.is_none()
            && query.text("resourceVersionMatch").is_empty()
            && matches!(query.text("resourceVersion"), "" | "0")
            && watch
            && query.flag("watch") == Some(true);
        let given_match = if is_of_state { "NotOlderThan" } else { query.text("resourceVersionMatch") };
        let version_match = match given_match {
            "Exact" => VersionMatch::Exact,
            "NotOlderThan" => VersionMatch::NotOlderThan,
            _ => VersionMatch::Unset,
        };
        let options = Self {
            selection: Selection::new(resource, labels, &fields),
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.text("continue").to_owned(),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match,
            send_initial_events: if is_of_state { Some(true) } else { sent },
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            timeout_seconds: timeout_seconds.filter(|seconds| *seconds > 0),
        };
        let errors = options.check(given_match, watch);
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("ListOptions", &errors));
        }
        check_fields(&fields, resource)?;
        Ok(options)
    }

    fn check(&self, given_match: &str, watch: bool) -> Vec<FieldError> {
        let forbidden = |field: &str, why: &str| vec![FieldError::forbidden(field, why)];
        let mut errors = Vec::new();
        if watch {
            let is_fresh = self.version_match == VersionMatch::NotOlderThan;
            if self.send_initial_events.is_some() && !is_fresh {
                errors.extend(forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            } else if self.send_initial_events.is_none() && !given_match.is_empty() {
                errors.extend(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if !given_match.is_empty() && !is_fresh {
                let known = ["NotOlderThan"];
                errors.push(
                    FieldError::not_supported("resourceVersionMatch", given_match, &known).of_named_type(),
                );
            }
            if !given_match.is_empty() && !self.continue_token.is_empty() {
                errors.extend(forbidden("resourceVersionMatch", NO_CONTINUE));
            }
            return errors;
        }
        if !given_match.is_empty() {
            if self.resource_version.is_empty() {
                errors.extend(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                errors.extend(forbidden("resourceVersionMatch", NO_CONTINUE));
            }
            if !matches!(given_match, "Exact" | "NotOlderThan") {
                let known = ["Exact", "NotOlderThan", ""];
                errors.push(
                    FieldError::not_supported("resourceVersionMatch", given_match, &known).of_named_type(),
                );
            }
            if self.version_match == VersionMatch::Exact && self.resource_version == "0" {
                errors.extend(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.extend(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        errors
    }
}

/// Checks that the resource can be selected by the fields.
fn check_fields(fields: &FieldSelector, resource: &Resource) -> Result<(), ApiError> {
    let (supported, config) = (resource.selectable_fields(), &resource.strategy.config);
    let refusal = |field: &str| match config.unsupported_field.map(|message| message(field)) {
        _ if resource.is_custom() => format!("field label not supported: {field}"),
        None if supported.is_empty() => unknown_field(field, &supported),
        None => format!("field label not supported: {field}"),
        Some(text) => text,
    };
    // Cluster-scoped kinds that are custom, or have other selectable fields, have no namespace to select by.
    let is_without = !resource.namespaced && (resource.is_custom() || !supported.is_empty());
    let has_no_namespace = is_without || !config.selects_by_namespace;
    let is_namespace =
        |requirement: &crate::wire::FieldRequirement| requirement.field == "metadata.namespace";
    if has_no_namespace && fields.requirements().iter().any(is_namespace) {
        return Err(ApiError::bad_request(refusal("metadata.namespace")));
    }
    fields.check(&supported, refusal)
}

/// Parses a resource version; `None` for an empty text.
pub(crate) fn revision(text: &str) -> Result<Option<u64>, String> {
    match text {
        "" => Ok(None),
        text => parse_unsigned(text)
            .map(Some)
            .map_err(|why| format!("resourceVersion: Invalid value: {}: {why}", go_quote(text))),
    }
}

/// Reads a number without a sign. The error is that of Go.
pub(super) fn parse_unsigned(text: &str) -> Result<u64, String> {
    let why = match text.parse() {
        Ok(_) if text.starts_with('+') => "invalid syntax",
        Ok(number) => return Ok(number),
        Err(error) => go_number_error(&error),
    };
    Err(format!("strconv.ParseUint: parsing {}: {why}", go_quote(text)))
}

/// Reads an integer of a query. The error is that of Go.
pub(super) fn parse_integer(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|error| {
        let why = go_number_error(&error);
        ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", go_quote(text)))
    })
}

/// Returns Go's words for a text that is not a number.
fn go_number_error(error: &ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    }
}
