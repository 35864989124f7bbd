//! Requests to both servers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::{Value, json};

use super::Result;
use super::definition::{Definition, OWNER};
use super::tally::Tally;
use crate::normalise::sort_causes;
use crate::outcome::Outcome;
use crate::server::Backend;

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "windlass-corpus";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The time that the real server may take to serve or to remove a CRD.
const DEADLINE: Duration = Duration::from_secs(60);

/// The two servers.
pub(super) struct Exchange {
    embedded: Client,
    real: Client,
}

/// The replies of both servers.
pub(super) struct Replies {
    pub(super) embedded: Outcome,
    pub(super) real: Outcome,
    /// The resource versions in the replies.
    pub(super) versions: [Value; 2],
}

impl Replies {
    /// Returns whether both servers have accepted the request.
    pub(super) fn are_accepted(&self) -> bool {
        [&self.embedded, &self.real].iter().all(|reply| (200..300).contains(&reply.code))
    }
}

impl Exchange {
    pub(super) async fn open(real: &Backend) -> Result<Self> {
        let exchange =
            Self { embedded: Backend::Embedded.open().await?.client, real: real.open().await?.client };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let replies = exchange.same("POST", "/api/v1/namespaces", &namespace).await;
        match (replies.embedded.code, replies.real.code) {
            (201, 201 | 409) => Ok(exchange),
            codes => Err(format!("cannot create the namespace {NAMESPACE}: {codes:?}").into()),
        }
    }

    /// Sends a request with the same body to both servers.
    pub(super) async fn same(&self, method: &str, path: &str, body: &Value) -> Replies {
        self.send(method, path, [body, body]).await
    }

    /// Sends a request to both servers.
    pub(super) async fn send(&self, method: &str, path: &str, [ours, theirs]: [&Value; 2]) -> Replies {
        let embedded = request(&self.embedded, method, path, ours);
        let real = request(&self.real, method, path, theirs);
        let (mut embedded, mut real) = tokio::join!(embedded, real);
        let versions = [&embedded, &real].map(|reply| reply.body["metadata"]["resourceVersion"].clone());
        normalise(&mut embedded.body);
        normalise(&mut real.body);
        Replies { embedded, real, versions }
    }

    /// Creates a CRD on both servers, and waits until both servers serve the objects. Returns false if a server refuses
    /// the CRD.
    pub(super) async fn create_definition(&self, definition: &Definition, tally: &mut Tally) -> Result<bool> {
        self.remove_leftover(definition).await?;
        let mut replies = self.same("POST", DEFINITIONS, &definition.json).await;
        for reply in [&mut replies.embedded, &mut replies.real] {
            if reply.code == 201
                && let Value::Object(fields) = &mut reply.body
            {
                // The embedded server serves the kind with the reply, the real server later.
                fields.remove("status");
            }
        }
        let is_created = replies.are_accepted();
        tally.definition(definition, &replies);
        if is_created {
            for version in &definition.versions {
                self.wait(&definition.path(version), 200).await?;
            }
        }
        Ok(is_created)
    }

    /// Deletes a CRD that an earlier run has left on the real server.
    async fn remove_leftover(&self, definition: &Definition) -> Result {
        let path = format!("{DEFINITIONS}/{}", definition.name);
        let found = request(&self.real, "GET", &path, &Value::Null).await;
        if found.code != 200 {
            return Ok(());
        }
        if found.body["metadata"]["annotations"].get(OWNER).is_none() {
            return Err(
                format!("the CRD {} exists on the real server: delete the CRD", definition.name).into()
            );
        }
        request(&self.real, "DELETE", &path, &Value::Null).await;
        self.wait(&path, 404).await
    }

    /// Deletes a CRD on both servers, and waits until the CRD is gone.
    pub(super) async fn delete_definition(&self, definition: &Definition) -> Result {
        let path = format!("{DEFINITIONS}/{}", definition.name);
        self.same("DELETE", &path, &Value::Null).await;
        self.wait(&path, 404).await
    }

    /// Waits until both servers answer a GET with a status code.
    async fn wait(&self, path: &str, code: u16) -> Result {
        let start = Instant::now();
        loop {
            let replies = self.same("GET", path, &Value::Null).await;
            if replies.embedded.code == code && replies.real.code == code {
                return Ok(());
            }
            if start.elapsed() > DEADLINE {
                let codes = [replies.embedded.code, replies.real.code];
                return Err(format!("GET {path}: {codes:?} instead of {code} for {DEADLINE:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}

async fn request(client: &Client, method: &str, path: &str, body: &Value) -> Outcome {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let failed = |error: &dyn std::fmt::Display| Outcome {
        body: format!("no reply: {error}").into(),
        ..Outcome::default()
    };
    let request = match request.body(Body::from(bytes)) {
        Ok(request) => request,
        Err(error) => return failed(&error),
    };
    let reply = match client.send(request).await {
        Ok(reply) => reply,
        Err(error) => return failed(&error),
    };
    let code = reply.status().as_u16();
    let warnings = reply.headers().get_all("warning").iter();
    let warnings: Vec<String> =
        warnings.map(|warning| String::from_utf8_lossy(warning.as_bytes()).into_owned()).collect();
    let mut headers = BTreeMap::new();
    if !warnings.is_empty() {
        headers.insert("warning".to_owned(), warnings);
    }
    match reply.into_body().collect().await {
        Ok(body) => {
            let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
            Outcome { code, headers, body, ..Outcome::default() }
        }
        Err(error) => failed(&error),
    }
}

/// Removes the fields that differ for each write, and sorts the causes of a failure.
fn normalise(body: &mut Value) {
    if body["kind"] == "Status" {
        sort_causes(body);
    }
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        metadata.remove(field);
    }
    let Some(managers) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) else { return };
    for entry in managers.iter_mut().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    // The order of managers depends on the second of each write.
    managers.sort_by_key(Value::to_string);
}
