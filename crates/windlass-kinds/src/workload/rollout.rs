//! Rollout strategies of workloads.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use crate::field::{self, Errors, Field};
use crate::json::{default, entry_mut, text_at};

/// Sets the parameters of a rolling update, if that is the strategy under `field`.
pub(crate) fn default_rolling_update(
    spec: &mut Map<String, Value>,
    field: &str,
    parameters: &[(&str, Value)],
) {
    let Some(strategy) = entry_mut(spec, field) else { return };
    if strategy.get("type").is_none_or(|kind| kind != "RollingUpdate") {
        return;
    }
    default(strategy, "rollingUpdate", json!({}));
    if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
        for (name, value) in parameters {
            default(rolling, name, value.clone());
        }
    }
}

/// Shows a strategy of an unknown type in the form of kube-apiserver's errors.
pub(crate) fn show_strategy(kind: &str) -> String {
    format!("{{\"Type\":{},\"RollingUpdate\":null}}", windlass_schema::go_quote(kind))
}

pub(crate) fn validate_rollout(spec: &Value, errors: &mut Vec<FieldError>) {
    let kind = text_at(spec, "/strategy/type");
    let path = "spec.strategy.rollingUpdate";
    match kind {
        "Recreate" => {
            if spec.pointer("/strategy/rollingUpdate").is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        "RollingUpdate" => {
            let value = |field: &str| spec.pointer(&format!("/strategy/rollingUpdate/{field}"));
            for field in ["maxUnavailable", "maxSurge"] {
                errors.extend(
                    value(field).and_then(|value| validate_int_or_percent(value, &format!("{path}.{field}"))),
                );
            }
            let shown = value("maxUnavailable").cloned().unwrap_or(Value::Null);
            if int_or_percent(value("maxUnavailable")) == 0 && int_or_percent(value("maxSurge")) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(format!("{path}.maxUnavailable"), shown.clone(), detail));
            }
            if percent(&shown).is_some_and(|percent| percent > 100) {
                let detail = "must not be greater than 100%";
                errors.push(FieldError::invalid(format!("{path}.maxUnavailable"), shown, detail));
            }
        }
        other => {
            let known = ["Recreate", "RollingUpdate"];
            errors.push(
                FieldError::not_supported("spec.strategy", other, &known).showing(show_strategy(other)),
            );
        }
    }
}

/// Validates the rolling update of a daemon set, which either removes pods first or adds pods first.
pub(crate) fn validate_daemon_rollout(spec: &Value) -> Vec<FieldError> {
    field::validate(
        "spec.updateStrategy.rollingUpdate",
        &spec["updateStrategy"]["rollingUpdate"],
        |rolling, errors| {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            for field in [&unavailable, &surge] {
                positive_int_or_percent(field, errors);
                at_most_all(field, errors);
            }
            match (int_or_percent(Some(unavailable.value())) != 0, int_or_percent(Some(surge.value())) != 0) {
                (true, true) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
                (false, false) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                _ => {}
            }
        },
    )
}

/// Reports a number below zero, or a text that is not a percentage.
pub(crate) fn positive_int_or_percent(place: &Field<'_>, errors: &mut Errors) {
    errors.extend(
        validate_int_or_percent(place.value(), "").into_iter().flat_map(|error| place.moved(vec![error])),
    );
}

/// Reports a percentage above 100.
pub(crate) fn at_most_all(place: &Field<'_>, errors: &mut Errors) {
    if percent(place.value()).is_some_and(|percent| percent > 100) {
        errors.push(place.invalid("must not be greater than 100%"));
    }
}

/// Returns the number of a percentage, or a plain number, or that of a text.
pub(crate) fn int_or_percent(value: Option<&Value>) -> i64 {
    match value {
        Some(value) => percent(value)
            .map(|percent| i64::try_from(percent).unwrap_or(i64::MAX))
            .or_else(|| value.as_i64())
            .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
            .unwrap_or_default(),
        None => 0,
    }
}

/// Returns the number of a percentage.
fn percent(value: &Value) -> Option<u64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let fits = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    fits.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Validates a number or percentage.
pub(crate) fn validate_int_or_percent(value: &Value, field: &str) -> Option<FieldError> {
    match value {
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            Some(FieldError::invalid(field, value.clone(), "must be greater than or equal to 0"))
        }
        Value::String(text) if percent(value).is_none() => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            Some(FieldError::invalid(field, text.as_str(), detail))
        }
        _ => None,
    }
}
