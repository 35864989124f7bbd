//! Requests about admission webhooks.

use serde_json::{Value, json};

use super::{Episode, pick};
use crate::op::MERGE_PATCH;
use crate::webhook;

const GROUP: &str = "admissionregistration.k8s.io/v1";

impl Episode {
    /// Registers, changes or removes a webhook.
    pub(super) fn change_webhooks(&mut self) {
        if self.webhooks.is_empty() || (self.webhooks.len() < 2 && self.random.u32(..3) == 0) {
            self.register();
            return;
        }
        let index = self.random.usize(..self.webhooks.len());
        let path = self.webhooks[index].clone();
        if self.random.u32(..3) > 0 {
            self.push(format!("DELETE {path}"));
            self.webhooks.remove(index);
            return;
        }
        let is_mutating = path.contains("/mutating");
        let webhook = self.webhook(is_mutating);
        let op = self.push(format!("PATCH {path}"));
        op.media = Some(MERGE_PATCH.to_owned());
        op.body = Some(json!({"webhooks": [webhook]}));
    }

    pub(super) fn register(&mut self) {
        let is_mutating = self.random.bool();
        let (prefix, kind) =
            if is_mutating { ("mutating", "Mutating") } else { ("validating", "Validating") };
        let collection = format!("/apis/{GROUP}/{prefix}webhookconfigurations");
        let webhooks: Vec<Value> = (0..self.random.usize(1..3)).map(|_| self.webhook(is_mutating)).collect();
        let name = format!("twin00-{prefix}");
        let path = format!("{collection}/{name}");
        let op = self.push(format!("POST {collection}"));
        op.body = Some(json!({
            "apiVersion": GROUP, "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name, "labels": {"run": "twin00"}}, "webhooks": webhooks
        }));
        if !self.webhooks.contains(&path) {
            self.webhooks.push(path);
        }
    }

    /// Returns a webhook that is called only for objects in the namespaces of this run.
    fn webhook(&mut self, is_mutating: bool) -> Value {
        let rules: Vec<Value> = (0..self.random.usize(1..3)).map(|_| self.webhook_rule()).collect();
        let random = &mut self.random;
        let effects = ["/label", "/label", "/label", "/warn", "/no-patch"];
        let verdicts = ["/allow", "/warn", "/warn", "/deny", "/deny-x", "/deny-x"];
        let path = match random.u32(..8) {
            0 => "/error",
            1 => *pick(random, &["/garbage", "/error", "/label"]),
            _ if is_mutating => *pick(random, &effects),
            _ => *pick(random, &verdicts),
        };
        let mut webhook = json!({
            "name": format!("n{}.example.com", random.u32(..1000)),
            "clientConfig": {"url": format!("{}{path}", webhook::URL), "caBundle": webhook::AUTHORITY},
            "admissionReviewVersions": ["v1"],
            "sideEffects": pick(random, &["None", "None", "NoneOnDryRun"]),
            "namespaceSelector": {"matchLabels": {"run": "twin00"}},
            "rules": rules
        });
        if random.u32(..3) == 0 {
            webhook["failurePolicy"] = pick(random, &["Ignore", "Ignore", "Fail"]).to_owned().into();
        }
        if random.u32(..4) == 0 {
            webhook["objectSelector"] = json!({"matchLabels": {"a": "b"}});
        }
        if random.u32(..4) == 0 {
            webhook["matchPolicy"] = "Exact".into();
        }
        if is_mutating && random.u32(..3) == 0 {
            webhook["reinvocationPolicy"] = "IfNeeded".into();
        }
        webhook
    }

    pub(super) fn webhook_rule(&mut self) -> Value {
        let kind = self.kind();
        let random = &mut self.random;
        let version = kind.api_version();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let operations = match random.u32(..5) {
            0 => json!(["CREATE"]),
            1 => json!(["UPDATE"]),
            2 => json!(["DELETE"]),
            3 => json!(["CREATE", "UPDATE"]),
            _ => json!(["*"]),
        };
        let resource = match random.u32(..6) {
            0 => "*".to_owned(),
            1 => format!("{}/status", kind.plural),
            2 => format!("{}/*", kind.plural),
            _ => kind.plural.clone(),
        };
        // Objects outside of namespaces belong to all runs.
        json!({
            "operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": [resource],
            "scope": "Namespaced"
        })
    }
}
