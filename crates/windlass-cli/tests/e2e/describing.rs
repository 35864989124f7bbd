//! Questions about kinds and objects: describe, explain, api-resources, api-versions, events.

use crate::custom_resources::{install, sample};
use crate::kubectl::with_kubectl;

#[test]
fn describe_shows_an_object_and_its_events() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["run", "web", "--image=nginx"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=30s"]);
        let text = kubectl.until(&["describe", "pod", "web"], |text| text.contains("Container started"));
        for part in [
            "Successfully assigned default/web to windlass",
            "Status: Running",
            "Node: windlass/",
            "Container created",
        ] {
            assert!(words(&text).contains(part), "{part:?} is missing:\n{text}");
        }
        kubectl.ok(&["create", "deployment", "web", "--image=nginx"]);
        let text =
            kubectl.until(&["describe", "deployment", "web"], |text| text.contains("ScalingReplicaSet"));
        assert!(words(&text).contains("deployment-controller Scaled up replica set web-"), "{text}");
        install(kubectl);
        kubectl.apply(&sample(1));
        let text = kubectl.ok(&["describe", "custompod", "sample"]);
        assert!(text.contains("API Version:  zhhnzw.mock.com/v1") && text.contains("Replicas:  1"), "{text}");
        assert!(kubectl.ok(&["describe", "node", "windlass"]).contains("KubeletReady"));
        assert!(kubectl.ok(&["describe", "namespace", "default"]).contains("Active"));
    });
}

#[test]
fn explain_describes_custom_and_built_in_kinds() {
    with_kubectl(|kubectl| {
        install(kubectl);
        let text = kubectl.ok(&["explain", "custompod.spec"]);
        for part in [
            "KIND:       CustomPod",
            "VERSION:    v1",
            "replicas",
            "<integer> -required-",
            "How many pods to keep.",
        ] {
            assert!(text.contains(part), "{part:?} is missing:\n{text}");
        }
        let text = kubectl.ok(&["explain", "deployment.spec"]);
        assert!(text.contains("template") && text.contains("<PodTemplateSpec>"), "{text}");
        let text = kubectl.ok(&["explain", "pod", "--recursive"]);
        assert!(text.contains("containerPort"), "{text}");
        let complaint = kubectl.fails(&["explain", "pod.spec.nothing"], "");
        assert!(complaint.contains("nothing"), "{complaint}");
    });
}

#[test]
fn api_resources_and_versions_list_what_is_served() {
    with_kubectl(|kubectl| {
        install(kubectl);
        let resources = kubectl.ok(&["api-resources"]);
        let line = resources.lines().find(|line| line.starts_with("custompods")).unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["custompods", "cpod", "zhhnzw.mock.com/v1", "true", "CustomPod"]);
        for part in ["deployments", "configmaps", "customresourcedefinitions", "leases"] {
            assert!(resources.contains(part), "{part} is missing:\n{resources}");
        }
        let names = kubectl.ok(&["api-resources", "--namespaced=true", "--verbs=watch", "-o", "name"]);
        assert!(names.contains("custompods.zhhnzw.mock.com\n") && !names.contains("nodes\n"), "{names}");
        let versions = kubectl.ok(&["api-versions"]);
        for version in ["v1", "apps/v1", "apiextensions.k8s.io/v1", "zhhnzw.mock.com/v1"] {
            assert!(versions.lines().any(|line| line == version), "{version} is missing:\n{versions}");
        }
        let version = kubectl.ok(&["version"]);
        assert!(version.contains("Server Version: v1."), "{version}");
        assert!(kubectl.ok(&["cluster-info"]).contains("https://127.0.0.1:"));
        assert_eq!(kubectl.ok(&["auth", "can-i", "create", "pods"]), "yes\n");
    });
}

/// Returns the text with single spaces: the width of kubectl's columns depends on the other rows.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
