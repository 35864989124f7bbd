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

    fn convert(&self, object: &mut Value, _version: &str) {
        let to_new = text(object, "apiVersion") == "v1";
        let Some(fields) = object.as_object_mut() else { return };
        for (core, new) in RENAMED {
            let (from, to) = if to_new { (core, new) } else { (new, core) };
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
        // `v1` always writes these fields, `events.k8s.io` only if they are not empty.
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
        let own = meta::namespace(object);
        let about = ["involvedObject", "regarding"].iter().find_map(|field| object.get(*field));
        let namespace = about.map_or("", |about| text(about, "namespace"));
        // Events about cluster-scoped objects are in the namespace `default`.
        if namespace != own && !(namespace.is_empty() && own == "default") {
            let detail = "does not match event.namespace";
            return vec![FieldError::invalid("involvedObject.namespace", namespace, detail)];
        }
        if text(object, "apiVersion") == "v1" {
            return Vec::new();
        }
        // `events.k8s.io` requires the time and the reporter.
        if object.get("eventTime").is_none_or(Value::is_null) {
            return vec![FieldError::required("eventTime", "")];
        }
        let controller = text(object, "reportingController");
        if controller.is_empty() {
            let mut errors = vec![FieldError::required("reportingController", "")];
            let problems = names::label_key(controller);
            errors.extend(
                problems.into_iter().map(|text| FieldError::invalid("reportingController", "", text)),
            );
            return errors;
        }
        ["reportingInstance", "action", "reason"]
            .into_iter()
            .filter(|field| text(object, field).is_empty())
            .map(|field| FieldError::required(field, ""))
            .collect()
    }
}
