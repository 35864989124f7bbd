//! The requests of a trial, and the replies.

use std::fmt;

use http::{Request, header};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::client::Body;
use kube::core::request;
use kube::discovery::{self, Scope};
use serde_json::Value;
use windlass_runtime::Error as RuntimeError;

use super::{Operation, title};
use crate::error::{Advice, Result};

/// An object to try, and its place on the server.
pub(super) struct Target {
    object: Value,
    api: Api<DynamicObject>,
    resource: ApiResource,
    verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Update,
    Delete,
}

/// The reply to a request that stores nothing.
pub(super) enum Reply {
    /// The object as the server would store the object.
    Admitted {
        object: Value,
        warnings: Vec<String>,
    },
    Refused {
        code: u16,
        message: String,
        warnings: Vec<String>,
    },
}

impl Target {
    /// Finds the place of an object. An object that is there is updated.
    ///
    /// # Errors
    /// The server does not know the kind.
    pub(super) async fn find(client: &Client, object: &Value, operation: Operation) -> Result<Self> {
        let typed: DynamicObject =
            serde_json::from_value(object.clone()).map_err(|error| format!("{}: {error}", title(object)))?;
        let types = typed.types.ok_or("an object has no kind")?;
        let kind = GroupVersionKind::try_from(&types)?;
        let (resource, capabilities) = discovery::pinned_kind(client, &kind).await.map_err(|error| {
            Advice::new(
                format!("{}: the kind is not known: {error}", title(object)),
                "name a file with the CustomResourceDefinition of the kind",
            )
        })?;
        let api: Api<DynamicObject> = match (&typed.metadata.namespace, capabilities.scope) {
            (_, Scope::Cluster) => Api::all_with(client.clone(), &resource),
            (Some(namespace), _) => Api::namespaced_with(client.clone(), namespace, &resource),
            (None, _) => Api::default_namespaced_with(client.clone(), &resource),
        };
        let stored = match &typed.metadata.name {
            Some(name) => api.get_opt(name).await.map_err(RuntimeError::from)?,
            None => None,
        };
        let mut object = object.clone();
        let verb = match (operation, stored) {
            (Operation::Delete, _) => Verb::Delete,
            (Operation::Write, None) => Verb::Create,
            (Operation::Write, Some(stored)) => {
                // An update of a custom resource needs the version.
                object["metadata"]["resourceVersion"] = stored.metadata.resource_version.into();
                Verb::Update
            }
        };
        Ok(Self { object, api, resource, verb })
    }

    pub(super) fn group(&self) -> &str {
        &self.resource.group
    }

    pub(super) fn resource(&self) -> &str {
        &self.resource.plural
    }

    pub(super) fn verb(&self) -> &'static str {
        match self.verb {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
        }
    }

    /// Sends the request with `dryRun`.
    ///
    /// # Errors
    /// There is no reply.
    pub(super) async fn send(&self, client: &Client) -> Result<Reply> {
        let response = client.send(self.request()?).await.map_err(RuntimeError::from)?;
        let code = response.status();
        let warnings = response.headers().get_all(header::WARNING).iter();
        let warnings = warnings.filter_map(|value| warning(value.to_str().ok()?)).collect();
        let body = response.into_body().collect_bytes().await.map_err(RuntimeError::from)?;
        let object: Value = serde_json::from_slice(&body)?;
        if code.is_success() {
            return Ok(Reply::Admitted { object, warnings });
        }
        let message = object["message"].as_str().unwrap_or_default().to_owned();
        Ok(Reply::Refused { code: code.as_u16(), message, warnings })
    }

    fn request(&self) -> Result<Request<Body>> {
        let requests = request::Request::new(self.api.resource_url());
        let name = super::name(&self.object);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let body = || serde_json::to_vec(&self.object);
        let request = match self.verb {
            Verb::Create => requests.create(&dry, body()?)?,
            Verb::Update => requests.replace(name, &dry, body()?)?,
            Verb::Delete => requests.delete(name, &DeleteParams::default().dry_run())?,
        };
        Ok(request.map(Body::from))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&title(&self.object))
    }
}

impl Reply {
    /// Returns the code and the message of a refusal; empty for an object that is admitted.
    pub(super) fn refusal(&self) -> String {
        match self {
            Self::Admitted { .. } => String::new(),
            Self::Refused { code, message, .. } => format!("{code} {message}"),
        }
    }

    pub(super) fn warnings(&self) -> &[String] {
        let (Self::Admitted { warnings, .. } | Self::Refused { warnings, .. }) = self;
        warnings
    }
}

/// Returns the text of a header `Warning`: `299 - "text"`.
fn warning(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 - ")?;
    serde_json::from_str(quoted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_warning_is_unquoted() {
        assert_eq!(warning(r#"299 - "a \"b\" c""#).as_deref(), Some(r#"a "b" c"#));
        assert_eq!(warning("199 x"), None);
    }
}
