//! Requests that no client should send.

use serde_json::Value;

use super::{Episode, pick, samples};
use crate::op::{self, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

impl Episode {
    /// Requests that no client should send.
    pub(super) fn bad_request(&mut self) {
        let kind = self.kind();
        let (namespace, name) = (self.namespace(), self.name(&kind));
        let collection = kind.collection(namespace);
        let good = self.body(&kind, &name).to_string();
        let random = &mut self.random;
        let item = format!("{collection}/{name}");
        match random.u32(..16) {
            0..3 => {
                let text = samples::text(random, "bodies");
                self.push(format!("POST {collection}")).text = Some(text);
            }
            3 => {
                let text = samples::text(random, "bodies");
                self.push(format!("PUT {item}")).text = Some(text);
            }
            4 => {
                let text = samples::text(random, "bodies");
                let media = *pick(random, &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH]);
                let op = self.push(format!("PATCH {item}"));
                (op.text, op.media) = (Some(text), Some(media.to_owned()));
            }
            5 => {
                let media = samples::text(random, "media types");
                let op = self.push(format!("POST {collection}"));
                (op.text, op.media) = (Some(good), Some(media));
            }
            6 => {
                let media =
                    *pick(random, &[op::JSON, "text/plain", "application/merge-patch+json; charset=utf-8"]);
                let op = self.push(format!("PATCH {item}"));
                (op.text, op.media) = (Some("{}".to_owned()), Some(media.to_owned()));
            }
            7 => {
                // JSON is YAML.
                let op = self.push(format!("POST {collection}"));
                (op.text, op.media) = (Some(good), Some("application/yaml".to_owned()));
            }
            8 => {
                let twice = good.replacen('{', "{\"metadata\":{\"name\":\"other\"},\"kind\":\"Other\",", 1);
                let strict = *pick(random, &["", "?fieldValidation=Strict", "?fieldValidation=Warn"]);
                self.push(format!("POST {collection}{strict}")).text = Some(twice);
            }
            9 => {
                let run = match random.u32(..6) {
                    0 => format!("PUT {collection}"),
                    1 => format!("POST {item}"),
                    2 => format!("PATCH {collection}"),
                    3 => format!("POST {item}/status"),
                    4 => format!("DELETE {item}/status"),
                    _ => format!("GET {item}/nothing/more"),
                };
                self.push(run).text = Some("{}".to_owned());
            }
            10 => {
                let path = samples::text(random, "paths");
                self.push(format!("GET {path}"));
            }
            11 => {
                // Kind and version do not fit the path.
                let mut object: Value = serde_json::from_str(&good).unwrap_or_default();
                match random.u32(..4) {
                    0 => object["kind"] = "Other".into(),
                    1 => object["apiVersion"] = "v9".into(),
                    2 => object["kind"] = Value::Null,
                    _ => object["apiVersion"] = "a/b/c".into(),
                }
                self.push(format!("POST {collection}")).body = Some(object);
            }
            12 => {
                self.push(format!("POST /{}/{}", kind.prefix, kind.plural)).text = Some(good);
            }
            13 => {
                self.push(format!("POST /{}/namespaces/none/{}", kind.prefix, kind.plural)).text = Some(good);
            }
            14 => {
                self.push(format!("PUT {item}")).text = Some(good.replace("twin00", "twin00-other"));
            }
            _ => {
                self.push(format!("PUT {collection}/other")).text = Some(good);
            }
        }
    }
}
