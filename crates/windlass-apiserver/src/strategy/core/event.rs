//! Events. The core group and `events.k8s.io` show the same objects with different names for some fields.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_schema::FieldError;

use crate::meta;
use crate::strategy::fields::text;
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::names;

pub(in crate::strategy) fn of(group: &str) -> &'static dyn Strategy {
    if group.is_empty() { &Events(&EVENTS) } else { &Events(&NEW_EVENTS) }
}

/// The time that an event is kept after its last write: the default of `--event-ttl`.
const TTL: Duration = Duration::from_secs(3600);

const EVENTS: Facts = Facts {
    create_on_update: true,
    ttl: Some(TTL),
    selectable: &[
        ("involvedObject.kind", "/involvedObject/kind"),
        ("involvedObject.namespace", "/involvedObject/namespace"),
        ("involvedObject.name", "/involvedObject/name"),
        ("involvedObject.uid", "/involvedObject/uid"),
        ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
        ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
        ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
        ("reason", "/reason"),
        ("reportingComponent", "/reportingComponent"),
        ("source", "/source/component"),
        ("type", "/type"),
    ],
    ..Facts::DATA
};
const NEW_EVENTS: Facts = Facts {
    selectable: &[
        ("regarding.kind", "/regarding/kind"),
        ("regarding.namespace", "/regarding/namespace"),
        ("regarding.name", "/regarding/name"),
        ("regarding.uid", "/regarding/uid"),
        ("regarding.apiVersion", "/regarding/apiVersion"),
        ("regarding.resourceVersion", "/regarding/resourceVersion"),
        ("regarding.fieldPath", "/regarding/fieldPath"),
        ("reason", "/reason"),
        ("reportingController", "/reportingController"),
        ("type", "/type"),
    ],
    ..EVENTS
};

/// The fields with different names in `v1` and `events.k8s.io`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

struct Events(&'static Facts);

impl Strategy for Events {
    fn facts(&self) -> &'static Facts {
        self.0
    }

    /// Returns the value for a field selector. The reporter stands in for a missing source.
    fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = self.0.selectable_value(object, field);
        let reporter = || self.0.selectable_value(object, "reportingComponent");
        if field == "source" && value.is_empty() { reporter() } else { value }
    }

    fn convert(&self, object: &mut Value, _version: &str) {
        let to_new = text(object, "apiVersion") == "v1";
        let Some(fields) = object.as_object_mut() else { return };
        for (core, new) in RENAMED {
            let (from, to) = if to_new { (core, new) } else { (new, core) };
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
        // `v1` always writes these fields, `events.k8s.io` only non-empty fields.
        if to_new {
            for field in ["reportingController", "reportingInstance"] {
                if fields.get(field).is_some_and(|value| value == "") {
                    fields.remove(field);
                }
            }
        } else {
            for (field, empty) in [
                ("involvedObject", json!({})),
                ("source", json!({})),
                ("firstTimestamp", Value::Null),
                ("lastTimestamp", Value::Null),
                ("reportingComponent", json!("")),
                ("reportingInstance", json!("")),
            ] {
                fields.entry(field).or_insert(empty);
            }
        }
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let event = Event::of(object);
        let mut errors = event.validate();
        if !event.is_core() {
            errors.extend(event.validate_new());
        }
        errors
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
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
