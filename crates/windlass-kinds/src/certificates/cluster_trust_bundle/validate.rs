//! Validation.

use std::collections::BTreeMap;

use der::Decode;
use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use x509_cert::Certificate;
use x509_cert::ext::pkix::BasicConstraints;

use super::{Bundles, SIGNER_POINTER};
use crate::certificates::signer::FIELD as SIGNER_FIELD;
use crate::checks::{immutable, invalid_names};
use crate::json::text_at;
use crate::kind::{Validate, WriteContext};
use crate::signer_name;

/// The largest bundle, in bytes.
const LARGEST: usize = 1 << 20;

const BUNDLE: &str = "/spec/trustBundle";
const FIELD: &str = "spec.trustBundle";

impl Validate for Bundles {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        errors.extend(bundle_errors(text_at(object, BUNDLE)));
        errors
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let (name, signer) = (meta::name(object), text_at(object, SIGNER_POINTER));
        let mut errors = Vec::new();
        if !name.is_empty() {
            let problems = signer_name::bundle_name_problems(name, signer);
            errors.extend(invalid_names("metadata.name", name, problems));
        }
        if !signer.is_empty() {
            errors.extend(signer_name::validate(SIGNER_FIELD, signer));
        }
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let (mut errors, signer) = (Vec::new(), text_at(object, SIGNER_POINTER));
        // A stored bundle stays valid even if the parser becomes stricter.
        if text_at(object, BUNDLE) != text_at(old, BUNDLE) {
            errors.extend(bundle_errors(text_at(object, BUNDLE)));
        }
        let changed = immutable(object, old, SIGNER_POINTER).into_iter();
        errors.extend(changed.map(|error| FieldError { bad_value: Some(signer.into()), ..error }));
        errors
    }
}

/// Validates that a text is a list of different certificates of authorities, in PEM.
fn bundle_errors(text: &str) -> Vec<FieldError> {
    if text.len() > LARGEST {
        return vec![FieldError::too_long(FIELD, LARGEST)];
    }
    let mut errors = Vec::new();
    let mut entries: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (index, block) in pem::parse_many(text).unwrap_or_default().into_iter().enumerate() {
        match entry_problem(&block) {
            Some(problem) => errors.push(invalid(format!("entry {index} {problem}"))),
            None => entries.entry(block.into_contents()).or_default().push(index),
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    if entries.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".to_owned()));
    }
    for indexes in entries.values().filter(|indexes| indexes.len() > 1) {
        let indexes: Vec<String> = indexes.iter().map(ToString::to_string).collect();
        errors.push(invalid(format!("duplicate trust anchor (indices [{}])", indexes.join(" "))));
    }
    errors
}

fn invalid(why: String) -> FieldError {
    FieldError::invalid(FIELD, "<value omitted>", why)
}

/// Returns the problem of an entry of a bundle.
fn entry_problem(block: &pem::Pem) -> Option<String> {
    if block.tag() != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.tag()));
    }
    if block.headers().iter().next().is_some() {
        return Some("has PEM block headers".to_owned());
    }
    let Ok(certificate) = Certificate::from_der(block.contents()) else {
        return Some("does not parse as X.509".to_owned());
    };
    let is_authority = match certificate.tbs_certificate.get::<BasicConstraints>() {
        Ok(found) => found.is_some_and(|(_, constraints)| constraints.ca),
        Err(_) => return Some("does not parse as X.509".to_owned()),
    };
    (!is_authority).then(|| "does not have the CA bit set".to_owned())
}
