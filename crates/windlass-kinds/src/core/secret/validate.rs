//! Validation and warnings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};

use super::Secrets;
use crate::core::config_map::{SIZE_LIMIT, decoded_length, validate_immutable, validate_key};
use crate::json::{map_at, text_at};
use crate::kind::{Validate, WriteContext};

impl Validate for Secrets {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        validate_secret(object)
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if object.get("type") != old.get("type") {
            let kind = text_at(object, "/type");
            errors.push(FieldError::invalid("type", kind, "field is immutable"));
        }
        errors.extend(validate_immutable(object, old, &["data"]));
        errors.extend(validate_secret(object));
        errors
    }

    fn warnings(&self, _cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        if text_at(object, "/type") != "kubernetes.io/tls" {
            return Vec::new();
        }
        let lacks_pem = |key: &str| {
            let data = STANDARD.decode(text_at(&object["data"], &format!("/{key}"))).unwrap_or_default();
            !data.windows(PEM.len()).any(|window| window == PEM)
        };
        let without =
            [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find(|(key, _)| lacks_pem(key));
        let text = without.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input"));
        text.into_iter().collect()
    }
}

/// The type of secrets with a token of a service account.
const TOKEN: &str = "kubernetes.io/service-account-token";

/// How PEM begins.
const PEM: &[u8] = b"-----BEGIN";

fn validate_secret(object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    let data = map_at(object, "/data");
    let mut size = 0;
    for (key, value) in data.into_iter().flatten() {
        errors.extend(validate_key("data", key));
        size += decoded_length(value);
    }
    if size > SIZE_LIMIT {
        errors.push(FieldError::too_long("data", SIZE_LIMIT));
    }
    let value = |key: &str| data.and_then(|data| data.get(key)).and_then(Value::as_str);
    let missing = |key: &str| value(key).is_none().then(|| FieldError::required(format!("data[{key}]"), ""));
    match text_at(object, "/type") {
        "kubernetes.io/tls" => {
            errors.extend(missing("tls.crt"));
            errors.extend(missing("tls.key"));
        }
        "kubernetes.io/basic-auth" if value("username").is_none() && value("password").is_none() => {
            errors.extend(missing("username"));
            errors.extend(missing("password"));
        }
        "kubernetes.io/ssh-auth" if value("ssh-privatekey").is_none_or(str::is_empty) => {
            errors.push(FieldError::required("data[ssh-privatekey]", ""));
        }
        "kubernetes.io/dockerconfigjson" => errors.extend(validate_json(".dockerconfigjson", value)),
        "kubernetes.io/dockercfg" => errors.extend(validate_json(".dockercfg", value)),
        TOKEN => {
            let pointer = "/metadata/annotations/kubernetes.io~1service-account.name";
            if text_at(object, pointer).is_empty() {
                let field = "metadata.annotations[kubernetes.io/service-account.name]";
                errors.push(FieldError::required(field, ""));
            }
        }
        _ => {}
    }
    errors.into_vec()
}

fn validate_json<'a>(key: &str, value: impl Fn(&str) -> Option<&'a str>) -> Option<FieldError> {
    let field = format!("data[{key}]");
    let Some(text) = value(key) else { return Some(FieldError::required(field, "")) };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let error = windlass_wire::from_json_with_duplicates(&bytes).err()?;
    Some(FieldError::invalid(field, "<secret contents redacted>", error))
}
