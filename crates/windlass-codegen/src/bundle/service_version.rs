//! The ClusterServiceVersion.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Map, Value, json};

use super::{
    Details,
    descriptors::{descriptors, title},
};
use crate::{
    CertificateOrigin, Inventory, Rights, WebhooksDeclaration,
    manifests::{CERTIFICATES, Options},
};

/// The port of the webhook service that OLM makes.
const SERVICE_PORT: u16 = 443;

/// The input of a ClusterServiceVersion.
pub(super) struct ServiceVersion<'a> {
    pub(super) inventory: &'a Inventory,
    pub(super) options: &'a Options,
    pub(super) details: &'a Details,
    /// The objects of the manifests.
    pub(super) objects: &'a [Value],
}

impl ServiceVersion<'_> {
    /// Returns the object.
    pub(super) fn object(&self) -> Value {
        let mut spec = self.details.base["spec"].as_object().cloned().unwrap_or_default();
        let default = |spec: &mut Map<String, Value>, key: &str, value: Value| {
            spec.entry(key).or_insert(value);
        };
        default(&mut spec, "displayName", json!(title(&self.options.project)));
        default(&mut spec, "description", json!(format!("The operator {}.", self.options.project)));
        default(&mut spec, "maturity", json!("alpha"));
        default(&mut spec, "minKubeVersion", json!("1.25.0"));
        default(&mut spec, "provider", json!({ "name": self.options.project }));
        spec.insert("customresourcedefinitions".to_owned(), json!({ "owned": self.owned() }));
        spec.insert("install".to_owned(), self.install());
        spec.insert("installModes".to_owned(), self.install_modes());
        spec.insert("relatedImages".to_owned(), json!([{ "image": self.options.image, "name": "manager" }]));
        spec.insert("version".to_owned(), json!(self.details.version));
        if let Some(replaces) = &self.details.replaces {
            default(&mut spec, "replaces", json!(replaces));
        }
        if let Some(webhooks) = &self.inventory.webhooks {
            spec.insert("webhookdefinitions".to_owned(), json!(self.webhooks(webhooks)));
        }
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {
                "annotations": self.annotations(),
                "name": format!("{}.v{}", self.options.project, self.details.version),
                "namespace": "placeholder",
            },
            "spec": spec,
        })
    }

    fn annotations(&self) -> Value {
        let mut annotations =
            self.details.base["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let examples = serde_json::to_string_pretty(&self.details.samples).unwrap_or_default();
        annotations.insert("alm-examples".to_owned(), json!(examples));
        annotations.insert("containerImage".to_owned(), json!(self.options.image));
        annotations.insert("createdAt".to_owned(), json!(self.details.created_at));
        annotations.entry("capabilities").or_insert(json!("Basic Install"));
        Value::Object(annotations)
    }

    /// Returns the owned CRDs: an entry for each served version.
    fn owned(&self) -> Vec<Value> {
        let crds = self.objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
        let mut owned = Vec::new();
        for crd in crds {
            let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
            owned.extend(
                versions
                    .filter(|version| version["served"] == true)
                    .map(|version| owned_version(crd, version)),
            );
        }
        owned
    }

    fn install(&self) -> Value {
        let account = format!("{}-controller-manager", self.options.project);
        let permissions = |rules: Vec<PolicyRule>| {
            if rules.is_empty() {
                json!([])
            } else {
                json!([{ "rules": rules, "serviceAccountName": account }])
            }
        };
        let mut spec = json!({ "deployments": self.deployments() });
        let (cluster, operator) = self.rules();
        if !cluster.is_empty() {
            spec["clusterPermissions"] = permissions(cluster);
        }
        if !operator.is_empty() {
            spec["permissions"] = permissions(operator);
        }
        json!({ "spec": spec, "strategy": "deployment" })
    }

    /// Returns the rules for the cluster, and for the namespaces of the operator. Rights in other namespaces become rights for the cluster: a
    /// bundle cannot name a namespace.
    fn rules(&self) -> (Vec<PolicyRule>, Vec<PolicyRule>) {
        let (mut cluster, mut operator) = (Vec::new(), Vec::new());
        let election = self.inventory.election.as_ref().map(|election| &election.rights);
        let metrics = self.inventory.metrics.as_ref().map(|metrics| &metrics.rights);
        for rights in [Some(&self.inventory.rights), election, metrics].into_iter().flatten() {
            self.add_rules(rights, &mut cluster, &mut operator);
        }
        (cluster, operator)
    }

    fn add_rules(&self, rights: &Rights, cluster: &mut Vec<PolicyRule>, operator: &mut Vec<PolicyRule>) {
        cluster.extend(rights.cluster.iter().cloned());
        operator.extend(rights.operator.iter().cloned());
        for (namespace, rules) in &rights.namespaces {
            let place = if *namespace == self.options.namespace { &mut *operator } else { &mut *cluster };
            let new: Vec<PolicyRule> = rules.iter().filter(|rule| !place.contains(rule)).cloned().collect();
            place.extend(new);
        }
    }

    fn deployments(&self) -> Vec<Value> {
        let deployments = self.objects.iter().filter(|object| object["kind"] == "Deployment");
        let deployment = |deployment: &Value| {
            let mut spec = deployment["spec"].clone();
            self.adapt(&mut spec["template"]["spec"]);
            json!({ "label": deployment["metadata"]["labels"], "name": deployment["metadata"]["name"], "spec": spec })
        };
        deployments.map(deployment).collect()
    }

    /// Adapts a pod to OLM: OLM mounts the certificate of the webhook server, and writes the watched
    /// namespaces to an annotation.
    fn adapt(&self, pod: &mut Value) {
        let is_certificate = |item: &Value| item["name"] == "webhook-certs";
        let remove = |list: &mut Value| {
            if let Some(items) = list.as_array_mut() {
                items.retain(|item| !is_certificate(item));
            }
        };
        remove(&mut pod["volumes"]);
        let container = &mut pod["containers"][0];
        remove(&mut container["volumeMounts"]);
        let is_self_issued = self
            .inventory
            .webhooks
            .as_ref()
            .is_some_and(|webhooks| webhooks.certificates == CertificateOrigin::SelfIssued);
        if let Some(arguments) = container["args"].as_array_mut().filter(|_| is_self_issued) {
            // The flag overrides the code of the operator: the operator takes the certificate from the
            // folder.
            arguments.push(json!(format!("--webhook-cert-path={CERTIFICATES}")));
            arguments.push(json!("--webhook-local=true"));
        }
        for variable in container["env"].as_array_mut().into_iter().flatten() {
            if variable["name"] == "WATCH_NAMESPACE" {
                variable["valueFrom"]["fieldRef"]["fieldPath"] =
                    json!("metadata.annotations['olm.targetNamespaces']");
            }
        }
    }

    fn install_modes(&self) -> Value {
        let converts =
            self.inventory.webhooks.as_ref().is_some_and(|webhooks| !webhooks.conversions.is_empty());
        // OLM allows conversion webhooks of operators for all namespaces only.
        let is_namespaced = self.options.namespaced && !converts;
        let mode = |name: &str, supported: bool| json!({ "supported": supported, "type": name });
        json!([
            mode("OwnNamespace", is_namespaced),
            mode("SingleNamespace", is_namespaced),
            mode("MultiNamespace", false),
            mode("AllNamespaces", !is_namespaced),
        ])
    }

    fn webhooks(&self, webhooks: &WebhooksDeclaration) -> Vec<Value> {
        let mut definitions = Vec::new();
        for webhook in &webhooks.mutating {
            let value = serde_json::to_value(webhook).unwrap_or_default();
            definitions.push(self.admission(webhooks, "MutatingAdmissionWebhook", &value));
        }
        for webhook in &webhooks.validating {
            let value = serde_json::to_value(webhook).unwrap_or_default();
            definitions.push(self.admission(webhooks, "ValidatingAdmissionWebhook", &value));
        }
        for conversion in &webhooks.conversions {
            let crd = format!("{}.{}", conversion.plural, conversion.group);
            let mut definition = self.webhook(webhooks, "ConversionWebhook", &conversion.path);
            definition["admissionReviewVersions"] = json!(["v1"]);
            definition["conversionCRDs"] = json!([crd]);
            definition["generateName"] = json!(format!("c{}.kb.io", crd));
            definition["sideEffects"] = json!("None");
            definitions.push(definition);
        }
        definitions
    }

    fn webhook(&self, webhooks: &WebhooksDeclaration, kind: &str, path: &str) -> Value {
        json!({
            "containerPort": SERVICE_PORT,
            "deploymentName": format!("{}-controller-manager", self.options.project),
            "targetPort": webhooks.port,
            "type": kind,
            "webhookPath": path,
        })
    }

    fn admission(&self, webhooks: &WebhooksDeclaration, kind: &str, webhook: &Value) -> Value {
        let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
        let mut definition = self.webhook(webhooks, kind, path);
        definition["generateName"] = webhook["name"].clone();
        let fields = [
            "admissionReviewVersions",
            "failurePolicy",
            "matchPolicy",
            "objectSelector",
            "reinvocationPolicy",
            "rules",
            "sideEffects",
            "timeoutSeconds",
        ];
        for field in fields.into_iter().filter(|field| !webhook[*field].is_null()) {
            definition[field] = webhook[field].clone();
        }
        if definition["failurePolicy"].is_null() {
            definition["failurePolicy"] = json!("Fail");
        }
        definition
    }
}

fn owned_version(crd: &Value, version: &Value) -> Value {
    let names = &crd["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default();
    let schema = &version["schema"]["openAPIV3Schema"];
    let description =
        schema["description"].as_str().map_or_else(|| format!("The kind {kind}."), ToOwned::to_owned);
    let mut owned = json!({
        "description": description,
        "displayName": title(kind),
        "kind": kind,
        "name": crd["metadata"]["name"],
        "version": version["name"],
    });
    for (member, part) in [("specDescriptors", "spec"), ("statusDescriptors", "status")] {
        let descriptors = descriptors(version, part);
        if !descriptors.is_empty() {
            owned[member] = json!(descriptors);
        }
    }
    owned
}
