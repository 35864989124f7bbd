//! Bundle: a bundle for the Operator Lifecycle Manager (OLM), in the format registry+v1.
//!
//! The ClusterServiceVersion is made of the model of the manifests. Texts for people, such as the description and the icon, come from a base
//! that the person keeps.
//!
//! ```
//! use windlass_codegen::{Inventory, bundle::{self, Details}, manifests::Options};
//!
//! let inventory = Inventory { name: "web-operator".to_owned(), ..Inventory::default() };
//! let mut details = Details::default();
//! details.version = "1.2.0".to_owned();
//! let files = bundle::files(&inventory, &Options::new("web-operator"), &details).unwrap();
//! let csv = &files["bundle/manifests/web-operator.clusterserviceversion.yaml"];
//! assert!(csv.contains("name: web-operator.v1.2.0"));
//! ```

mod descriptors;
mod details;
mod service_version;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use self::details::{Details, base, keep_created_at, replaced};
use self::service_version::ServiceVersion;
use crate::{
    Inventory,
    manifests::{GENERATED, ManifestError, Manifests, Options, yaml::to_text},
};

/// The folder of the bundle.
const FOLDER: &str = "bundle";

/// The image with the tests of operator-sdk's scorecard.
const SCORECARD: &str = "quay.io/operator-framework/scorecard-test:v1.42.3";

/// Returns the path of the ClusterServiceVersion of a project.
pub fn service_version_path(project: &str) -> String {
    format!("{FOLDER}/manifests/{project}.clusterserviceversion.yaml")
}

/// Returns the path of the base of the ClusterServiceVersion. The user owns the base.
pub fn base_path(project: &str) -> String {
    format!("config/manifests/bases/{project}.clusterserviceversion.yaml")
}

/// Returns the files of a bundle and `bundle.Dockerfile`, by path below the folder of the project.
///
/// # Errors
///
/// Versions of a kind contradict each other, as for [`Manifests::new`].
pub fn files(
    inventory: &Inventory,
    options: &Options,
    details: &Details,
) -> Result<BTreeMap<String, String>, ManifestError> {
    let manifests = Manifests::new(inventory, options.clone())?;
    let objects = manifests.objects();
    let version = ServiceVersion { inventory, options, details, objects: &objects };
    let mut files = BTreeMap::from([
        (service_version_path(&options.project), to_text([&version.object()])),
        (format!("{FOLDER}/metadata/annotations.yaml"), to_text([&annotations(options, details)])),
        (format!("{FOLDER}/tests/scorecard/config.yaml"), to_text([&scorecard()])),
        ("bundle.Dockerfile".to_owned(), dockerfile(options, details)),
    ]);
    for crd in manifests.crds() {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let file = format!("{}_{}.yaml", text(&spec["group"]), text(&spec["names"]["plural"]));
        files.insert(format!("{FOLDER}/manifests/{file}"), to_text([crd]));
    }
    for object in objects.iter().filter(|object| is_extra(object, inventory)) {
        let (file, object) = extra(object);
        files.insert(format!("{FOLDER}/manifests/{file}"), to_text([&object]));
    }
    Ok(files)
}

/// Returns whether an object is in the bundle as a separate file. OLM makes the service account, the bindings
/// of the operator's rights, the Deployment, the service of the webhooks and the configurations from the
/// ClusterServiceVersion.
fn is_extra(object: &Value, inventory: &Inventory) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["kind"].as_str().unwrap_or_default() {
        "Service" => inventory.metrics.is_some() && name.ends_with("-metrics-service"),
        "ClusterRole" => ["-admin-role", "-editor-role", "-viewer-role", "-metrics-reader"]
            .iter()
            .any(|end| name.ends_with(end)),
        "ConfigMap"
        | "Secret"
        | "PodDisruptionBudget"
        | "PriorityClass"
        | "ServiceMonitor"
        | "PrometheusRule" => true,
        _ => false,
    }
}

/// Returns an object without the namespace, because OLM chooses the namespace, and the name of the object's
/// file.
fn extra(object: &Value) -> (String, Value) {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, version) = (text(&object["metadata"]["name"]), text(&object["apiVersion"]).replace('/', "_"));
    (format!("{name}_{version}_{}.yaml", text(&object["kind"]).to_lowercase()), object)
}

/// Returns the labels of a bundle, for the annotations and the image of the bundle.
fn labels(options: &Options, details: &Details) -> BTreeMap<String, String> {
    let bundle = "operators.operatorframework.io.bundle";
    let mut labels = BTreeMap::from([
        (format!("{bundle}.mediatype.v1"), "registry+v1".to_owned()),
        (format!("{bundle}.manifests.v1"), "manifests/".to_owned()),
        (format!("{bundle}.metadata.v1"), "metadata/".to_owned()),
        (format!("{bundle}.package.v1"), options.project.clone()),
        (format!("{bundle}.channels.v1"), details.channels.join(",")),
    ]);
    if let Some(channel) = &details.default_channel {
        labels.insert(format!("{bundle}.channel.default.v1"), channel.clone());
    }
    let test = "operators.operatorframework.io.test";
    labels.insert(format!("{test}.mediatype.v1"), "scorecard+v1".to_owned());
    labels.insert(format!("{test}.config.v1"), "tests/scorecard/".to_owned());
    labels
}

fn annotations(options: &Options, details: &Details) -> Value {
    json!({ "annotations": labels(options, details) })
}

fn dockerfile(options: &Options, details: &Details) -> String {
    let mut text = format!("# {GENERATED}\nFROM scratch\n\n");
    for (key, value) in labels(options, details) {
        text.extend(["LABEL ", &key, "=", &value, "\n"]);
    }
    text.push_str("\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n");
    text.push_str("COPY bundle/tests/scorecard /tests/scorecard/\n");
    text
}

fn scorecard() -> Value {
    let test = |suite: &str, test: &str| {
        json!({
            "entrypoint": ["scorecard-test", test],
            "image": SCORECARD,
            "labels": { "suite": suite, "test": format!("{test}-test") },
            "storage": { "spec": { "mountPath": {} } },
        })
    };
    let olm = [
        "olm-bundle-validation",
        "olm-crds-have-validation",
        "olm-crds-have-resources",
        "olm-spec-descriptors",
        "olm-status-descriptors",
    ];
    let tests: Vec<Value> =
        [test("basic", "basic-check-spec")].into_iter().chain(olm.map(|name| test("olm", name))).collect();
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": { "name": "config" },
        "stages": [{ "parallel": true, "tests": tests }],
        "storage": { "spec": { "mountPath": {} } },
    })
}
