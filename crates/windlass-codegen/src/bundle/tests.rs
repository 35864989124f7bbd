use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::{Value, json};

use super::{Details, files, service_version_path};
use crate::{
    CertificateOrigin, Inventory,
    manifests::{
        GENERATED, Options, documents,
        tests::{everything, full, small},
    },
};

fn bundle(inventory: &Inventory, options: &Options) -> BTreeMap<String, String> {
    let sample =
        json!({ "apiVersion": "web.example.com/v2", "kind": "Website", "metadata": { "name": "a" } });
    let details = Details { version: "1.2.0".to_owned(), samples: vec![sample], ..Details::default() };
    files(inventory, options, &details).expect("a bundle")
}

fn service_version(inventory: &Inventory, options: &Options) -> Value {
    let files = bundle(inventory, options);
    documents(&files[&service_version_path("web-operator")]).expect("YAML").remove(0)
}

#[test]
fn the_files_are_those_of_operator_sdk() {
    let files = bundle(&full(), &Options::new("web-operator"));
    let paths: Vec<&str> = files.keys().map(String::as_str).collect();
    expect![[r"
    "]]
    .assert_eq(&paths.join("\n"));
    for (path, text) in &files {
        assert!(text.lines().next().is_some_and(|line| line.contains(GENERATED)), "{path}");
    }
    assert_eq!(files, bundle(&full(), &Options::new("web-operator")));
}

#[test]
fn the_service_version_has_what_the_operator_declares() {
    let files = bundle(&full(), &Options::new("web-operator"));
    expect![[r"
    "]]
    .assert_eq(&files[&service_version_path("web-operator")]);
    expect![[r"
    "]]
    .assert_eq(&files["bundle.Dockerfile"]);
}

#[test]
fn a_self_issued_certificate_gives_way_to_that_of_olm() {
    let mut inventory = full();
    inventory.webhooks.as_mut().expect("webhooks").certificates = CertificateOrigin::SelfIssued;
    let version = service_version(&inventory, &everything());
    let container =
        &version["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<&str> =
        container["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(
        arguments.ends_with(&[
            "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs",
            "--webhook-local=true"
        ])
    );
}

#[test]
fn a_namespaced_operator_watches_the_namespaces_that_olm_names() {
    let mut options = Options::new("web-operator");
    options.namespaced = true;
    let version = service_version(&small(), &options);
    let supported: Vec<&str> = version["spec"]["installModes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|mode| mode["supported"] == true)
        .filter_map(|mode| mode["type"].as_str())
        .collect();
    assert_eq!(supported, ["OwnNamespace", "SingleNamespace"]);
    let text = version.to_string();
    assert!(text.contains("olm.targetNamespaces"), "{text}");
}

#[test]
fn the_texts_of_the_base_are_kept() {
    let base = documents(&super::base("web-operator", "Web")).expect("YAML").remove(0);
    let details = Details { base, replaces: Some("web-operator.v1.0.0".to_owned()), ..Details::default() };
    let files = files(&small(), &Options::new("web-operator"), &details).expect("a bundle");
    let version = documents(&files[&service_version_path("web-operator")]).expect("YAML").remove(0);
    assert_eq!(version["spec"]["displayName"], "Web");
    assert_eq!(version["spec"]["replaces"], "web-operator.v1.0.0");
    assert_eq!(version["metadata"]["name"], "web-operator.v0.0.1");
}
