//! Requests of every verb for every kind, with right and wrong media types for the body and the reply.

use serde_json::{Value, json};

use super::query::Query;
use super::{Episode, Known, pick, samples};
use crate::op::{self, APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, Op, STRATEGIC_PATCH, WATCH};

/// The media types of patches.
const PATCHES: [&str; 4] = [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH];

impl Episode {
    /// A request of any verb for an object, a subresource or a collection, with any media types.
    pub(super) fn any_form(&mut self) {
        let known = self.object();
        let verb = *pick(
            &mut self.random,
            &[
                "GET",
                "GET",
                "LIST",
                "LIST",
                "POST",
                "PUT",
                "PATCH",
                "PATCH",
                "DELETE",
                "DELETECOLLECTION",
                WATCH,
            ],
        );
        let accepted = (self.random.u32(..4) > 0).then(|| samples::text(&mut self.random, "accept"));
        let sent = (self.random.u32(..3) == 0).then(|| samples::text(&mut self.random, "content types"));
        let path = self.target(&known, verb);
        let is_plain = accepted.as_ref().is_none_or(String::is_empty);
        let mut op = self.in_form(&known, verb, path);
        if op.body.is_some() || self.random.u32(..20) == 0 {
            op.media = sent.or(op.media);
        }
        op.accept = accepted;
        if verb == WATCH {
            op.accept = op.accept.filter(|accept| !accept.contains("protobuf"));
        }
        let run = std::mem::take(&mut op.run);
        let added = self.push(run);
        let id = added.id;
        *added = Op { id, run: std::mem::take(&mut added.run), ..op };
        if verb == "PUT" && is_plain {
            self.saw(&known, id);
        }
    }

    /// Returns the path of a request: that of the object, of a subresource, or of the collection.
    fn target(&mut self, known: &Known, verb: &str) -> String {
        let is_of_collection = matches!(verb, "LIST" | "POST" | "DELETECOLLECTION" | WATCH);
        match (self.random.u32(..4), is_of_collection) {
            (0, false) => format!("{}/{}", known.path(), self.subresource(known)),
            (0, true) if verb == "POST" => format!("{}/{}", known.path(), self.subresource(known)),
            (_, false) => known.path(),
            (_, true) => known.kind.collection(known.namespace),
        }
    }

    fn subresource(&mut self, known: &Known) -> String {
        let random = &mut self.random;
        match random.u32(..4) {
            0 | 1 if !known.kind.status.is_empty() => "status".to_owned(),
            2 if known.kind.scale => "scale".to_owned(),
            _ => samples::text(random, "subresources"),
        }
    }

    /// Returns a request with a body that fits, in a media type that fits.
    fn in_form(&mut self, known: &Known, verb: &str, path: String) -> Op {
        let mut query = Query::default();
        let (method, body, media) = match verb {
            "POST" => ("POST", Some(self.body(&known.kind, &known.name)), None),
            "PUT" => {
                let op = Op { base: Some(known.seen), body: Some(self.change(&known.kind)), ..Op::default() };
                return Op { run: format!("PUT {path}"), ..op };
            }
            "PATCH" => {
                let media = *pick(&mut self.random, &PATCHES);
                ("PATCH", Some(self.patch_in(known, media, &mut query)), Some(media.to_owned()))
            }
            "DELETE" => ("DELETE", self.delete_options(&mut query, Some(known)), None),
            "DELETECOLLECTION" => {
                query.add("labelSelector", "run=twin00");
                // The other namespaces of a shared server are not the script's.
                let method = if known.kind.plural == "namespaces" { "OPTIONS" } else { "DELETE" };
                (method, self.delete_options(&mut query, None), None)
            }
            WATCH if self.watches >= super::WATCHES => ("GET", None, None),
            WATCH => {
                self.watches += 1;
                let version = self.some_version();
                query.add("resourceVersion", version);
                if !known.kind.namespaced {
                    query.add("labelSelector", "run=twin00");
                }
                (WATCH, None, None)
            }
            _ => {
                if !known.kind.namespaced {
                    query.add("labelSelector", "run=twin00");
                }
                ("GET", None, None)
            }
        };
        Op { run: query.on(&format!("{method} {path}")), body, media, ..Op::default() }
    }

    fn patch_in(&mut self, known: &Known, media: &str, query: &mut Query) -> Value {
        match media {
            JSON_PATCH => json!([{"op": "add", "path": "/metadata/labels/form", "value": "json"}]),
            APPLY_PATCH => {
                query.add("fieldManager", "form");
                let metadata =
                    json!({"name": known.name, "labels": {"form": "apply", "run": op::PLACEHOLDER}});
                json!({"apiVersion": known.kind.api_version(), "kind": known.kind.name, "metadata": metadata})
            }
            _ => self.change(&known.kind),
        }
    }

    /// Returns the media type of a body that a client sends with a verb.
    pub(super) fn usual_media(method: &str) -> Option<String> {
        (method == "PATCH").then(|| MERGE_PATCH.to_owned()).or_else(|| Some(JSON.to_owned()))
    }
}
