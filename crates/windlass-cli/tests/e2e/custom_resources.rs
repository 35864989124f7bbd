//! A CRD and objects of the CRD, from the first apply to the last delete.

use crate::kubectl::{Kubectl, with_kubectl};

pub(crate) const CRD: &str = include_str!("fixtures/crd.yaml");

/// The article's sample.
pub(crate) fn sample(replicas: i32) -> String {
    format!(
        "apiVersion: zhhnzw.mock.com/v1\nkind: CustomPod\nmetadata:\n  name: sample\nspec:\n  replicas: {replicas}\n"
    )
}

/// Installs the CRD and waits until objects can be created.
pub(crate) fn install(kubectl: &Kubectl) {
    assert_eq!(
        kubectl.apply(CRD),
        "customresourcedefinition.apiextensions.k8s.io/custompods.zhhnzw.mock.com created\n"
    );
    kubectl.ok(&["wait", "--for=condition=established", "crd/custompods.zhhnzw.mock.com", "--timeout=30s"]);
}

#[test]
fn a_crd_is_applied_and_its_objects_live() {
    with_kubectl(|kubectl| {
        install(kubectl);
        assert_eq!(kubectl.apply(&sample(1)), "custompod.zhhnzw.mock.com/sample created\n");
        assert_eq!(kubectl.apply(&sample(1)), "custompod.zhhnzw.mock.com/sample unchanged\n");
        assert_eq!(kubectl.apply(&sample(3)), "custompod.zhhnzw.mock.com/sample configured\n");
        let spec = kubectl.ok(&["get", "cpod", "sample", "-o", "jsonpath={.spec}"]);
        assert_eq!(spec, r#"{"flavour":"plain","replicas":3}"#, "defaults are there");
        assert_eq!(
            kubectl.apply(CRD),
            "customresourcedefinition.apiextensions.k8s.io/custompods.zhhnzw.mock.com unchanged\n"
        );
        assert_eq!(
            kubectl.ok(&["delete", "custompod", "sample"]),
            "custompod.zhhnzw.mock.com \"sample\" deleted\n"
        );
        kubectl.fails(&["get", "custompod", "sample"], "");
    });
}

#[test]
fn deleting_the_crd_deletes_its_objects() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(1));
        kubectl.ok(&["delete", "crd", "custompods.zhhnzw.mock.com", "--timeout=30s"]);
        let complaint = kubectl.fails(&["get", "custompods"], "");
        assert!(
            complaint.contains("doesn't have a resource type")
                || complaint.contains("could not find the requested resource"),
            "{complaint}"
        );
        install(kubectl);
        assert_eq!(kubectl.ok(&["get", "custompods", "-o", "name"]), "", "they do not come back");
    });
}

#[test]
fn scale_and_its_subresource_work() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(1));
        assert_eq!(
            kubectl.ok(&["scale", "custompod", "sample", "--replicas=3"]),
            "custompod.zhhnzw.mock.com/sample scaled\n"
        );
        assert_eq!(kubectl.ok(&["get", "custompod", "sample", "-o", "jsonpath={.spec.replicas}"]), "3");
        let complaint =
            kubectl.fails(&["scale", "custompod", "sample", "--replicas=1", "--current-replicas=2"], "");
        assert!(complaint.contains("Expected replicas to be 2, was 3"), "{complaint}");
        let scale = kubectl.ok(&[
            "get",
            "custompod",
            "sample",
            "--subresource=scale",
            "-o",
            "jsonpath={.kind} {.spec.replicas}",
        ]);
        assert_eq!(scale, "Scale 3");
    });
}

#[test]
fn the_status_is_written_beside_the_spec() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(1));
        let status = r#"{"spec":{"replicas":9},"status":{"replicas":1,"podNames":["a"]}}"#;
        kubectl.ok(&["patch", "custompod", "sample", "--subresource=status", "--type=merge", "-p", status]);
        let both = kubectl.ok(&[
            "get",
            "custompod",
            "sample",
            "-o",
            "jsonpath={.spec.replicas} {.status.podNames[0]} {.metadata.generation}",
        ]);
        assert_eq!(both, "1 a 1");
    });
}
