//! The paths of a document, with operations.

use serde_json::{Map, Value, json};

use super::{Document, META, discovery, object};
use crate::catalog::{Gvk, Resource};

/// The name and type of a query parameter.
type Query = (&'static str, &'static str);

const WRITE: [Query; 3] = [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const FORCE: Query = ("force", "boolean");
const DELETE: [Query; 5] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const SELECT: [Query; 9] = [
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
];
const WATCH: [Query; 2] = [("allowWatchBookmarks", "boolean"), ("watch", "boolean")];

/// Writes all paths of the group-version.
pub(super) fn write(document: &mut Document<'_>) -> Map<String, Value> {
    let gv = document.group_version;
    let base = match &*gv.group {
        "" => format!("/api/{}", gv.version),
        group => format!("/apis/{group}/{}", gv.version),
    };
    let mut out = Map::new();
    if document.custom.is_empty() {
        discovery::add_resources(document, &base, &mut out);
    }
    for resource in &gv.resources {
        let custom = document.custom.iter().any(|kind| kind.plural == &*resource.name);
        Writer { document, resource, custom, out: &mut out }.resource(&base);
    }
    out
}

struct Writer<'w, 'd> {
    document: &'w mut Document<'d>,
    resource: &'w Resource,
    custom: bool,
    out: &'w mut Map<String, Value>,
}

impl Writer<'_, '_> {
    fn resource(&mut self, base: &str) {
        let plural = &self.resource.name;
        let scope = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{base}{scope}/{plural}");
        let kind = self.resource.kind.clone();
        let listed = self.list_definition(&kind).unwrap_or_default();
        let definition = self.document.definition(&kind.group, &kind.version, &kind.kind).unwrap_or_default();
        let mut operations = Map::new();
        for verb in &self.resource.verbs {
            let operation = match &**verb {
                "list" => self.operation("get", "list", &kind, "", &listed),
                "create" => self.operation("post", "post", &kind, "", &definition),
                "deletecollection" => self.operation("delete", "deletecollection", &kind, "", "Status"),
                _ => continue,
            };
            operations.insert(operation.0.to_owned(), operation.1);
        }
        if self.resource.namespaced && operations.contains_key("get") {
            let mut list = operations["get"].clone();
            let gv = self.document.group_version;
            let (group, version) = (group_words(&gv.group).concat(), capital(&gv.version));
            list["operationId"] = format!("list{group}{version}{}ForAllNamespaces", kind.kind).into();
            let all = object([("get", list), ("parameters", path_parameters(&format!("{base}/{plural}")))]);
            self.out.insert(format!("{base}/{plural}"), all.into());
        }
        self.insert(&collection, operations);
        let item = format!("{collection}/{{name}}");
        self.item(&item, &self.resource.verbs.clone(), &kind, "", &definition);
        for subresource in &self.resource.subresources {
            let kind = &subresource.kind;
            let definition = self.document.definition(&kind.group, &kind.version, &kind.kind);
            let definition = definition.unwrap_or_default();
            let path = format!("{item}/{}", subresource.name);
            self.item(&path, &subresource.verbs, kind, &subresource.name, &definition);
            if subresource.verbs.iter().any(|verb| &**verb == "create") {
                let (method, operation) =
                    self.operation("post", "post", kind, &subresource.name, &definition);
                let parameters = path_parameters(&path);
                let entry = self.out.entry(path).or_insert_with(|| json!({"parameters": parameters}));
                entry[method] = operation;
            }
        }
    }

    fn item(&mut self, path: &str, verbs: &[Box<str>], kind: &Gvk, subresource: &str, definition: &str) {
        let mut operations = Map::new();
        for verb in verbs {
            let operation = match &**verb {
                "get" => self.operation("get", "get", kind, subresource, definition),
                "update" => self.operation("put", "put", kind, subresource, definition),
                "patch" => self.operation("patch", "patch", kind, subresource, definition),
                "delete" if subresource.is_empty() => {
                    self.operation("delete", "delete", kind, subresource, "Status")
                }
                _ => continue,
            };
            operations.insert(operation.0.to_owned(), operation.1);
        }
        self.insert(path, operations);
    }

    fn insert(&mut self, path: &str, mut operations: Map<String, Value>) {
        if !operations.is_empty() {
            operations.insert("parameters".to_owned(), path_parameters(path));
            self.out.insert(path.to_owned(), operations.into());
        }
    }

    fn list_definition(&self, kind: &Gvk) -> Option<String> {
        let custom = self.document.custom.iter().find(|custom| custom.kind == &*kind.kind);
        let list = custom.map_or_else(|| format!("{}List", kind.kind), |custom| custom.list_kind.to_owned());
        self.document.definition(&kind.group, &kind.version, &list)
    }

    fn operation(
        &mut self,
        method: &'static str,
        action: &str,
        kind: &Gvk,
        subresource: &str,
        definition: &str,
    ) -> (&'static str, Value) {
        let status = format!("{META}.Status");
        let definition = if definition == "Status" { &status } else { definition };
        let schema = if definition.is_empty() {
            json!({"type": "string"})
        } else {
            self.document.reference(definition)
        };
        // `exec`, `proxy` and similar subresources open a connection and have no object.
        let connects = !subresource.is_empty() && kind.kind.ends_with("Options");
        let action = if connects { "connect" } else { action };
        let mut queries: Vec<Query> = match action {
            "list" => [&WATCH[..], &SELECT].concat(),
            "post" | "put" => WRITE.to_vec(),
            "patch" => [&WRITE[..], &[FORCE]].concat(),
            "delete" => DELETE.to_vec(),
            "deletecollection" => [&SELECT[..], &DELETE].concat(),
            _ => Vec::new(),
        };
        queries.sort_unstable();
        let mut operation = object([
            ("tags", json!([self.tag()])),
            ("operationId", self.operation_id(method, action, subresource).into()),
            ("responses", responses(method, action, &schema)),
            ("x-kubernetes-action", action.into()),
            (
                "x-kubernetes-group-version-kind",
                json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
            ),
        ]);
        if !queries.is_empty() {
            operation.insert("parameters".to_owned(), queries.into_iter().map(query).collect());
        }
        if let Some(body) = self.body(method, &schema) {
            operation.insert("requestBody".to_owned(), body);
        }
        (method, operation.into())
    }

    fn body(&mut self, method: &str, schema: &Value) -> Option<Value> {
        let content = |types: &[&str], schema: &Value| -> Map<String, Value> {
            types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect()
        };
        match method {
            "post" | "put" => Some(json!({"content": content(&["*/*"], schema), "required": true})),
            "patch" => {
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if !self.custom {
                    types.push("application/strategic-merge-patch+json");
                }
                let patch = self.document.reference(&format!("{META}.Patch"));
                Some(json!({"content": content(&types, &patch), "required": true}))
            }
            "delete" => {
                let options = self.document.reference(&format!("{META}.DeleteOptions"));
                Some(json!({"content": content(&["*/*"], &options)}))
            }
            _ => None,
        }
    }

    /// Returns the tag, such as `coordination_v1`.
    fn tag(&self) -> String {
        let gv = self.document.group_version;
        format!("{}_{}", tag(&gv.group), gv.version)
    }

    /// Returns the operation id, such as `readCoordinationV1NamespacedLease`.
    fn operation_id(&self, method: &str, action: &str, subresource: &str) -> String {
        let verb = match action {
            "get" => "read",
            "post" => "create",
            "put" => "replace",
            "deletecollection" => "delete",
            other => other,
        };
        let gv = self.document.group_version;
        let collection = match action {
            "deletecollection" => "Collection".to_owned(),
            "connect" => capital(method),
            _ => String::new(),
        };
        let scope = if self.resource.namespaced { "Namespaced" } else { "" };
        let kind = &self.resource.kind.kind;
        let (group, version) = (group_words(&gv.group).concat(), capital(&gv.version));
        format!("{verb}{group}{version}{collection}{scope}{kind}{}", capital(subresource))
    }
}

fn responses(method: &str, action: &str, schema: &Value) -> Value {
    let mut types = vec!["application/json", "application/yaml"];
    if action == "list" {
        types.push("application/json;stream=watch");
    }
    let content: Map<_, _> =
        types.into_iter().map(|name| (name.to_owned(), json!({"schema": schema}))).collect();
    let codes: &[(&str, &str)] = match (method, action) {
        ("post", _) => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
        ("put" | "patch", _) => &[("200", "OK"), ("201", "Created")],
        ("delete", "delete") => &[("200", "OK"), ("202", "Accepted")],
        _ => &[("200", "OK")],
    };
    let mut out: Map<_, _> = codes
        .iter()
        .map(|(code, text)| ((*code).to_owned(), json!({"description": text, "content": content})))
        .collect();
    out.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    out.into()
}

/// Returns the tag of a group, such as `flowcontrolApiserver`.
pub(super) fn tag(group: &str) -> String {
    let words = group_words(group).concat();
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

pub(super) fn group_words(group: &str) -> Vec<String> {
    match group {
        "" => vec!["Core".to_owned()],
        group => group.trim_end_matches(".k8s.io").split(['.', '-']).map(capital).collect(),
    }
}

pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn query((name, kind): Query) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

/// Returns the parameters in a path, and `pretty`.
fn path_parameters(path: &str) -> Value {
    let mut out = Vec::new();
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            out.push(json!({
                "name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true},
            }));
        }
    }
    out.push(query(("pretty", "string")));
    out.into()
}
