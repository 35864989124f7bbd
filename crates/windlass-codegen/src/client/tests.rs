//! The generated files of a small API.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Api, Generator, SourceFile, Target, generate};
use crate::definition::Definition;

fn definition(
    group: &str,
    kind: &str,
    plural: &str,
    scope: &str,
    annotations: &serde_json::Value,
) -> Definition {
    let document = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}"), "annotations": annotations },
        "spec": { "group": group, "scope": scope, "names": { "kind": kind, "plural": plural }, "versions": [
            { "name": "v1", "served": true, "storage": true, "subresources": { "status": {} } },
            { "name": "v1alpha1", "served": true, "storage": false },
            { "name": "v0", "served": false, "storage": false } ] },
    });
    Definition::parse(&document).expect("a definition").expect("a CRD")
}

fn api(definitions: &[Definition]) -> Api {
    let mut api = Api::default();
    for definition in definitions {
        let kind = &definition.spec.names.kind;
        api.add(definition, |version| (format!("crate::{}::{kind}", version.name), true)).expect("verbs");
    }
    api
}

fn target() -> Target {
    Target {
        module: "crate::client".to_owned(),
        support: "windlass_client".to_owned(),
        public: "demo_api::client".to_owned(),
        note: None,
    }
}

fn all(api: &Api) -> Vec<SourceFile> {
    generate(api, &target(), &Generator::ALL.into(), &BTreeSet::new())
}

fn text<'f>(files: &'f [SourceFile], path: &str) -> &'f str {
    &files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path}")).text
}

#[test]
fn every_file_begins_with_the_header_and_every_run_gives_the_same() {
    let pool = definition("tsi.example.com", "IPPool", "ippools", "Cluster", &json!({}));
    let network = definition("samplecrd.k8s.io", "Network", "networks", "Namespaced", &json!({}));
    let files = all(&api(&[pool.clone(), network.clone()]));
    assert!(files.iter().all(|file| file.text.starts_with(crate::HEADER)));
    assert_eq!(files, all(&api(&[network, pool])));
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    for path in
        ["mod.rs", "clientset/samplecrd/v1.rs", "informers/tsi/v1alpha1.rs", "listers/mod.rs", "register.rs"]
    {
        assert!(paths.contains(&path), "{paths:?}");
    }
    assert!(!paths.iter().any(|path| path.contains("v0")), "a version that is not served has no client");
}

#[test]
fn a_kind_has_the_verbs_that_its_version_serves() {
    let network = definition("samplecrd.k8s.io", "Network", "networks", "Namespaced", &json!({}));
    let files = all(&api(&[network]));
    let v1 = text(&files, "clientset/samplecrd/v1.rs");
    assert!(v1.contains("networks(namespace) -> NetworkInterface of Network, NetworkVerbs: Create"), "{v1}");
    assert!(v1.contains("UpdateStatus") && v1.contains("ApplyStatus") && !v1.contains("GetScale"), "{v1}");
    assert!(!text(&files, "clientset/samplecrd/v1alpha1.rs").contains("Status"), "noStatus");
}

#[test]
fn annotations_choose_verbs_as_genclient_does() {
    let only = json!({ "codegen.windlass.dev/only-verbs": "create,get,updateStatus", "codegen.windlass.dev/skip-verbs": "get" });
    let files = all(&api(&[definition("a.example.com", "Foo", "foos", "Cluster", &only)]));
    assert!(text(&files, "clientset/a/v1.rs").contains("FooVerbs: Create, UpdateStatus;\n"));
    assert!(
        !files.iter().any(|file| file.path == "informers/a/v1.rs"),
        "a kind that is not listed has no informer"
    );

    let wrong = definition(
        "a.example.com",
        "Foo",
        "foos",
        "Cluster",
        &json!({ "codegen.windlass.dev/only-verbs": "create,made" }),
    );
    let error = Api::default().add(&wrong, |_| (String::new(), false)).expect_err("no verb");
    assert!(error.contains("\"made\""), "{error}");
}

#[test]
fn groups_with_the_same_first_label_and_kinds_with_names_of_rust_do_not_clash() {
    let group = |group: &str| definition(group, "Result", "results", "Namespaced", &json!({}));
    let files = all(&api(&[group("type.a.com"), group("type.b.com")]));
    let client = text(&files, "clientset/type_a_com/v1.rs");
    assert!(client.contains("use crate::v1::Result as ResultObject;"), "{client}");
    let reserved = all(&api(&[group("type.a.com")]));
    assert!(text(&reserved, "clientset/mod.rs").contains("pub mod type_ {"));
}

#[test]
fn one_piece_brings_what_it_names_and_keeps_what_was_there() {
    let network = definition("samplecrd.k8s.io", "Network", "networks", "Namespaced", &json!({}));
    let api = api(&[network]);
    let files = generate(&api, &target(), &[Generator::Informers].into(), &[Generator::Clientset].into());
    let root = text(&files, "mod.rs");
    for module in ["clientset", "informers", "listers", "register"] {
        assert!(root.contains(&format!("pub mod {module};")), "{root}");
    }
    assert!(!root.contains("applyconfiguration"));
    assert!(!files.iter().any(|file| file.path.starts_with("clientset")));
}

#[test]
fn fifty_kinds_are_generated_in_no_time() {
    let definitions: Vec<_> = (0..50)
        .map(|number| {
            let group = format!("g{}.example.com", number % 7);
            definition(&group, &format!("Kind{number}"), &format!("kind{number}s"), "Namespaced", &json!({}))
        })
        .collect();
    let files = all(&api(&definitions));
    assert_eq!(files.iter().filter(|file| file.path.starts_with("clientset/g")).count(), 14);
}
