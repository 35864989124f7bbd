//! Kinds that the server stores and validates, and of which no test of another subject speaks.

mod addresses;
mod api_services;
mod device_classes;
mod migrations;
mod nodes;
mod pod_certificates;
mod priority_levels;
mod resource_claims;
mod resource_slices;
mod runtime_classes;
mod storage;
mod taint_rules;
mod trust_bundles;

use expect_test::Expect;
use regex::Regex;
use serde_json::{Value, json};

use crate::harness::{Api, MERGE_PATCH, Reply, plain};

/// The objects of a collection, and the replies to the requests of a test.
struct Objects<'a> {
    api: &'a Api,
    collection: String,
    seen: String,
}

impl<'a> Objects<'a> {
    fn new(api: &'a Api, collection: impl Into<String>) -> Self {
        Objects { api, collection: collection.into(), seen: String::new() }
    }

    async fn create(&mut self, what: &str, object: Value) {
        if let Some(name) = object["metadata"]["name"].as_str() {
            self.api.discard(format!("{}/{name}", self.collection));
        }
        let reply = self.api.post(&self.collection, object).await;
        self.note(what, &reply);
    }

    /// Notes the reply to a dry run of a creation.
    async fn try_create(&mut self, what: &str, object: Value) {
        let reply = self.api.post(&format!("{}?dryRun=All", self.collection), object).await;
        self.note(what, &reply);
    }

    /// Changes an object by a merge patch. `name` may have a subresource: `a/status`.
    async fn change(&mut self, what: &str, name: &str, patch: Value) {
        let reply = self.api.patch(&format!("{}/{name}", self.collection), MERGE_PATCH, patch).await;
        self.note(what, &reply);
    }

    /// Notes the cells of an object in a table, without the age.
    async fn row(&mut self, name: &str) {
        let path = format!("{}/{name}", self.collection);
        let table = self.api.request(http::Method::GET, &path);
        let table = table.accept("application/json;as=Table;v=v1;g=meta.k8s.io").send().await.is(200).json();
        let columns = table["columnDefinitions"].as_array().unwrap();
        let cells = columns.iter().zip(table["rows"][0]["cells"].as_array().unwrap());
        let cells: Vec<String> = cells
            .filter(|(column, _)| column["name"] != "Age")
            .map(|(column, cell)| format!("{}={cell}", column["name"].as_str().unwrap()))
            .collect();
        self.seen += &plain(&format!("row: {}\n", cells.join(" ")), &self.api.id);
    }

    /// Notes a failure, or the parts of an object other than the metadata.
    fn note(&mut self, what: &str, reply: &Reply) {
        let text = if (200..300).contains(&reply.code) {
            let mut object = reply.json();
            let fields = object.as_object_mut().unwrap();
            for name in ["kind", "apiVersion", "metadata"] {
                fields.remove(name);
            }
            plain(&format!("{} {object}", reply.code), &self.api.id)
        } else {
            // The real server quotes the types of Go.
            let objects = Regex::new(r#"Invalid value: (\[\{.*\}\]|\{.*\}): "#).unwrap();
            objects.replace_all(&reply.to_string(), "Invalid value: (the object): ").into_owned()
        };
        self.seen.extend([what, ": ", &text, "\n"]);
    }

    #[track_caller]
    fn are(&self, expected: Expect) {
        expected.assert_eq(&self.seen);
    }
}

/// An object with the name and these fields.
fn named(name: impl Into<String>, fields: Value) -> Value {
    let mut object = fields;
    object["metadata"] = json!({"name": name.into()});
    object
}
