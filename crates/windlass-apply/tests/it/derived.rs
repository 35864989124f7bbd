use std::collections::{BTreeMap, HashMap};

use k8s_openapi::{
    api::core::v1::PodTemplateSpec,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, LabelSelector},
    },
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, to_string, to_value};
use windlass_apply::{
    ApplyConfiguration,
    core::v1::{container, pod_template_spec},
    meta::v1::label_selector,
};

/// The desired state of a website.
#[derive(CustomResource, ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
#[kube(printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}"#)]
#[apply(crate = "windlass_apply")]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteSpec {
    /// How many pods to keep.
    pub min_replicas: u32,
    pub hosts: Vec<String>,
    pub mode: Option<Mode>,
    #[schemars(skip)]
    pub memory: Option<Quantity>,
    pub backends: Vec<Backend>,
    pub by_region: HashMap<String, Backend>,
    #[schemars(skip)]
    pub template: Option<PodTemplateSpec>,
    #[schemars(skip)]
    pub selector: Option<LabelSelector>,
    #[serde(rename = "type")]
    pub type_: String,
    #[apply(atomic)]
    pub limits: Option<Limits>,
    #[serde(flatten)]
    pub common: Common,
    #[serde(skip)]
    #[expect(dead_code, reason = "no configuration has it")]
    pub cache: u8,
    pub labels: BTreeMap<String, i64>,
    pub tree: Option<Box<Tree>>,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Copy, Debug)]
#[apply(crate = "windlass_apply")]
pub(crate) enum Mode {
    Fast,
    Safe,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[apply(crate = "windlass_apply")]
pub(crate) struct Backend {
    pub name: String,
    pub weight: Option<f64>,
}

/// Has no configuration.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) struct Limits {
    pub cpu: Option<u8>,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[apply(crate = "windlass_apply")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Common {
    pub owner_team: String,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[apply(crate = "windlass_apply")]
pub(crate) struct Tree {
    pub leaf: bool,
    #[schemars(skip)]
    pub left: Option<Box<Tree>>,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[apply(crate = "windlass_apply")]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    pub ready_replicas: u32,
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
}

/// A kind without namespace and status.
#[derive(CustomResource, ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Zone", root = "ZoneObject")]
#[apply(crate = "windlass_apply")]
pub(crate) struct ZoneSpec {
    pub region: String,
}

/// A kind whose fields are at the root.
#[derive(CustomResource, ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Bucket", no_spec)]
#[apply(crate = "windlass_apply")]
pub(crate) struct BucketFields {
    pub region: String,
}

/// A number of 32 bits.
#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[apply(crate = "windlass_apply")]
pub(crate) struct Share {
    pub share: f32,
}

#[test]
fn a_number_of_32_bits_is_sent_as_it_is_written() {
    let sent = |share: f32| to_string(&Share::apply().share(share)).unwrap();
    assert_eq!(
        [sent(0.1), sent(-2.5), sent(1e-7)],
        [r#"{"share":0.1}"#, r#"{"share":-2.5}"#, r#"{"share":1e-7}"#]
    );
}

#[test]
fn a_kind_without_a_spec_sends_fields_at_the_root() {
    let wanted = json!({
        "apiVersion": "example.com/v1", "kind": "Bucket", "metadata": { "name": "a" }, "region": "eu",
    });
    assert_eq!(to_value(Bucket::apply("a").region("eu")).unwrap(), wanted);
}

#[test]
fn a_kind_sends_what_was_set() {
    let site = Website::apply("a", "default").label("app", "a").min_replicas(3);
    let wanted = json!({
        "apiVersion": "example.com/v1", "kind": "Website",
        "metadata": { "name": "a", "namespace": "default", "labels": { "app": "a" } },
        "spec": { "minReplicas": 3 },
    });
    assert_eq!(to_value(site).unwrap(), wanted);
    let status = Website::apply("a", "default").status(WebsiteStatus::apply().ready_replicas(2));
    let status = to_value(status).unwrap();
    assert_eq!(status["status"], json!({ "readyReplicas": 2 }));
    assert!(status.get("spec").is_none());
    let zone = to_value(ZoneObject::apply("z").region("eu")).unwrap();
    assert_eq!(zone["metadata"], json!({ "name": "z" }));
    assert_eq!(zone["spec"], json!({ "region": "eu" }));
}

#[test]
fn fields_of_every_sort() {
    let backend = |name: &str| Backend::apply().name(name);
    let spec = WebsiteSpec::apply()
        .hosts(["a", "b"])
        .hosts(["c"])
        .mode(Mode::Safe)
        .memory("64Mi")
        .backends([backend("x").weight(0.5), backend("y")])
        .by_region([("eu", backend("z"))])
        .template(pod_template_spec().label("app", "a").containers([container("main")]))
        .selector(label_selector().match_labels([("app", "a")]))
        .type_("blog")
        .limits(Limits { cpu: None })
        .common(Common::apply().owner_team("web"))
        .labels([("l", 1)])
        .tree(Tree::apply().left(Tree::apply().leaf(true)));
    let wanted = json!({
        "hosts": ["a", "b", "c"],
        "mode": "Safe",
        "memory": "64Mi",
        "backends": [{ "name": "x", "weight": 0.5 }, { "name": "y" }],
        "byRegion": { "eu": { "name": "z" } },
        "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [{ "name": "main" }] } },
        "selector": { "matchLabels": { "app": "a" } },
        "type": "blog",
        "limits": { "cpu": null },
        "ownerTeam": "web",
        "labels": { "l": 1 },
        "tree": { "left": { "leaf": true } },
    });
    assert_eq!(to_value(&spec).unwrap(), wanted);
    let site = Website::apply("a", "default").spec(spec).hosts(["d"]);
    assert_eq!(to_value(site).unwrap()["spec"]["hosts"], json!(["a", "b", "c", "d"]));
}
