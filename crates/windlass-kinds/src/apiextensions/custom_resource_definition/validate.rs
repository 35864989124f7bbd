//! Validation of definitions.
//!
//! If all versions agree on schema, columns, subresources or selectable fields, kube-apiserver names these
//! fields as if they were at the top of `spec`, where the internal type has these fields. The errors here do
//! the same.

mod columns;
mod versions;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names::{dns_1035_label, dns_1123_subdomain};
use windlass_wire::validate_client_config;

use super::warnings::warnings;
use super::{Definitions, approval, ca_bundle, list, text, texts};
use crate::kind::{Validate, WriteContext};

impl Validate for Definitions {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        validate_new(object)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource.is_empty() { validate_updated(object, old) } else { Vec::new() }
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let known = old.map(warnings).unwrap_or_default();
        warnings(object).into_iter().filter(|warning| !known.contains(warning)).collect()
    }
}

/// The client of a conversion webhook, in the words of Go's internal type.
const CLIENT: &str = "spec.conversion.webhookClientConfig";
/// The versions of conversion reviews, in the words of Go's internal type.
const REVIEWS: &str = "spec.conversion.conversionReviewVersions";

/// Validates a new definition after `prepare_create`.
pub(crate) fn validate_new(definition: &Value) -> Vec<FieldError> {
    // A definition with invalid certificates is stored, and not established.
    bounded(validate(definition, None, Tolerated { unknown_reviews: false, invalid_certificates: true }))
}

/// The mistakes in the conversion that validation accepts.
#[derive(Clone, Copy)]
struct Tolerated {
    /// The webhook may know no review version of this server.
    unknown_reviews: bool,
    /// The certificates of the webhook may be invalid.
    invalid_certificates: bool,
}

impl Tolerated {
    /// Returns the mistakes that an update need not mend.
    fn by_update_of(old: &Value) -> Self {
        let reviews = list(&old["spec"]["conversion"]["webhook"], "conversionReviewVersions");
        Self {
            unknown_reviews: !reviews.is_empty() && !reviews.iter().any(is_known_review),
            invalid_certificates: !super::is_established(old) || ca_bundle::problem(old).is_some(),
        }
    }
}

fn validate(definition: &Value, old: Option<&Value>, tolerated: Tolerated) -> Vec<FieldError> {
    let mut errors = metadata(definition);
    errors.extend(spec(definition, old, tolerated));
    errors.extend(stored_versions(definition));
    errors.extend(approval::validate(definition));
    errors
}

/// Validates an updated definition.
pub(crate) fn validate_updated(definition: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = immutable(definition, old);
    errors.extend(validate(definition, Some(old), Tolerated::by_update_of(old)));
    // The object's name cannot follow a changed group or plural: the change is the error.
    let renamed =
        errors.iter().any(|error| matches!(error.field.as_str(), "spec.group" | "spec.names.plural"));
    if renamed {
        errors.retain(|error| error.field != "metadata.name");
    }
    bounded(errors)
}

/// The length that the texts of the errors of a definition may have together, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// Leaves out the errors after those whose texts are as long as a reply may be.
fn bounded(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut length = 0_usize;
    let fitting = errors.iter().take_while(|error| {
        length = length.saturating_add(error.to_string().len());
        length <= MAX_TEXT
    });
    let fitting = fitting.count();
    if fitting < errors.len() {
        errors.truncate(fitting);
        errors.push(FieldError::forbidden("spec", "further errors are left out"));
    }
    errors
}

fn metadata(definition: &Value) -> Vec<FieldError> {
    let (plural, group) =
        (text(definition, &["spec", "names", "plural"]), text(definition, &["spec", "group"]));
    let error = |field: &str| {
        let name = text(definition, &["metadata", field]);
        let is_other = !name.is_empty() && name != format!("{plural}.{group}");
        let path = format!("metadata.{field}");
        is_other.then(|| FieldError::invalid(path, name, r#"must be spec.names.plural+"."+spec.group"#))
    };
    ["generateName", "name"].into_iter().filter_map(error).collect()
}

fn spec(definition: &Value, old: Option<&Value>, tolerated: Tolerated) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors = group(text(spec, &["group"]));
    errors.extend(scope(text(spec, &["scope"])));
    if spec["preserveUnknownFields"] == true {
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    errors.extend(versions::names(spec));
    errors.extend(names(&spec["names"]));
    errors.extend(versions::contents(spec, old.map(|old| &old["spec"])));
    errors.extend(conversion(definition, tolerated));
    errors
}

fn group(group: &str) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required("spec.group", "")];
    }
    let mut errors = because("spec.group", group, dns_1123_subdomain(group));
    if errors.is_empty() && !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    errors
}

