//! New objects, valid and invalid.

use serde_json::{Value, json};

use super::query::{self, Query};
use super::{Episode, Known, pick, samples, values};
use crate::kind::Kind;
use crate::player::merge;

impl Episode {
    pub(super) fn metadata(&mut self, kind: &Kind, name: &str) -> Value {
        let random = &mut self.random;
        let mut metadata = json!({"name": name, "labels": {"run": "twin00"}});
        if random.bool() {
            metadata["labels"]["app"] = (*pick(random, &["a", "b"])).into();
        }
        if random.u32(..3) == 0 {
            metadata["labels"]["tier"] = (*pick(random, &["x", "y"])).into();
        }
        match random.u32(..30) {
            0..8 => merge(&mut metadata, samples::any(random, "odd metadata")),
            8..11 => merge(&mut metadata, samples::any(random, "metadata")),
            11 => metadata["name"] = samples::any(random, "odd names"),
            12 => metadata["generateName"] = "unused-".into(),
            13 if kind.namespaced => metadata["namespace"] = "twin00-b".into(),
            _ => {}
        }
        metadata
    }

    /// Returns a new object, valid or invalid.
    pub(super) fn body(&mut self, kind: &Kind, name: &str) -> Value {
        let metadata = self.metadata(kind, name);
        let mut object = kind.example(metadata);
        for _ in 0..self.random.usize(..3) {
            let knob = pick(&mut self.random, &kind.knobs).clone();
            merge(&mut object, knob);
        }
        self.vary(kind, &mut object);
        object
    }

    /// Adds a field to an object, makes a field wrong, or leaves the object unchanged.
    pub(super) fn vary(&mut self, kind: &Kind, object: &mut Value) {
        if self.random.u32(..100) < 12
            && let Some(schema) = &kind.schema
        {
            values::add_field(&mut self.random, object, schema.root());
        }
        if self.random.u32(..100) < 10 {
            values::spoil(&mut self.random, object);
        }
    }

    pub(super) fn create(&mut self) {
        let (kind, namespace) = (self.kind(), self.namespace());
        let name = self.name(&kind);
        let mut body = self.body(&kind, &name);
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        if self.random.u32(..20) == 0 {
            let id = self.ops.last().map_or(0, |last| last.id) + 1;
            let prefix = if kind.namespaced { format!("gen{id}-") } else { format!("twin00-gen{id}-") };
            body["metadata"]["generateName"] = prefix.into();
            if let Some(metadata) = body["metadata"].as_object_mut() {
                metadata.remove("name");
            }
        }
        let run = query.on(&format!("POST {}", kind.collection(namespace)));
        let accept = if self.random.u32(..15) == 0 { query::accept(&mut self.random, false) } else { None };
        let is_dry = run.contains("dryRun");
        let op = self.push(run);
        (op.body, op.accept) = (Some(body), accept);
        let seen = op.id;
        let exists = self.objects.iter().any(|known| {
            known.kind.plural == kind.plural && known.namespace == namespace && known.name == name
        });
        if !is_dry && !exists {
            self.objects.push(Known { kind, namespace, name, seen });
        }
    }
}
