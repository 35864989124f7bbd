//! Updates and patches.

use serde_json::{Value, json};

use super::query::{self, Query};
use super::{Episode, Known, pick, samples, values};
use crate::kind::Kind;
use crate::op::{JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};
use crate::player::merge;

impl Episode {
    pub(super) fn update(&mut self) {
        let known = self.object();
        let kind = known.kind.clone();
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        let run = query.on(&format!("PUT {}", known.path()));
        if self.random.u32(..4) == 0 {
            // The whole object, without a resource version.
            let body = self.body(&kind, &known.name);
            let op = self.push(run);
            op.body = Some(body);
            let id = op.id;
            self.saw(&known, id);
            return;
        }
        let mut patch = self.change(&kind);
        if self.random.u32(..12) == 0 {
            values::spoil(&mut self.random, &mut patch);
        }
        // A stale base now and then.
        let base = if self.random.u32(..10) == 0 { known.seen.saturating_sub(1) } else { known.seen };
        let op = self.push(run);
        (op.base, op.body) = (Some(base), Some(patch));
        let id = op.id;
        self.saw(&known, id);
    }

    /// Returns a merge patch for an object of a kind.
    pub(super) fn change(&mut self, kind: &Kind) -> Value {
        let random = &mut self.random;
        match random.u32(..10) {
            0..6 if !kind.knobs.is_empty() => pick(random, &kind.knobs).clone(),
            6 if !kind.status.is_empty() => json!({"status": pick(random, &kind.status)}),
            _ => samples::metadata(random),
        }
    }

    pub(super) fn patch(&mut self, known: &Known, sub: &str, media: &str, body: Value) {
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        let is_dry = self.random.u32(..30) == 0;
        if is_dry {
            query.add("dryRun", "All");
        }
        let accept = if self.random.u32(..15) == 0 { query::accept(&mut self.random, false) } else { None };
        let op = self.push(query.on(&format!("PATCH {}{sub}", known.path())));
        (op.media, op.body, op.accept) = (Some(media.to_owned()), Some(body), accept);
        let (id, plain) = (op.id, op.accept.is_none() && !op.run.contains("dryRun"));
        if sub.is_empty() && plain {
            self.saw(known, id);
        }
    }

    pub(super) fn merge_patch(&mut self) {
        let known = self.object();
        let mut patch = self.change(&known.kind);
        if self.random.u32(..10) == 0 {
            values::spoil(&mut self.random, &mut patch);
        }
        if self.random.u32(..30) == 0 {
            patch = samples::any(&mut self.random, "odd patches");
        }
        self.patch(&known, "", MERGE_PATCH, patch);
    }

    pub(super) fn strategic_patch(&mut self) {
        let known = self.object();
        let random = &mut self.random;
        let mut patch = match random.u32(..10) {
            0..6 if !known.kind.strategic.is_empty() => pick(random, &known.kind.strategic).clone(),
            6..8 => samples::any(random, "strategic"),
            _ => self.change(&known.kind),
        };
        if self.random.u32(..12) == 0 {
            values::spoil(&mut self.random, &mut patch);
        }
        self.patch(&known, "", STRATEGIC_PATCH, patch);
    }

    pub(super) fn json_patch(&mut self) {
        let known = self.object();
        let example = known.kind.example(json!({"name": known.name, "labels": {"run": "twin00"}}));
        let places = values::pointers(&example);
        let random = &mut self.random;
        let mut operations = Vec::new();
        for _ in 0..random.usize(1..4) {
            let path = match random.u32(..10) {
                0..5 => pick(random, &places).clone(),
                5 => format!("{}/more", pick(random, &places)),
                6 => format!("{}/-", pick(random, &places)),
                7 => format!("{}/0", pick(random, &places)),
                _ => samples::text(random, "pointers"),
            };
            let value = match random.u32(..4) {
                0 => values::odd(random),
                1 => example.pointer(&path).cloned().unwrap_or_else(|| "1".into()),
                2 => "v".into(),
                _ => json!({"k": "v"}),
            };
            let from = pick(random, &places).clone();
            operations.push(match random.u32(..12) {
                0..4 => json!({"op": "add", "path": path, "value": value}),
                4..6 => json!({"op": "replace", "path": path, "value": value}),
                6..8 => json!({"op": "remove", "path": path}),
                8 => json!({"op": "test", "path": path, "value": value}),
                9 => json!({"op": "copy", "from": from, "path": path}),
                10 => json!({"op": "move", "from": from, "path": path}),
                _ => samples::any(random, "odd operations"),
            });
        }
        let body = if random.u32(..30) == 0 { operations[0].clone() } else { operations.into() };
        self.patch(&known, "", JSON_PATCH, body);
    }

