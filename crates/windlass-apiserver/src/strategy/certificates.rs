//! Certificate signing requests.

mod conditions;
mod pem;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_schema::FieldError;

use self::pem::Request;
use super::fields::{list_at, spec_mut, text_at};
use super::{Facts, FactsOnly, Strategy, StrategyContext, Writes};
use crate::auth::{Attributes, Identity};
use crate::meta;
use crate::wire::{ApiError, GroupResource, names};

const GROUP: &str = "certificates.k8s.io";
const RESOURCE: &str = "certificatesigningrequests";
/// The signer of client certificates of the API server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
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

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        RESOURCE => &SigningRequests,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const SIGNING_REQUESTS: Facts = Facts {
    name: names::path_segment_name,
    selectable: &[("spec.signerName", "/spec/signerName")],
    writes: &[
        ("", Writes::AllBut(&["spec", "status"])),
        ("status", Writes::AllBut(&["spec"])),
        ("approval", Writes::AllBut(&["spec", "status.certificate"])),
    ],
    ..Facts::DATA
};

struct SigningRequests;

impl Strategy for SigningRequests {
    fn complete_zero(&self, object: &mut Value) {
        spec_mut(object).insert("request".to_owned(), Value::Null);
    }

    fn facts(&self) -> &'static Facts {
        &SIGNING_REQUESTS
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let spec = spec_mut(object);
        // The requester is the authenticated user.
        for field in ["username", "uid", "groups", "extra"] {
            spec.remove(field);
        }
        let user = cx.identity;
        spec.insert("username".to_owned(), user.name().into());
        spec.extend(user.uid().map(|uid| ("uid".to_owned(), uid.into())));
        if !user.groups().is_empty() {
            spec.insert("groups".to_owned(), json!(user.groups()));
        }
        if !user.extra().is_empty() {
            spec.insert("extra".to_owned(), json!(user.extra()));
        }
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if cx.subresource == "status" {
            conditions::keep_decisions(object, old);
        }
        conditions::fill_times(object, old, &crate::env::rfc3339(cx.env.now()));
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        problems(object, None)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = problems(object, Some(old));
        errors.extend(conditions::validate_change(object, old, cx.subresource == "approval"));
        let (certificate, known) = (text_at(object, CERTIFICATE), text_at(old, CERTIFICATE));
        if cx.subresource == "status" && certificate != known && !known.is_empty() {
            let why = "updates may not modify existing certificate content";
            errors.push(FieldError::forbidden("status.certificate", why));
        }
        errors
    }

    fn review(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        let forbid = |why: String| {
            Err(ApiError::forbidden(&GroupResource::new(GROUP, RESOURCE), meta::name(object), why))
        };
        let Some(old) = old else {
            return if asks_for_masters(object) {
                forbid(format!(
                    "use of {CLIENT_SIGNER} signer with {} group is not allowed",
                    Identity::MASTERS
                ))
            } else {
                Ok(())
            };
        };
        let changed = |pointer: &str| object.pointer(pointer) != old.pointer(pointer);
        let verb = match cx.subresource {
            "approval" => "approve",
            "status" if changed(CERTIFICATE) || changed("/status/conditions") => "sign",
            _ => return Ok(()),
        };
        let signer = text_at(old, SIGNER);
        if may_act_for(cx, verb, signer) {
            return Ok(());
        }
        let signer = windlass_schema::go_quote(signer);
        forbid(format!("user not permitted to {verb} requests with signerName {signer}"))
    }
}

const SIGNER: &str = "/spec/signerName";
const CERTIFICATE: &str = "/status/certificate";

/// Returns whether the user may approve or sign requests for a signer: for this signer, or for all signers of
/// the domain.
fn may_act_for(cx: &StrategyContext<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].iter().any(|name| {
        let act = Attributes { verb, group: GROUP, resource: "signers", name, ..Attributes::default() };
        cx.authorizer.allows(cx.store, cx.identity, &act)
    })
}

/// Returns whether a request is for a client certificate of an administrator.
fn asks_for_masters(object: &Value) -> bool {
    text_at(object, SIGNER) == CLIENT_SIGNER
        && Request::parse(&bytes_at(object, "/spec/request"))
            .is_ok_and(|request| request.organizations().iter().any(|group| group == Identity::MASTERS))
}

fn bytes_at(object: &Value, pointer: &str) -> Vec<u8> {
    STANDARD.decode(text_at(object, pointer)).unwrap_or_default()
}

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
        errors.extend(problems_of_signer(signer));
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
    let mut errors = Vec::new();
    if usages.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let path = |index: usize| format!("spec.usages[{index}]");
    for (index, usage) in usages.iter().enumerate().filter(|(_, usage)| !USAGES.contains(usage)) {
        errors.push(FieldError::not_supported(path(index), *usage, &USAGES));
    }
    for (index, usage) in usages.iter().enumerate().filter(|(index, usage)| usages[..*index].contains(usage))
    {
        errors.push(FieldError::duplicate(path(index), *usage));
    }
    errors
}

fn problems_of_signer(signer: &str) -> Vec<FieldError> {
    const FIELD: &str = "spec.signerName";
    if signer.is_empty() {
        return vec![FieldError::required(FIELD, "")];
    }
    let Some((domain, path)) = signer.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid(FIELD, signer, why)];
    };
    let mut errors = Vec::new();
    let mut check = |part: &str, labels: &dyn Fn(&str) -> Vec<String>| {
        let first = part.split('.').map(|label| (label, labels(label))).find(|(_, why)| !why.is_empty());
        for (label, why) in first.iter().flat_map(|(label, all)| all.iter().map(move |why| (label, why))) {
            let why = format!("validating label {}: {why}", windlass_schema::go_quote(label));
            errors.push(FieldError::invalid(FIELD, part, why));
        }
    };
    check(domain, &names::dns_1123_label);
    check(path, &names::dns_1123_subdomain);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(FIELD, domain, why));
    }
    errors
}
