//! A server and few words to talk to it.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service;
use windlass_apiserver::{Body, Identity, InProcess, Server};

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Client {
    service: InProcess,
}

pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn version(&self) -> String {
        self.body["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    }

    /// Fails the test unless the code is the one expected.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}", self.text);
        self
    }
}

pub(crate) fn client() -> Client {
    Client::of(&Server::builder().seed(1).build().unwrap(), Identity::admin())
}

impl Client {
    pub(crate) fn of(server: &Server, identity: Identity) -> Self {
        Self { service: server.service(identity) }
    }

    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let reply = tokio::time::timeout(PATIENCE, self.service.clone().call(request)).await;
        reply.expect("no reply in time").unwrap()
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let (head, body) = self.open(method, path, headers, body).await.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect()).await.expect("no end in time").unwrap();
        let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Reply { code: head.status.as_u16(), headers: head.headers, body, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, &[("content-type", JSON)], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, &[("content-type", JSON)], body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> Reply {
        self.send(Method::PATCH, path, &[("content-type", kind)], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.open(Method::GET, path, &[], "").await;
        assert_eq!(response.status(), 200);
        Watch { body: response.into_body(), buffer: String::new() }
    }
}

/// A watch, event by event.
pub(crate) struct Watch {
    body: Body,
    buffer: String,
}

impl Watch {
    /// The next event, `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.buffer.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.buffer = rest.to_owned();
                return Some(event);
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("no event in time")?;
            let data = frame.unwrap().into_data().unwrap();
            self.buffer.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The next event as its type and the name of its object.
    pub(crate) async fn event(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch ended");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
