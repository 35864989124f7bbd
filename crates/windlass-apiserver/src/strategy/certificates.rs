//! Certificate signing requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::fields::{default, list_at, spec_mut, text_at};
use super::{Facts, FactsOnly, Strategy, StrategyContext, Writes};
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "certificatesigningrequests" => &SigningRequests,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const SIGNING_REQUESTS: Facts = Facts {
    selectable: &[("spec.signerName", "/spec/signerName")],
    writes: &[
        ("", Writes::AllBut(&["spec", "status"])),
        ("status", Writes::AllBut(&["spec"])),
        ("approval", Writes::AllBut(&["spec", "status.certificate"])),
    ],
    unenforced: Some("no certificate is issued, because requests cannot be approved and there is no signer"),
    ..Facts::DATA
};

struct SigningRequests;

impl Strategy for SigningRequests {
    fn facts(&self) -> &'static Facts {
        &SIGNING_REQUESTS
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let spec = spec_mut(object);
        // The requester is the authenticated user.
        for field in ["uid", "groups", "extra"] {
            spec.remove(field);
        }
        spec.insert("username".to_owned(), cx.identity.name().into());
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        let now = crate::env::rfc3339(cx.env.now());
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
            default(condition, "lastUpdateTime", now.as_str());
            default(condition, "lastTransitionTime", now.as_str());
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if list_at(object, "/spec/usages").is_empty() {
            errors.push(FieldError::required("spec.usages", ""));
        }
        let request = text_at(object, "/spec/request");
        let pem = STANDARD.decode(request).unwrap_or_default();
        if !String::from_utf8_lossy(&pem).trim_start().starts_with("-----BEGIN CERTIFICATE REQUEST-----") {
            let detail = "PEM block type must be CERTIFICATE REQUEST";
            errors.push(FieldError::invalid("spec.request", request, detail));
        }
        let signer = text_at(object, "/spec/signerName");
        if signer.is_empty() {
            errors.push(FieldError::required("spec.signerName", ""));
        } else if !signer.contains('/') {
            let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.push(FieldError::invalid("spec.signerName", signer, detail));
        }
        errors
    }
}