fn scope(scope: &str) -> Vec<FieldError> {
    match scope {
        "Cluster" | "Namespaced" => Vec::new(),
        "" => vec![FieldError::required("spec.scope", "")],
        other => {
            vec![FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"]).of_named_type()]
        }
    }
}

fn names(names: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["plural", "singular"] {
        let (path, name) = (format!("spec.names.{field}"), text(names, &[field]));
        errors.extend(required_name(&path, name, dns_1035_label(name)));
    }
    for field in ["kind", "listKind"] {
        let (path, name) = (format!("spec.names.{field}"), text(names, &[field]));
        let reasons = dns_1035_label(&name.to_lowercase());
        let mixed =
            reasons.into_iter().map(|why| format!("may have mixed case, but should otherwise match: {why}"));
        errors.extend(required_name(&path, name, mixed.collect()));
    }
    let (kind, list_kind) = (text(names, &["kind"]), text(names, &["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", list_kind, detail));
    }
    for field in ["shortNames", "categories"] {
        for (index, name) in texts(names, field).into_iter().enumerate() {
            errors.extend(because(&format!("spec.names.{field}[{index}]"), name, dns_1035_label(name)));
        }
    }
    errors
}

fn required_name(path: &str, name: &str, reasons: Vec<String>) -> Vec<FieldError> {
    if name.is_empty() { vec![FieldError::required(path, "")] } else { because(path, name, reasons) }
}

fn because(path: &str, value: &str, reasons: Vec<String>) -> Vec<FieldError> {
    reasons.into_iter().map(|reason| FieldError::invalid(path, value, reason)).collect()
}

/// Returns whether the server can send this version of conversion reviews.
fn is_known_review(version: &Value) -> bool {
    version == "v1" || version == "v1beta1"
}

/// Validates the versions of conversion reviews that a webhook takes.
fn review_versions(versions: &[Value], knows_none: bool) -> Vec<FieldError> {
    let path = REVIEWS;
    if versions.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let (path, version) = (format!("{path}[{index}]"), version.as_str().unwrap_or_default());
        if versions[..index].iter().any(|earlier| earlier == version) {
            errors.push(FieldError::invalid(path, version, "duplicate version"));
        } else {
            errors.extend(because(&path, version, dns_1035_label(version)));
        }
    }
    if !knows_none && !versions.iter().any(is_known_review) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions.to_vec(), detail));
    }
    errors
}

/// Returns the errors about a webhook that is not used.
fn unused_webhook(webhook: &Value) -> Vec<FieldError> {
    let detail = "should not be set when strategy is not set to Webhook";
    let versions = list(webhook, "conversionReviewVersions");
    let set = [(CLIENT, webhook["clientConfig"].is_object()), (REVIEWS, !versions.is_empty())];
    set.into_iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(path, _)| FieldError::forbidden(path, detail))
        .collect()
}

fn conversion(definition: &Value, tolerated: Tolerated) -> Vec<FieldError> {
    let conversion = &definition["spec"]["conversion"];
    let webhook = &conversion["webhook"];
    match text(conversion, &["strategy"]) {
        "None" => unused_webhook(webhook),
        "Webhook" => {
            let mut errors = Vec::new();
            if webhook["clientConfig"].is_object() {
                errors.extend(validate_client_config(&webhook["clientConfig"], CLIENT));
                if !tolerated.invalid_certificates
                    && let Some(why) = ca_bundle::problem(definition)
                {
                    let bundle = webhook["clientConfig"]["caBundle"].clone();
                    errors.push(FieldError::invalid(format!("{CLIENT}.caBundle"), bundle, why));
                }
            } else {
                let detail = "required when strategy is set to Webhook";
                errors.push(FieldError::required(CLIENT, detail));
            }
            let versions = list(webhook, "conversionReviewVersions");
            errors.extend(review_versions(versions, tolerated.unknown_reviews));
            errors
        }
        "" => {
            let mut errors = unused_webhook(webhook);
            errors.push(FieldError::required("spec.conversion.strategy", ""));
            errors
        }
        other => {
            let mut errors = unused_webhook(webhook);
            errors.push(
                FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"])
                    .of_named_type(),
            );
            errors
        }
    }
}

/// Checks that stored objects stay readable: each stored version is in the versions, and the storage version
/// is in the stored versions.
fn stored_versions(definition: &Value) -> Vec<FieldError> {
    let versions = list(&definition["spec"], "versions");
    let stored = texts(&definition["status"], "storedVersions");
    let mut errors = Vec::new();
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| text(version, &["name"]) == *name) {
            errors.push(FieldError::invalid(
                format!("status.storedVersions[{index}]"),
                *name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {name} and \
                     removes {name} from status.storedVersions"
                ),
            ));
        }
    }
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid("status.storedVersions", Value::Null, detail));
        return errors;
    }
    // With several storage versions, which is a separate error, the last version counts.
    let storage = versions.iter().rev().find(|version| version["storage"] == true);
    if let Some(storage) = storage.map(|version| text(version, &["name"]))
        && !stored.contains(&storage)
    {
        errors.push(FieldError::invalid(
            "status.storedVersions",
            definition["status"]["storedVersions"].clone(),
            format!("must have the storage version {storage}"),
        ));
    }
    errors
}

/// Checks the fields that may not change once names are accepted: group, scope, plural and kind.
fn immutable(definition: &Value, old: &Value) -> Vec<FieldError> {
    let established = super::is_established(old);
    let fields: &[&[&str]] = if established {
        &[&["group"], &["scope"], &["names", "kind"], &["names", "plural"]]
    } else {
        &[&["group"], &["names", "plural"]]
    };
    fields
        .iter()
        .filter_map(|path| {
            let (new, old) = (text(&definition["spec"], path), text(&old["spec"], path));
            let field = format!("spec.{}", path.join("."));
            (new != old).then(|| FieldError::invalid(field, new, "field is immutable"))
        })
        .collect()
}
