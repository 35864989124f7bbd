//! Admission policies: the validation of policies and bindings, and the effect on requests.

mod conditions;
mod mutating;
mod validating;
mod written;

use serde_json::{Value, json};

use crate::harness::{Api, Reply, deadline};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Creates policies and bindings for the namespace of a test.
struct Policies<'a> {
    api: &'a Api,
    /// `validating` or `mutating`.
    kind: &'static str,
    namespace: String,
}

impl<'a> Policies<'a> {
    async fn new(api: &'a Api, kind: &'static str) -> Self {
        Policies { api, kind, namespace: api.namespace().await }
    }

    fn config_maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Creates a policy and a binding of the same name, and waits until both are effective. The policy sees new and changed
    /// ConfigMaps of the namespace, unless `spec` says otherwise.
    async fn add(&self, name: &str, spec: Value, binding: Value) {
        self.create(name, spec, binding).await;
        self.wait().await;
    }

    async fn create(&self, name: &str, spec: Value, binding: Value) {
        if self.api.is_shared() && spec["paramKind"]["apiVersion"] == "v1" {
            self.keep_params(&spec["paramKind"]).await;
        }
        let name = format!("{name}-{}", self.api.id);
        let rules = json!([{
            "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]
        }]);
        let selector = json!({"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]});
        let constraints = json!({"resourceRules": rules, "objectSelector": selector});
        let mut policy = json!({"metadata": {"name": name}, "spec": {"matchConstraints": constraints}});
        if self.kind == "mutating" {
            policy["spec"]["reinvocationPolicy"] = json!("Never");
        }
        merge(&mut policy["spec"], spec);
        policy["spec"]["matchConstraints"]["namespaceSelector"] =
            json!({"matchLabels": {"kubernetes.io/metadata.name": self.namespace}});
        let mut bound = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        if self.kind == "validating" {
            bound["spec"]["validationActions"] = json!(["Deny"]);
        }
        merge(&mut bound["spec"], binding);
        for (plural, object) in [("policies", policy), ("policybindings", bound)] {
            let path = format!("{GROUP}/{}admission{plural}", self.kind);
            self.api.post(&path, object).await.is(201);
            self.api.discard(format!("{path}/{name}"));
        }
    }

    /// Creates a policy without effect that stays. Once no policy uses a kind of parameters, kube-apiserver stops the watch of that
    /// kind, and later policies see old parameters.
    async fn keep_params(&self, kind: &Value) {
        let name = format!("keeps-{}", kind["kind"].as_str().unwrap().to_lowercase());
        let rules = json!([{"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["v1"], "resources": ["none"]}]);
        let spec = json!({
            "paramKind": kind, "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]
        });
        let reference = json!({"name": "none", "parameterNotFoundAction": "Allow"});
        let bound = json!({"policyName": name, "validationActions": ["Deny"], "paramRef": reference});
        for (plural, spec) in [("policies", spec), ("policybindings", bound)] {
            let path = format!("{GROUP}/validatingadmission{plural}");
            let created = self.api.post(&path, json!({"metadata": {"name": name}, "spec": spec})).await;
            assert!([201, 409].contains(&created.code), "{created}");
        }
    }

    /// Waits until the policies are effective that were created until now: adds a policy about ConfigMaps with a label, and
    /// waits for its effect.
    async fn wait(&self) {
        // Earlier probes stay.
        let number = format!("{:08x}", rand_suffix());
        let selector = json!({"matchLabels": {"probe": number}, "matchExpressions": []});
        let mut spec = json!({"matchConstraints": {"objectSelector": selector}});
        if self.kind == "validating" {
            spec["validations"] = json!([{"expression": "false", "message": "the probe"}]);
        } else {
            let expression = "Object{metadata: Object.metadata{annotations: {'probe': 'seen'}}}";
            spec["mutations"] = json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]);
        }
        self.create(&format!("probe-{number}"), spec, json!({})).await;
        let probe = json!({"metadata": {"generateName": "probe-", "labels": {"probe": number}}});
        let path = format!("{}?dryRun=All", self.config_maps());
        let start = std::time::Instant::now();
        loop {
            let reply = self.api.post(&path, probe.clone()).await;
            let is_seen = if self.kind == "validating" {
                reply
                    .at("/message")
                    .as_str()
                    .is_some_and(|message| message.ends_with("denied request: the probe"))
            } else {
                reply.at("/metadata/annotations/probe") == "seen"
            };
            if is_seen {
                return;
            }
            assert!(start.elapsed() < deadline(), "the policies are not effective: {reply}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Creates a ConfigMap, as a dry run.
    async fn try_config_map(&self, name: &str, data: Value) -> Reply {
        let body = json!({"metadata": {"name": name}, "data": data});
        self.api.post(&format!("{}?dryRun=All", self.config_maps()), body).await
    }
}

/// Returns a number that no other policy of the test has.
fn rand_suffix() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Merges the members of an object into another object; objects in both are merged, too.
fn merge(into: &mut Value, from: Value) {
    let Value::Object(from) = from else { return };
    for (name, value) in from {
        match into.get_mut(&name) {
            Some(known) if known.is_object() && value.is_object() => merge(known, value),
            _ => into[name] = value,
        }
    }
}
