//! The documents about discovery itself: versions, groups, and the keys of tokens.

use serde_json::{Map, Value, json};

use super::{Document, META, assemble, object, paths};
use crate::catalog::{Catalog, GroupVersion};

const OPENID: &str = ".well-known/openid-configuration";
const KEYS: &str = "openid/v1/jwks";
const JSON: &[&str] = &["application/json"];
const JSON_OR_YAML: &[&str] = &["application/json", "application/yaml"];

/// The only operation of a document about discovery.
struct Operation {
    tag: String,
    id: String,
    /// The definition of the reply. `None` for a reply of text.
    reply: Option<String>,
    media_types: &'static [&'static str],
}

/// Returns the names of the documents that [`openapi_v3_discovery`] writes, such as `api`, `apis/apps` or `version`.
pub fn discovery_names(catalog: &Catalog) -> Vec<String> {
    let mut names: Vec<String> =
        [OPENID, "api", "apis", KEYS, "version"].into_iter().map(str::to_owned).collect();
    let groups = catalog.group_versions().iter().filter(|gv| !gv.group.is_empty());
    names.extend(groups.map(|gv| format!("apis/{}", gv.group)));
    names.dedup();
    names
}

/// Returns the OpenAPI v3 document of a path of discovery. `name` is one of the [`discovery_names`].
pub fn openapi_v3_discovery(catalog: &Catalog, name: &str) -> Value {
    let core = GroupVersion { group: "".into(), version: "v1".into(), resources: Vec::new() };
    let mut document =
        Document { catalog, group_version: &core, custom: &[], wanted: std::collections::BTreeSet::new() };
    let operation = operation(&mut document, Operation::of(name));
    let paths = object([(&*format!("/{name}/"), json!({"get": operation}))]);
    let schemas = super::components::write(&mut document);
    assemble(catalog, false, paths, schemas)
}

/// Adds the operation that lists the resources of a group version.
pub(super) fn add_resources(document: &mut Document<'_>, base: &str, paths: &mut Map<String, Value>) {
    let gv = document.group_version;
    let tag = format!("{}_{}", paths::tag(&gv.group), gv.version);
    let id =
        format!("get{}{}APIResources", paths::group_words(&gv.group).concat(), paths::capital(&gv.version));
    let described =
        Operation { tag, id, reply: Some(format!("{META}.APIResourceList")), media_types: JSON_OR_YAML };
    let operation = operation(document, described);
    paths.insert(format!("{base}/"), json!({"get": operation}));
}

impl Operation {
    fn of(name: &str) -> Self {
        let text = |tag: &str, id: &str, media_types| Self {
            tag: tag.to_owned(),
            id: id.to_owned(),
            reply: None,
            media_types,
        };
        let meta = |tag: String, id: String, kind: &str| Self {
            tag,
            id,
            reply: Some(format!("{META}.{kind}")),
            media_types: JSON_OR_YAML,
        };
        match name {
            OPENID => text("WellKnown", "getServiceAccountIssuerOpenIDConfiguration", JSON),
            KEYS => text("openid", "getServiceAccountIssuerOpenIDKeyset", &["application/jwk-set+json"]),
            "version" => Self {
                reply: Some("io.k8s.apimachinery.pkg.version.Info".to_owned()),
                ..text("version", "getCodeVersion", JSON)
            },
            "api" => meta("core".to_owned(), "getCoreAPIVersions".to_owned(), "APIVersions"),
            "apis" => meta("apis".to_owned(), "getAPIVersions".to_owned(), "APIGroupList"),
            name => {
                let group = name.trim_start_matches("apis/");
                let id = format!("get{}APIGroup", paths::group_words(group).concat());
                meta(paths::tag(group), id, "APIGroup")
            }
        }
    }
}

fn operation(document: &mut Document<'_>, described: Operation) -> Value {
    let schema = match &described.reply {
        Some(definition) => document.reference(definition),
        None => json!({"type": "string"}),
    };
    let content: Map<_, _> =
        described.media_types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect();
    json!({
        "tags": [described.tag],
        "operationId": described.id,
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
    })
}
