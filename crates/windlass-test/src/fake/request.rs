//! Requests to the fake API server.

use std::{borrow::Cow, collections::BTreeMap};

use http::{Method, header, request::Parts};
use serde_json::Value;
use windlass_runtime::ObjectKey;

use super::{
    owners::Manager,
    status::{StatusResult, bad_request, method_not_allowed, no_such_resource},
    write::Verb,
};
use windlass_runtime::detached::{GroupResource, ResourcePath, query_flag};

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchFormat {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// A request for a resource.
#[derive(Debug)]
pub(super) struct ApiRequest {
    pub(super) verb: Verb,
    pub(super) resource: GroupResource,
    pub(super) namespace: Option<String>,
    /// The name in the path; a request for a collection has none.
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    /// The format of the body of a PATCH.
    pub(super) patch: Option<PatchFormat>,
    pub(super) dry_run: bool,
    pub(super) manager: Manager,
    query: BTreeMap<String, String>,
    /// Null if there is none.
    pub(super) body: Value,
}

impl ApiRequest {
    pub(super) fn parse(parts: &Parts, body: &[u8]) -> StatusResult<Self> {
        let path = ResourcePath::parse(parts.uri.path()).ok_or_else(no_such_resource)?;
        let query_text = parts.uri.query();
        if query_flag(query_text, "watch") {
            return Err(method_not_allowed(
                "the fake API server serves no watches; its contexts see every change at once",
            ));
        }
        let patch = if parts.method == Method::PATCH { Some(patch_format(parts)?) } else { None };
        let verb = match (&parts.method, path.name.is_some(), path.subresource) {
            (&Method::GET, true, _) => Verb::Get,
            (&Method::GET, false, _) => Verb::List,
            (&Method::POST, false, _) | (&Method::POST, true, Some(_)) => Verb::Create,
            (&Method::PUT, true, _) => Verb::Update,
            (&Method::PATCH, true, _) if patch == Some(PatchFormat::Apply) => Verb::Apply,
            (&Method::PATCH, true, _) => Verb::Patch,
            (&Method::DELETE, true, _) => Verb::Delete,
            (&Method::DELETE, false, _) => Verb::DeleteCollection,
            _ => {
                return Err(method_not_allowed(
                    "the server does not allow this method on the requested resource",
                ));
            }
        };
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body)
                .map_err(|error| bad_request(format!("the body of the request is not JSON: {error}")))?
        };
        let query: BTreeMap<String, String> =
            form_urlencoded::parse(query_text.unwrap_or_default().as_bytes())
                .map(|(key, value)| (key.into_owned(), value.into_owned()))
                .collect();
        let is_delete = matches!(verb, Verb::Delete | Verb::DeleteCollection);
        let dry_run = query.contains_key("dryRun")
            || (is_delete && body["dryRun"].as_array().is_some_and(|stages| !stages.is_empty()));
        let manager = Manager {
            name: query.get("fieldManager").cloned().unwrap_or_default(),
            subresource: path.subresource.map(str::to_owned),
            applies: verb == Verb::Apply,
        };
        Ok(Self {
            verb,
            manager,
            resource: path.group_resource().into(),
            namespace: path.namespace.map(Cow::into_owned),
            name: path.name.map(Cow::into_owned),
            subresource: path.subresource.map(str::to_owned),
            patch,
            dry_run,
            query,
            body,
        })
    }

    pub(super) fn parameter(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }

    /// Returns whether an apply takes over the fields of other managers.
    pub(super) fn is_forced(&self) -> bool {
        self.parameter("force") == Some("true")
    }

    /// Returns the name in the path or, for a create, in the object.
    pub(super) fn object_name(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| self.body.pointer("/metadata/name").and_then(Value::as_str))
    }

    /// Returns the key of the object in the path. The name is empty for a collection.
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), self.name.as_deref().unwrap_or_default())
    }
}

fn patch_format(parts: &Parts) -> StatusResult<PatchFormat> {
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    Ok(match media_type {
        "application/json-patch+json" => PatchFormat::Json,
        "application/merge-patch+json" => PatchFormat::Merge,
        "application/strategic-merge-patch+json" => PatchFormat::Strategic,
        "application/apply-patch+yaml" => PatchFormat::Apply,
        other => return Err(super::status::unsupported_media_type(other)),
    })
}
