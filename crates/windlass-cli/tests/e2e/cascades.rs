//! The deletion of dependents when an owner is deleted.

use crate::kubectl::{Kubectl, with_kubectl};

/// A Deployment with two pods that run.
fn deployment(kubectl: &Kubectl) {
    kubectl.ok(&["create", "deployment", "web", "--image=nginx", "--replicas=2"]);
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
}

fn left(kubectl: &Kubectl) -> Vec<String> {
    let names = kubectl.ok(&["get", "deployments,replicasets,pods", "-o", "name"]);
    names.lines().map(|name| name.split('/').next().unwrap().to_owned()).collect()
}

#[test]
fn background_deletion_takes_the_dependents_along_later() {
    with_kubectl(|kubectl| {
        deployment(kubectl);
        kubectl.ok(&["delete", "deployment", "web", "--cascade=background"]);
        kubectl.until(&["get", "replicasets,pods", "-o", "name"], str::is_empty);
    });
}

#[test]
fn foreground_deletion_waits_for_the_dependents() {
    with_kubectl(|kubectl| {
        deployment(kubectl);
        kubectl.ok(&["delete", "deployment", "web", "--cascade=foreground", "--timeout=60s"]);
        assert_eq!(left(kubectl), [""; 0], "when the owner is gone, so are they");
    });
}

#[test]
fn orphan_deletion_leaves_the_dependents_and_another_owner_adopts_them() {
    with_kubectl(|kubectl| {
        deployment(kubectl);
        let set = kubectl.ok(&["get", "replicasets", "-o", "name"]);
        let set = set.trim();
        kubectl.ok(&["delete", "deployment", "web", "--cascade=orphan", "--timeout=60s"]);
        assert_eq!(left(kubectl), ["replicaset.apps", "pod", "pod"]);
        assert_eq!(kubectl.ok(&["get", set, "-o", "jsonpath={.metadata.ownerReferences}"]), "");
        kubectl.ok(&["delete", set, "--cascade=orphan", "--timeout=60s"]);
        assert_eq!(left(kubectl), ["pod", "pod"]);
    });
}

#[test]
fn an_object_with_a_finalizer_stays_until_it_is_taken_away() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "configmap", "c"]);
        kubectl.ok(&["patch", "configmap", "c", "-p", r#"{"metadata":{"finalizers":["example.com/hold"]}}"#]);
        kubectl.ok(&["delete", "configmap", "c", "--wait=false"]);
        let when = kubectl.ok(&["get", "configmap", "c", "-o", "jsonpath={.metadata.deletionTimestamp}"]);
        assert!(!when.is_empty());
        kubectl.ok(&["patch", "configmap", "c", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
        kubectl.fails(&["get", "configmap", "c"], "");
    });
}

#[test]
fn an_owner_that_is_not_there_counts_as_gone() {
    with_kubectl(|kubectl| {
        let orphan = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  ownerReferences:\n  - apiVersion: v1\n    \
                      kind: ConfigMap\n    name: nobody\n    uid: 6d5f0b1e-0000-4000-8000-000000000000\n";
        kubectl.ok_with(&["create", "-f", "-"], orphan);
        kubectl.until(&["get", "configmaps", "-o", "name"], |names| !names.contains("configmap/c\n"));
    });
}
