//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::names;

use super::Events;
use super::convert::RENAMED;
use crate::json::text;
use crate::kind::{Validate, WriteContext};

impl Validate for Events {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let event = Event::of(object);
        let mut errors = event.validate();
        if !event.is_core() {
            errors.extend(event.validate_new());
        }
        errors
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let (event, old) = (Event::of(object), Event::of(old));
        let mut errors = event.validate();
        if !event.is_core() {
            errors.extend(event.validate_change(&old));
        }
        errors
    }
}

const LONGEST: usize = 128;

const LONGEST_NOTE: usize = 1_024;

/// An event of either group, with the field names of the core group.
struct Event<'a>(&'a Value);

impl<'a> Event<'a> {
    fn of(object: &'a Value) -> Self {
        Self(object)
    }

    fn is_core(&self) -> bool {
        text(self.0, "apiVersion") == "v1"
    }

    /// Returns the field with this name in the core group.
    fn field(&self, name: &str) -> Option<&'a Value> {
        let renamed = RENAMED.iter().find(|(core, _)| *core == name);
        let name = if self.is_core() { name } else { renamed.map_or(name, |(_, new)| new) };
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> &'a str {
        self.field(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the rules for events of both groups.
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let own = meta::namespace(self.0);
        let about = self.field("involvedObject").map_or("", |about| text(about, "namespace"));
        let mut elsewhere = |is_elsewhere: bool| {
            if is_elsewhere {
                let detail = "does not match event.namespace";
                errors.push(FieldError::invalid("involvedObject.namespace", about, detail));
            }
        };
        if self.field("eventTime").is_none() {
            // Events about cluster-scoped objects are in the namespace `default`.
            elsewhere(about != own && !(about.is_empty() && own == "default"));
            return errors;
        }
        elsewhere(about.is_empty() && !["default", "kube-system"].contains(&own));
        let reporter = if self.is_core() { "reportingComponent" } else { "reportingController" };
        let controller = self.text("reportingComponent");
        if controller.is_empty() {
            errors.push(FieldError::required(reporter, ""));
        }
        let problems = names::label_key(controller);
        errors.extend(problems.into_iter().map(|text| FieldError::invalid(reporter, controller, text)));
        for field in ["reportingInstance", "action", "reason"] {
            if self.text(field).is_empty() {
                errors.push(FieldError::required(field, ""));
            }
            check_length(field, self.text(field), LONGEST, &mut errors);
        }
        check_length("message", self.text("message"), LONGEST_NOTE, &mut errors);
        errors
    }

    /// Returns the rules for new events of `events.k8s.io`.
    fn validate_new(&self) -> Vec<FieldError> {
        let mut errors = self.validate_series();
        if self.field("eventTime").is_none() {
            errors.push(FieldError::required("eventTime", ""));
        }
        let kind = self.text("type");
        if !["Normal", "Warning"].contains(&kind) {
            errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
        }
        let is_set = |field: &str| match self.field(field) {
            Some(Value::Object(_)) => {
                ["component", "host"].iter().any(|part| !text(&self.0["deprecatedSource"], part).is_empty())
            }
            Some(value) => *value != 0,
            None => false,
        };
        for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
            if is_set(field) {
                errors.push(FieldError::invalid(field, "", "needs to be unset"));
            }
        }
        errors
    }

    fn validate_series(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let Some(series) = self.field("series") else { return errors };
        if series.get("count").and_then(Value::as_i64).unwrap_or_default() < 2 {
            errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
        }
        if series.get("lastObservedTime").is_none_or(Value::is_null) {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
        errors
    }

    /// Returns the rules for a change by way of `events.k8s.io`: only the series changes.
    fn validate_change(&self, old: &Self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.field("series") != old.field("series") {
            errors.extend(self.validate_series());
        }
        for field in [
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "reason",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingComponent",
            "reportingInstance",
        ] {
            let (new, old) = (self.field(field), old.field(field));
            if new.filter(|value| !is_zero(value)) != old.filter(|value| !is_zero(value)) {
                let shown = if field == "reportingComponent" { "reportingController" } else { field };
                let new = new.cloned().unwrap_or_default();
                errors.push(FieldError::invalid(shown, new, "field is immutable"));
            }
        }
        errors
    }
}

/// Returns whether Go does not tell a value from one that is not set.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Array(_) => false,
    }
}

fn check_length(field: &str, text: &str, most: usize, errors: &mut Vec<FieldError>) {
    if text.len() > most {
        errors.push(FieldError::invalid(field, "", format!("can have at most {most} characters")));
    }
}
