//! A webhook that allows every request after a random wait.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;
use crate::https::HttpsServer;

/// The longest wait, in milliseconds.
const MAX_WAIT: u64 = 20;

/// A webhook. Dropping the value stops the server of the webhook.
pub(crate) struct Webhook(HttpsServer);

impl Webhook {
    /// Starts the server on a free port.
    ///
    /// # Errors
    /// No port is free, or no certificate can be made.
    pub(crate) async fn start() -> Result<Self> {
        let answer = |_path, review: Value| async move {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(..MAX_WAIT))).await;
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let reply =
                json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
            (200, reply.to_string().into())
        };
        Ok(Self(HttpsServer::start(answer).await?))
    }

    /// Returns the configuration that calls the webhook for the ConfigMaps of a namespace.
    pub(crate) fn configuration(&self, namespace: &str) -> Value {
        configuration(&self.0, "/", namespace, namespace)
    }
}

/// Returns a configuration that calls a path of `server` for the writes of ConfigMaps in a namespace.
pub(crate) fn configuration(server: &HttpsServer, path: &str, name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "wait.siege.test",
            "clientConfig": {"url": format!("{}{path}", server.url), "caBundle": server.authority},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30
        }]
    })
}
