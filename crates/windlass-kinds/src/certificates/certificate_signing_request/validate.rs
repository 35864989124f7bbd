//! Validation and warnings.

use std::collections::BTreeSet;

use super::{conditions, pem};
use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};

use super::pem::Request;
use super::{CERTIFICATE, SIGNER, SigningRequests, bytes_at};
use crate::certificates::signer::FIELD;
use crate::json::{list_at, text_at};
use crate::kind::{Validate, WriteContext};
use crate::signer_name;
use crate::subresource::Subresource;

impl Validate for SigningRequests {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        problems(object, None)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = problems(object, Some(old));
        errors.extend(conditions::validate_change(object, old, *cx.subresource == Subresource::Approval));
        let (certificate, known) = (text_at(object, CERTIFICATE), text_at(old, CERTIFICATE));
        if *cx.subresource == Subresource::Status && certificate != known && !known.is_empty() {
            let why = "updates may not modify existing certificate content";
            errors.push(FieldError::forbidden("status.certificate", why));
        }
        errors
    }
}

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// The shortest life of a certificate, in seconds.
const SHORTEST: i64 = 600;

/// The usages of keys, in the order of errors.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Validates a request. Errors that `old` already has are ignored.
fn problems(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let request = Request::parse(&bytes_at(object, "/spec/request"));
    if let Err(why) = request.and_then(|request| request.check_signature()) {
        errors.push(FieldError::invalid("spec.request", text_at(object, "/spec/request"), why));
    }
    if old.is_none() {
        errors.extend(problems_of_usages(object));
    }
    let signer = text_at(object, SIGNER);
    if signer == LEGACY_SIGNER && old.is_none() {
        let why = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid("spec.signerName", signer, why));
    } else {
        errors.extend(signer_name::validate(FIELD, signer));
    }
    let seconds = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds < SHORTEST) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid("spec.expirationSeconds", seconds, why));
    }
    errors.extend(conditions::validate(object, old));
    if old.is_none_or(|old| text_at(old, CERTIFICATE) != text_at(object, CERTIFICATE))
        && let Err(why) = pem::check_certificates(&bytes_at(object, CERTIFICATE))
    {
        errors.push(FieldError::invalid("status.certificate", "<certificate data>", why));
    }
    errors
}

fn problems_of_usages(object: &Value) -> Vec<FieldError> {
    let usages: Vec<&str> = list_at(object, "/spec/usages").iter().filter_map(Value::as_str).collect();
    let mut errors = ErrorList::new();
    if usages.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let path = |index: usize| format!("spec.usages[{index}]");
    for (index, usage) in usages.iter().enumerate().filter(|(_, usage)| !USAGES.contains(usage)) {
        errors.push(FieldError::not_supported(path(index), *usage, &USAGES));
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in usages.iter().enumerate().filter(|(_, usage)| !seen.insert(**usage)) {
        errors.push(FieldError::duplicate(path(index), *usage));
    }
    errors.into_vec()
}
