//! The requests of a client, in RBAC's terms.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use windlass_runtime::BoxError;
use windlass_runtime::permission::{Access, Forbidden, Verb};

/// Records the used and the denied accesses of a client.
#[derive(Default)]
pub(crate) struct RequestLog {
    used: Mutex<BTreeSet<Access>>,
    denied: Mutex<Vec<Forbidden>>,
}

impl RequestLog {
    /// Wraps a client, and records the client's requests in `log`.
    pub(super) fn record(log: &Arc<Self>, client: Client) -> Client {
        let (log, namespace) = (Arc::clone(log), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (log, client) = (Arc::clone(&log), client.clone());
            async move { log.send(&client, request).await }
        });
        Client::new(service, namespace)
    }

    pub(super) fn used(&self) -> BTreeSet<Access> {
        self.used.lock().clone()
    }

    /// Returns the denied rights, each with the declaration that would grant the right.
    pub(crate) fn missing(&self) -> Vec<String> {
        let denied = self.denied.lock();
        let line = |denial: &Forbidden| format!("{}: add .needs({})", denial.access(), denial.declaration());
        denied.iter().map(line).collect()
    }

    async fn send(&self, client: &Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let access = Access::of(request.method(), request.uri());
        let response = client.send(request).await?;
        let Some(access) = access else { return Ok(response) };
        if response.status() != StatusCode::FORBIDDEN {
            // An apply or an update that makes an object needs the right to create it, too.
            if response.status() == StatusCode::CREATED && access.verb() != Verb::Create {
                self.used.lock().insert(access.clone().with_verb(Verb::Create));
            }
            self.used.lock().insert(access);
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        match Forbidden::find(&message(&body)) {
            Some(denial) => self.add_denial(denial),
            // An admission plugin refuses what RBAC permits.
            None => drop(self.used.lock().insert(access)),
        }
        Ok(Response::from_parts(parts, Body::from(body)))
    }

    fn add_denial(&self, denial: Forbidden) {
        let mut denied = self.denied.lock();
        let declaration = denial.declaration();
        if denied.iter().all(|known| known.declaration() != declaration) {
            denied.push(denial);
        }
    }
}

/// Returns the message of a `Status`.
fn message(body: &[u8]) -> String {
    let status: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    status["message"].as_str().unwrap_or_default().to_owned()
}
