//! Nodes under maintenance: `kubectl cordon`, `drain` and `uncordon`.

use std::process::Stdio;

use crate::kubectl::{Kubectl, with_kubectl};

/// A budget that lets no pod of `web` go.
const BUDGET: &str = r#"{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}"#;

fn node(kubectl: &Kubectl) -> String {
    kubectl.ok(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"])
}

/// Deploys `web`, and waits until the pods run.
fn deploy(kubectl: &Kubectl, replicas: &str) {
    kubectl.ok(&["create", "deployment", "web", "--image=nginx", &format!("--replicas={replicas}")]);
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
}

#[test]
fn a_cordoned_node_takes_no_pods_until_it_is_uncordoned() {
    with_kubectl(|kubectl| {
        let node = node(kubectl);
        assert_eq!(kubectl.ok(&["cordon", &node]), format!("node/{node} cordoned\n"));
        assert_eq!(kubectl.ok(&["cordon", &node]), format!("node/{node} already cordoned\n"));
        kubectl.until(&["get", "nodes"], |row| row.contains("Ready,SchedulingDisabled"));
        kubectl.ok(&["run", "waits", "--image=nginx"]);
        let events = [
            "get",
            "events",
            "--field-selector=reason=FailedScheduling",
            "-o",
            "jsonpath={.items[*].message}",
        ];
        kubectl.until(&events, |said| said.contains("unschedulable"));
        assert_eq!(kubectl.ok(&["uncordon", &node]), format!("node/{node} uncordoned\n"));
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/waits", "--timeout=60s"]);
    });
}

#[test]
fn a_drain_waits_for_a_budget_and_ends_when_it_lets_go() {
    with_kubectl(|kubectl| {
        deploy(kubectl, "2");
        kubectl.apply(BUDGET);
        let allowed =
            ["get", "pdb", "web", "-o", "jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}"];
        kubectl.until(&allowed, |status| status == "2 0");
        let node = node(kubectl);
        let said = kubectl.fails(&["drain", &node, "--timeout=7s"], "");
        assert!(said.contains("Cannot evict pod as it would violate the pod's disruption budget."), "{said}");
        assert!(said.contains("global timeout reached: 7s"), "{said}");

        let drain = kubectl
            .command(&["drain", &node, "--timeout=60s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        kubectl.ok(&["patch", "pdb", "web", "--type=merge", "-p", r#"{"spec": {"minAvailable": 0}}"#]);
        let drained = drain.wait_with_output().unwrap();
        let said = String::from_utf8(drained.stdout).unwrap();
        assert!(drained.status.success() && said.ends_with(&format!("node/{node} drained\n")), "{said}");
        assert_eq!(said.matches(" evicted\n").count(), 2, "{said}");
        // The Deployment has made new pods, and no node accepts the pods.
        kubectl.until(&["get", "pods", "-o", "jsonpath={.items[*].status.phase}"], |all| {
            all == "Pending Pending"
        });
        kubectl.ok(&["uncordon", &node]);
        kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    });
}

#[test]
fn a_drain_says_which_pods_it_does_not_delete() {
    with_kubectl(|kubectl| {
        kubectl.apply(
            r#"{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c", "image": "agent"}]}}}}"#,
        );
        kubectl.ok(&["rollout", "status", "daemonset/agent", "--timeout=60s"]);
        kubectl.ok(&["run", "alone", "--image=nginx"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/alone", "--timeout=60s"]);
        let node = node(kubectl);
        let said = kubectl.fails(&["drain", &node], "");
        assert!(
            said.contains("cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"),
            "{said}"
        );
        assert!(
            said.contains("cannot delete Pods that declare no controller (use --force to override)"),
            "{said}"
        );
        let said = kubectl.ok(&["drain", &node, "--ignore-daemonsets", "--force", "--timeout=60s"]);
        assert!(said.contains("pod/alone evicted"), "{said}");
        let left = kubectl.ok(&["get", "pods", "-o", "jsonpath={.items[*].metadata.labels.app}"]);
        assert_eq!(left, "agent");
    });
}