    pub(super) fn status(&mut self) {
        let with_status: Vec<Known> =
            self.objects.iter().filter(|known| !known.kind.status.is_empty()).cloned().collect();
        if with_status.is_empty() {
            return;
        }
        let known = pick(&mut self.random, &with_status).clone();
        let status = pick(&mut self.random, &known.kind.status).clone();
        let mut body = json!({"status": status});
        match self.random.u32(..10) {
            0 => merge(&mut body, samples::metadata(&mut self.random)),
            1 => merge(&mut body, pick(&mut self.random, &known.kind.knobs).clone()),
            2 => values::spoil(&mut self.random, &mut body),
            _ => {}
        }
        if self.random.bool() {
            let media = match self.random.u32(..3) {
                0 if !known.kind.custom => STRATEGIC_PATCH,
                _ => MERGE_PATCH,
            };
            return self.patch(&known, "/status", media, body);
        }
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        let op = self.push(query.on(&format!("PUT {}/status", known.path())));
        (op.base, op.body) = (Some(known.seen), Some(body));
        let id = op.id;
        self.saw(&known, id);
    }

    pub(super) fn scale(&mut self) {
        let scaled: Vec<Known> = self.objects.iter().filter(|known| known.kind.scale).cloned().collect();
        if scaled.is_empty() {
            return;
        }
        let known = pick(&mut self.random, &scaled).clone();
        let replicas = samples::any(&mut self.random, "replicas");
        if self.random.bool() {
            return self.patch(&known, "/scale", MERGE_PATCH, json!({"spec": {"replicas": replicas}}));
        }
        let read = self.push(format!("GET {}/scale", known.path())).id;
        let op = self.push(format!("PUT {}/scale", known.path()));
        (op.base, op.body) = (Some(read), Some(json!({"spec": {"replicas": replicas}})));
    }

    /// Writes a subresource that only a few kinds have.
    pub(super) fn special(&mut self) {
        let known = self.object();
        let path = known.path();
        let random = &mut self.random;
        let (run, body) = match known.kind.plural.as_str() {
            "pods" => match random.u32(..5) {
                0 => (
                    format!("POST {path}/binding"),
                    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": known.name}, "target": {"kind": "Node", "name": "node-1"}}),
                ),
                1 => (
                    format!("POST {path}/eviction"),
                    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": known.name}}),
                ),
                2 => (
                    format!("PATCH {path}/ephemeralcontainers"),
                    json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}),
                ),
                3 => (
                    format!("PATCH {path}/ephemeralcontainers"),
                    json!({"metadata": {"labels": {"sneaky": "1"}}, "spec": {"nodeName": "n", "ephemeralContainers": [{"name": "main", "image": "x"}]}}),
                ),
                _ => (
                    format!("PATCH {path}/resize"),
                    json!({"spec": {"containers": [{"name": "main", "image": "other", "resources": {"requests": {"cpu": "200m"}}}]}}),
                ),
            },
            "namespaces" => (
                format!("PUT {path}/finalize"),
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": known.name}, "spec": {"finalizers": []}}),
            ),
            "serviceaccounts" => (
                format!("POST {path}/token"),
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"], "expirationSeconds": pick(random, &[600, 5, 3600])}}),
            ),
            _ => return,
        };
        let media = run.starts_with("PATCH").then(|| STRATEGIC_PATCH.to_owned());
        let op = self.push(run);
        (op.body, op.media) = (Some(body), media);
    }
}
