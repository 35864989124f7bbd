//! Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use windlass_schema::{FieldError, decode_base64};

use super::config_map::{SIZE_LIMIT, decoded_length, validate_immutable, validate_key};
use crate::strategy::fields::{map_at, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

/// The type of secrets with a token of a service account.
const TOKEN: &str = "kubernetes.io/service-account-token";

/// How PEM begins.
const PEM: &[u8] = b"-----BEGIN";

const SECRETS: Facts = Facts { selectable: &[("type", "/type")], ..Facts::DATA };

pub(super) struct Secrets;

impl Strategy for Secrets {
    fn facts(&self) -> &'static Facts {
        &SECRETS
    }

    fn default(&self, object: &mut Value) {
        merge_string_data(object);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        check_data(object)
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        check_data(object)
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        validate_secret(object)
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if object.get("type") != old.get("type") {
            let kind = text_at(object, "/type");
            errors.push(FieldError::invalid("type", kind, "field is immutable"));
        }
        errors.extend(validate_immutable(object, old, &["data"]));
        errors.extend(validate_secret(object));
        errors
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
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

/// Moves `stringData` into `data`.
fn merge_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let texts = fields.remove("stringData");
    if let Some(texts) = texts.as_ref().and_then(Value::as_object).filter(|texts| !texts.is_empty()) {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        if !data.is_object() {
            *data = json!({});
        }
        if let Some(data) = data.as_object_mut() {
            for (key, text) in texts {
                data.insert(key.clone(), STANDARD.encode(text.as_str().unwrap_or_default()).into());
            }
        }
    }
}

/// Refuses values that are not base64.
fn check_data(object: &Value) -> Result<(), ApiError> {
    map_at(object, "/data")
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_str)
        .try_for_each(check_base64)
}

fn check_base64(text: &str) -> Result<(), ApiError> {
    if decode_base64(text).is_some() {
        return Ok(());
    }
    let at = match STANDARD.decode(text) {
        Err(base64::DecodeError::InvalidByte(at, _)) => at,
        _ => text.len(),
    };
    Err(ApiError::bad_request(format!(
        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte {at}"
    )))
}

fn validate_secret(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
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
    errors
}

fn validate_json<'a>(key: &str, value: impl Fn(&str) -> Option<&'a str>) -> Option<FieldError> {
    let field = format!("data[{key}]");
    let Some(text) = value(key) else { return Some(FieldError::required(field, "")) };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let error = crate::wire::from_json_with_duplicates(&bytes).err()?;
    Some(FieldError::invalid(field, "<secret contents redacted>", error))
}
