//! `get` in all output formats, `get -w`, `wait`.

use crate::custom_resources::{install, sample};
use crate::kubectl::with_kubectl;

#[test]
fn get_prints_a_custom_resource_in_every_form() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(2));
        let get = |output: &str| kubectl.ok(&["get", "custompods", "sample", "-o", output]);
        let table = kubectl.ok(&["get", "custompods"]);
        let words: Vec<&str> = table.split_whitespace().collect();
        assert_eq!(words[..5], ["NAME", "DESIRED", "AGE", "sample", "2"], "{table}");
        assert!(get("wide").contains("sample"));
        assert_eq!(get("name"), "custompod.zhhnzw.mock.com/sample\n");
        assert!(get("yaml").contains("\nkind: CustomPod\n"));
        assert!(get("json").contains("\"kind\": \"CustomPod\""));
        assert_eq!(get("jsonpath={.metadata.name}/{.spec.replicas}"), "sample/2");
        assert_eq!(get("custom-columns=N:.metadata.name,R:.spec.replicas"), "N        R\nsample   2\n");
        assert_eq!(get("go-template={{.spec.flavour}}"), "plain");
        let all = kubectl.ok(&["get", "custompods", "-A", "--show-labels"]);
        assert!(all.starts_with("NAMESPACE") && all.contains("<none>"), "{all}");
    });
}

#[test]
fn get_prints_the_columns_of_built_in_kinds() {
    with_kubectl(|kubectl| {
        kubectl.until(&["get", "nodes"], |nodes| {
            nodes.starts_with("NAME") && nodes.contains("windlass   Ready    control-plane")
        });
        kubectl.ok(&["run", "web", "--image=nginx"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=30s"]);
        let pods = kubectl.ok(&["get", "pods"]);
        assert!(pods.lines().next().unwrap().starts_with("NAME   READY   STATUS    RESTARTS"), "{pods}");
        assert!(pods.contains("web    1/1     Running   0"), "{pods}");
        let wide = kubectl.ok(&["get", "pods", "-o", "wide"]);
        assert!(wide.contains("10.244.") && wide.contains("windlass"), "{wide}");
        let namespaces = kubectl.ok(&["get", "ns"]);
        assert!(namespaces.contains("default") && namespaces.contains("Active"), "{namespaces}");
        for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            kubectl.ok(&["get", "ns", namespace]);
        }
        assert!(kubectl.ok(&["get", "service", "kubernetes"]).contains("ClusterIP"));
        assert!(kubectl.ok(&["get", "all"]).contains("pod/web"));
    });
}

#[test]
fn get_selects_and_sorts() {
    with_kubectl(|kubectl| {
        for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front")] {
            kubectl.ok(&["create", "configmap", name]);
            kubectl.ok(&["label", "configmap", name, &format!("tier={tier}")]);
        }
        let names =
            |selector: &[&str]| kubectl.ok(&[&["get", "configmaps", "-o", "name"], selector].concat());
        assert_eq!(names(&["-l", "tier=front"]), "configmap/a\nconfigmap/c\n");
        assert_eq!(names(&["-l", "tier in (back)"]), "configmap/b\n");
        assert_eq!(names(&["-l", "tier", "--field-selector", "metadata.name=c"]), "configmap/c\n");
        let sorted = names(&["-l", "tier", "--sort-by=.metadata.labels.tier"]);
        assert!(sorted.starts_with("configmap/b\n"), "{sorted}");
        assert_eq!(names(&["-l", "tier", "--chunk-size=1"]).lines().count(), 3);
    });
}

#[test]
fn get_w_follows_changes() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["run", "first", "--image=nginx"]);
        let mut pods = kubectl.follow(&["get", "pods", "-w"]);
        // The first line shows that the list is complete: later changes come from the watch.
        pods.until(&["first"]);
        kubectl.ok(&["run", "web", "--image=nginx"]);
        pods.until(&["web", "0/1", "Pending"]);
        pods.until(&["web", "0/1", "ContainerCreating"]);
        pods.until(&["web", "1/1", "Running"]);
        kubectl.ok(&["delete", "pod", "web"]);
        pods.until(&["web", "Terminating"]);
    });
}

#[test]
fn wait_waits_for_conditions_values_creation_and_deletion() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["run", "web", "--image=nginx"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=30s"]);
        kubectl.ok(&["wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=30s"]);
        let complaint =
            kubectl.fails(&["wait", "--for=jsonpath={.status.phase}=Failed", "pod/web", "--timeout=1s"], "");
        assert!(complaint.contains("timed out waiting for the condition"), "{complaint}");
        kubectl.ok(&["delete", "pod", "web", "--wait=false"]);
        kubectl.ok(&["wait", "--for=delete", "pod/web", "--timeout=30s"]);
    });
}
