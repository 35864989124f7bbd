//! The answer of a signer: a certificate chain, a denial or a failure.

use der::Decode;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_schema::FieldError;
use x509_cert::Certificate;
use x509_cert::time::Time;

use super::key::{PublicKey, StubRequest};
use super::{bytes_at, omitted};
use crate::checks::conditions;
use crate::field;
use crate::json::{int_at, list_at, text, text_at};

/// The conditions that end a request.
const FINAL: [&str; 3] = ["Issued", "Denied", "Failed"];

/// The largest chain, in bytes.
const LARGEST: usize = 100 * 1024;
/// The shortest life of a certificate.
const SHORTEST: SignedDuration = SignedDuration::from_hours(1);
/// The clock of a signer may differ by less than this duration.
const SKEW: SignedDuration = SignedDuration::from_mins(5);
/// A certificate is renewed at least this duration after its begin, and before its end.
const MARGIN: SignedDuration = SignedDuration::from_mins(10);

const CHAIN: &str = "status.certificateChain";

/// Validates a new status. A request ends once.
pub(super) fn validate(object: &Value, old: &Value, now: Timestamp) -> Vec<FieldError> {
    let errors = condition_errors(object);
    if !errors.is_empty() {
        return errors;
    }
    let (status, before) = (&object["status"], &old["status"]);
    let unchanged = |why: &str| (status != before).then(|| omitted("status", why)).into_iter().collect();
    let ended = |object: &Value| FINAL.into_iter().find(|kind| is_true(object, kind));
    if ended(old).is_some() {
        return unchanged("immutable after PodCertificateRequest is issued, denied, or failed");
    }
    match ended(object) {
        None => {
            unchanged("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"")
        }
        Some("Issued") => issued_errors(object, now),
        Some(_) => {
            let fields = status.as_object().into_iter().flatten();
            let others = fields.filter(|(name, value)| *name != "conditions" && !value.is_null()).count();
            let why =
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
            (others > 0).then(|| omitted("status", why)).into_iter().collect()
        }
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let mut conditions = list_at(object, "/status/conditions").iter();
    conditions.any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
}

fn condition_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = 0;
    for (index, condition) in list_at(object, "/status/conditions").iter().enumerate() {
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        let path = format!("status.conditions.[{index}]");
        if !FINAL.contains(&kind) {
            errors.push(FieldError::not_supported(format!("{path}.type"), kind, &FINAL));
            continue;
        }
        known += 1;
        if known > 1 {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(FieldError::invalid(format!("{path}.type"), kind, why));
        }
        if status != "True" {
            errors.push(FieldError::not_supported(format!("{path}.status"), status, &["True"]));
        }
    }
    errors.extend(field::validate("status", &object["status"], |status, errors| {
        conditions(&status.at("conditions"), errors);
    }));
    errors
}

/// Validates the chain of an issued certificate, and the times in the status.
fn issued_errors(object: &Value, now: Timestamp) -> Vec<FieldError> {
    let chain = text_at(object, "/status/certificateChain");
    if chain.len() > LARGEST {
        return vec![FieldError::too_long(CHAIN, LARGEST)];
    }
    let wrong = |why: &str| vec![FieldError::invalid(CHAIN, chain, why)];
    let blocks = pem::parse_many(chain).unwrap_or_default();
    let Some((leaf, intermediates)) = blocks.split_first() else {
        return wrong("issued certificate chain must contain at least one certificate");
    };
    if leaf.tag() != "CERTIFICATE" {
        return wrong("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
    }
    let Ok(leaf) = Certificate::from_der(leaf.contents()) else {
        return wrong("leaf certificate does not parse as valid X.509");
    };
    let issued = PublicKey::new(leaf.tbs_certificate.subject_public_key_info.clone());
    match requested_key(object) {
        Err(error) => return vec![error],
        Ok(wanted) if issued.as_ref() != Some(&wanted) => {
            return wrong("leaf certificate was not issued to the requested public key");
        }
        Ok(_) => {}
    }
    let errors = time_errors(object, &leaf, now);
    if !errors.is_empty() {
        return errors;
    }
    for block in intermediates {
        if block.tag() != "CERTIFICATE" {
            return wrong("issued certificate chain must consist entirely of CERTFICATE PEM blocks");
        }
        if Certificate::from_der(block.contents()).is_err() {
            return wrong("intermediate certificate does not parse as valid X.509");
        }
    }
    Vec::new()
}

/// Returns the key of the request.
fn requested_key(object: &Value) -> Result<PublicKey, FieldError> {
    let stub = bytes_at(object, "/spec/stubPKCS10Request");
    if stub.is_empty() {
        let key = PublicKey::parse(&bytes_at(object, "/spec/pkixPublicKey"));
        return key
            .ok_or_else(|| omitted("spec.pkixPublicKey", "must be a valid PKIX-serialized public key"));
    }
    let request = StubRequest::parse(&stub);
    let key = request.map(|request| request.key);
    key.ok_or_else(|| omitted("spec.stubPKCS10Request", "must be a valid PKCS#10 CSR"))
}

/// Validates the times in the status, which repeat the times in the certificate.
fn time_errors(object: &Value, leaf: &Certificate, now: Timestamp) -> Vec<FieldError> {
    let time = |field: &str| text_at(object, &format!("/status/{field}")).parse::<Timestamp>().ok();
    let (Some(begin), Some(end), Some(refresh)) =
        (time("notBefore"), time("notAfter"), time("beginRefreshAt"))
    else {
        let consistent = "must be present and consistent with the issued certificate";
        let within = "must be present and in the range [notbefore+10min, notafter-10min]";
        return [("notBefore", consistent), ("notAfter", consistent), ("beginRefreshAt", within)]
            .into_iter()
            .filter(|(field, _)| time(field).is_none())
            .map(|(field, why)| FieldError::required(format!("status.{field}"), why))
            .collect();
    };
    let validity = &leaf.tbs_certificate.validity;
    let life = end.duration_since(begin);
    let longest = int_at(object, "/spec/maxExpirationSeconds").unwrap_or_default();
    let at = |field: &str, why: &str| {
        FieldError::invalid(format!("status.{field}"), text_at(object, &format!("/status/{field}")), why)
    };
    let error = if begin != timestamp(validity.not_before) {
        at("notBefore", "must be set to the NotBefore time encoded in the leaf certificate")
    } else if begin.duration_since(now).abs() >= SKEW {
        at("notBefore", "must be set to within 5 minutes of kube-apiserver's current time")
    } else if end != timestamp(validity.not_after) {
        at("notAfter", "must be set to the NotAfter time encoded in the leaf certificate")
    } else if life < SHORTEST {
        FieldError::invalid(CHAIN, nanoseconds(life), "leaf certificate lifetime must be >= 1 hour")
    } else if life > SignedDuration::from_secs(longest) {
        let why = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})");
        FieldError::invalid(CHAIN, nanoseconds(life), why)
    } else if refresh < begin + MARGIN {
        at("beginRefreshAt", "must be at least 10 minutes after status.notBefore")
    } else if refresh > end - MARGIN {
        at("beginRefreshAt", "must be at least 10 minutes before status.notAfter")
    } else {
        return Vec::new();
    };
    vec![error]
}

fn timestamp(time: Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// Returns a duration of whole seconds in nanoseconds, as Go counts.
fn nanoseconds(duration: SignedDuration) -> i64 {
    duration.as_secs().saturating_mul(1_000_000_000)
}
