//! Server-side apply by several managers.

use serde_json::json;

use super::query::Query;
use super::{Episode, Known, pick, samples, values};
use crate::op::APPLY_PATCH;
use crate::player::merge;

/// The managers of the applied fields.
const MANAGERS: [&str; 3] = ["m1", "m2", "m3"];

impl Episode {
    pub(super) fn apply(&mut self) {
        let known = if self.random.u32(..4) == 0 { self.newcomer() } else { self.object() };
        let kind = known.kind.clone();
        let (sub, mut body) = if !kind.status.is_empty() && self.random.u32(..8) == 0 {
            ("/status", json!({"status": pick(&mut self.random, &kind.status)}))
        } else {
            ("", self.configuration(&known))
        };
        body["apiVersion"] = kind.api_version().into();
        body["kind"] = kind.name.clone().into();
        body["metadata"]["name"] = known.name.clone().into();
        let random = &mut self.random;
        if random.u32(..3) == 0 {
            merge(&mut body, samples::metadata(random));
        }
        // The embedded server drops empty values, and the consequences differ.
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.retain(|_, value| *value != json!([]) && *value != json!({}));
        }
        if random.u32(..15) == 0 {
            values::spoil(random, &mut body);
        }
        let mut query = Query::default();
        query.add("fieldManager", pick(random, &MANAGERS));
        match random.u32(..20) {
            0..7 => query.add("force", "true"),
            7 => query.add("force", "false"),
            8 => query.add("dryRun", "All"),
            9 => query.add("fieldValidation", "Strict"),
            _ => {}
        }
        let op = self.push(query.on(&format!("PATCH {}{sub}", known.path())));
        (op.media, op.body) = (Some(APPLY_PATCH.to_owned()), Some(body));
        let (id, is_dry) = (op.id, op.run.contains("dryRun"));
        if sub.is_empty() && !is_dry {
            let is_new = !self.objects.iter().any(|other| other.path() == known.path());
            if is_new {
                self.objects.push(Known { seen: id, ..known });
            } else {
                self.saw(&known, id);
            }
        }
    }

    /// Returns the wanted fields of a manager: all fields of an object, or some fields.
    fn configuration(&mut self, known: &Known) -> serde_json::Value {
        let mut body = if self.random.u32(..3) > 0 { known.kind.object.clone() } else { json!({}) };
        for _ in 0..self.random.usize(..3) {
            if !known.kind.knobs.is_empty() {
                merge(&mut body, pick(&mut self.random, &known.kind.knobs).clone());
            }
        }
        if !body.is_object() {
            body = json!({});
        }
        body["metadata"] = json!({"labels": {"run": "twin00"}});
        body
    }

    /// Returns an object that may not exist yet.
    fn newcomer(&mut self) -> Known {
        let kind = self.kind();
        let (namespace, name) = (self.namespace(), self.name(&kind));
        Known { kind, namespace, name, seen: 0 }
    }
}
