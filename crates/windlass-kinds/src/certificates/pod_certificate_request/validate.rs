//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::key::{PublicKey, StubRequest};
use super::{Requests, bytes_at, omitted, status};
use crate::certificates::signer;
use crate::checks::{immutable, invalid_names};
use crate::json::{int_at, map_at, text_at};
use crate::kind::{Validate, WriteContext};
use crate::signer_name;
use crate::subresource::Subresource;

/// The shortest time for which a certificate may be asked, in seconds: an hour.
const SHORTEST: i64 = 60 * 60;
/// The longest time for which a signer of Kubernetes may be asked, in seconds: a day.
const LONGEST_OF_KUBERNETES: i64 = 24 * 60 * 60;
/// The longest time for which another signer may be asked, in seconds: 91 days.
const LONGEST: i64 = 91 * 24 * 60 * 60;

/// The longest uid, in bytes.
const LONGEST_UID: usize = 128;
/// The largest key, proof or request, in bytes.
const LARGEST: usize = 10 * 1024;

impl Validate for Requests {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = signer_name::validate(signer::FIELD, text_at(object, "/spec/signerName"));
        if let Some(annotations) = map_at(object, "/spec/unverifiedUserAnnotations") {
            errors.extend(signer_name::validate_annotations("spec.unverifiedUserAnnotations", annotations));
        }
        errors
            .extend(["pod", "serviceAccount", "node"].iter().flat_map(|kind| reference_errors(object, kind)));
        match lifetime_error(object) {
            Err(missing) => errors.push(missing),
            Ok(wrong) => {
                errors.extend(wrong);
                errors.extend(key_errors(object));
            }
        }
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec")
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource != Subresource::Status {
            return self.validate_change(object, old);
        }
        let errors = status::validate(object, old, cx.env.now());
        let signer = text_at(old, "/spec/signerName");
        if !errors.is_empty()
            || object.get("status") == old.get("status")
            || signer::may_act_for(cx, "sign", signer)
        {
            return errors;
        }
        let [user, signer] = [cx.identity.name(), signer].map(windlass_schema::go_quote);
        let why = format!("User {user} is not permitted to \"sign\" for signer {signer}");
        vec![FieldError::forbidden(signer::FIELD, why)]
    }
}

/// Validates the name and the uid of the pod, the service account or the node.
fn reference_errors(object: &Value, kind: &str) -> Vec<FieldError> {
    let (name_field, uid_field) = (format!("{kind}Name"), format!("{kind}UID"));
    let name = text_at(object, &format!("/spec/{name_field}"));
    let uid = text_at(object, &format!("/spec/{uid_field}"));
    let problems = names::subdomain_name(name, false);
    let mut errors: Vec<_> = invalid_names(&format!("spec.{name_field}"), name, problems).collect();
    if uid.is_empty() {
        errors.push(FieldError::invalid(format!("spec.{uid_field}"), uid, "must not be empty"));
    }
    if uid.len() > LONGEST_UID {
        errors.push(FieldError::too_long(format!("spec.{uid_field}"), LONGEST_UID));
    }
    errors
}

/// Validates the wanted life of the certificate.
///
/// # Errors
/// There is no value. No further fields are validated.
fn lifetime_error(object: &Value) -> Result<Option<FieldError>, FieldError> {
    const FIELD: &str = "spec.maxExpirationSeconds";
    let Some(seconds) = int_at(object, "/spec/maxExpirationSeconds") else {
        return Err(FieldError::required(FIELD, "must be set"));
    };
    let of_kubernetes = signer_name::is_of_kubernetes(text_at(object, "/spec/signerName"));
    let longest = if of_kubernetes { LONGEST_OF_KUBERNETES } else { LONGEST };
    let why = || format!("must be in the range [{SHORTEST}, {longest}]");
    Ok((!(SHORTEST..=longest).contains(&seconds)).then(|| FieldError::invalid(FIELD, seconds, why())))
}

/// Validates the key: either a request for a certificate, or a key with a proof.
fn key_errors(object: &Value) -> Option<FieldError> {
    let [stub, key, proof] = ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"]
        .map(|field| bytes_at(object, &format!("/spec/{field}")));
    match [&stub, &key, &proof].map(|bytes| !bytes.is_empty()) {
        [true, false, false] => stub_error(&stub),
        [false, true, true] => key_error(text_at(object, "/spec/podUID"), &key, &proof),
        _ => {
            let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            Some(omitted("spec", why))
        }
    }
}

fn stub_error(bytes: &[u8]) -> Option<FieldError> {
    const FIELD: &str = "spec.stubPKCS10Request";
    if bytes.len() > LARGEST {
        return Some(FieldError::too_long(FIELD, LARGEST));
    }
    let Some(request) = StubRequest::parse(bytes) else {
        return Some(omitted(FIELD, "must be a valid PKCS#10 CSR"));
    };
    if let Some(problem) = request.key.problem("P256, P384, or P521") {
        return Some(refused(FIELD, problem));
    }
    (!request.is_signed()).then(|| omitted(FIELD, "invalid signature"))
}

fn key_error(pod_uid: &str, key: &[u8], proof: &[u8]) -> Option<FieldError> {
    const KEY: &str = "spec.pkixPublicKey";
    const PROOF: &str = "spec.proofOfPossession";
    for (field, bytes) in [(KEY, key), (PROOF, proof)] {
        if bytes.len() > LARGEST {
            return Some(FieldError::too_long(field, LARGEST));
        }
    }
    let Some(key) = PublicKey::parse(key) else {
        return Some(omitted(KEY, "must be a valid PKIX-serialized public key"));
    };
    if let Some(problem) = key.problem("P256 or P384") {
        return Some(refused(KEY, problem));
    }
    let why = "could not verify proof-of-possession signature";
    (!key.verifies(pod_uid.as_bytes(), proof)).then(|| omitted(PROOF, why))
}

fn refused(field: &str, (value, why): (Option<String>, String)) -> FieldError {
    match value {
        Some(value) => FieldError::invalid(field, value, why),
        None => omitted(field, &why),
    }
}
