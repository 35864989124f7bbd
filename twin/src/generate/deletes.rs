//! Deletions.

use serde_json::{Value, json};

use super::query::{self, Query};
use super::{Episode, Known, pick, samples, values};
use crate::op::MERGE_PATCH;

impl Episode {
    pub(super) fn delete(&mut self) {
        let known = self.object();
        let mut query = Query::default();
        let body = self.delete_options(&mut query, Some(&known));
        let run = query.on(&format!("DELETE {}", known.path()));
        let is_dry = run.contains("dryRun") || body.as_ref().is_some_and(|body| body["dryRun"].is_array());
        self.push(run).body = body;
        if !is_dry && self.random.u32(..10) > 0 {
            let path = known.path();
            self.objects.retain(|other| other.path() != path);
        }
    }

    pub(super) fn delete_options(&mut self, query: &mut Query, known: Option<&Known>) -> Option<Value> {
        let random = &mut self.random;
        match random.u32(..40) {
            0 => query.add("dryRun", "All"),
            1..4 => {
                query.add("propagationPolicy", pick(random, &["Foreground", "Orphan", "Background", "Odd"]));
            }
            4..6 => query.add("gracePeriodSeconds", pick(random, &["0", "5", "-1", "x"])),
            6 => query.add("orphanDependents", "true"),
            _ => {}
        }
        let seen = known.map_or(0, |known| known.seen);
        let reference = |field: &str| format!("{{{{{seen}/metadata/{field}}}}}");
        let options = match random.u32(..24) {
            0..6 => samples::any(random, "delete options"),
            6 => json!({"preconditions": {"uid": reference("uid")}}),
            7 => json!({"preconditions": {"resourceVersion": reference("resourceVersion")}}),
            8 => values::odd(random),
            _ => return None,
        };
        Some(options)
    }

    pub(super) fn delete_collection(&mut self) {
        let kind = self.kind();
        if kind.plural == "namespaces" {
            return;
        }
        let namespace = self.namespace();
        let path = kind.collection(namespace);
        let mut query = Query::default();
        query::selectors(&mut self.random, &mut query, &kind, !kind.namespaced);
        if kind.namespaced && self.random.u32(..8) == 0 {
            query.add("limit", "1");
        }
        let body = self.delete_options(&mut query, None);
        self.push(query.on(&format!("DELETE {path}"))).body = body;
    }

    /// Creates, fills, finalizes or deletes a third namespace.
    pub(super) fn namespace_life(&mut self) {
        let name = "twin00-c";
        let path = format!("/api/v1/namespaces/{name}");
        match self.random.u32(..6) {
            0 | 1 => {
                self.push("POST /api/v1/namespaces").body =
                    Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
            }
            2 => {
                self.push(format!("DELETE {path}"));
            }
            3 => {
                let kind = self.kind();
                let object = self.body(&kind, "x");
                self.push(format!("POST {}", kind.collection(name))).body = Some(object);
            }
            4 => {
                let read = self.push(format!("GET {path}")).id;
                let op = self.push(format!("PUT {path}/finalize"));
                (op.base, op.body) = (Some(read), Some(json!({"spec": {"finalizers": []}})));
            }
            _ => {
                let patch = samples::any(&mut self.random, "namespace");
                let op = self.push(format!("PATCH {path}"));
                (op.body, op.media) = (Some(patch), Some(MERGE_PATCH.to_owned()));
            }
        }
    }
}
