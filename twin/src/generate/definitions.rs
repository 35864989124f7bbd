//! Requests about CustomResourceDefinitions.

use serde_json::json;

use super::crd::{self, Definition};
use super::{Episode, pick, values};
use crate::kind;
use crate::op::MERGE_PATCH;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Episode {
    /// Creates a definition and waits until the definition is served.
    pub(super) fn define(&mut self) {
        let plural = *pick(&mut self.random, &["widgets", "gadgets"]);
        if self.definitions.iter().any(|known| known.name.starts_with(plural)) {
            return;
        }
        let definition = crd::definition(&mut self.random, plural);
        self.push(format!("POST {DEFINITIONS}")).body = Some(definition.object.clone());
        self.serve(&definition);
        self.definitions.push(definition);
    }

    /// Waits until the kinds of a definition are served, and uses the kinds in later steps.
    pub(super) fn serve(&mut self, definition: &Definition) {
        let kinds = crd::kinds(&mut self.random, definition);
        self.kinds.retain(|kind| !kind.custom || !definition.name.starts_with(&format!("{}.", kind.plural)));
        for kind in kinds {
            self.push(format!("AWAIT {}?limit=1&labelSelector=none", kind.collection("")));
            self.kinds.push(kind);
        }
        let path = format!("{DEFINITIONS}/{}", definition.name);
        self.push(format!("GET {path}"));
    }

    pub(super) fn change_definitions(&mut self) {
        if self.definitions.is_empty() {
            if self.random.u32(..3) == 0 {
                self.bad_definition();
            }
            return;
        }
        let index = self.random.usize(..self.definitions.len());
        let old = self.definitions[index].clone();
        let path = format!("{DEFINITIONS}/{}", old.name);
        match self.random.u32(..6) {
            0..3 => {
                let new = crd::edit(&mut self.random, &old);
                let op = self.push(format!("PATCH {path}"));
                op.media = Some(MERGE_PATCH.to_owned());
                op.body = Some(json!({"spec": {"versions": new.object["spec"]["versions"]}}));
                self.serve(&new);
                self.definitions[index] = new;
            }
            3 => self.bad_definition(),
            4 => {
                let mut body = json!({"spec": old.object["spec"]});
                values::spoil(&mut self.random, &mut body);
                let op = self.push(format!("PATCH {path}?dryRun=All"));
                (op.media, op.body) = (Some(MERGE_PATCH.to_owned()), Some(body));
            }
            _ => {
                self.push(format!("DELETE {path}"));
                self.push(format!("GONE {path}"));
                self.objects.retain(|known| !known.kind.custom);
                self.kinds.retain(|kind| !kind.custom || !old.name.starts_with(&kind.plural));
                if self.kinds.is_empty() {
                    self.kinds = kind::builtin();
                }
                self.definitions.remove(index);
            }
        }
    }

    /// Creates an invalid definition.
    pub(super) fn bad_definition(&mut self) {
        let mut definition = crd::definition(&mut self.random, "doohickeys");
        for _ in 0..self.random.usize(1..3) {
            values::spoil(&mut self.random, &mut definition.object["spec"]);
        }
        self.push(format!("POST {DEFINITIONS}?dryRun=All")).body = Some(definition.object);
    }
}
