//! The same commands with every installed kubectl: old versions send and print differently.

use crate::custom_resources::{CRD, sample};
use crate::kubectl::{Kubectl, missing, others};
use crate::process::Windlass;

#[test]
fn every_kubectl_does_the_daily_round() {
    let others = others();
    if others.is_empty() {
        return missing();
    }
    for program in others {
        round(&Kubectl::new(program, Windlass::cluster(&[])));
    }
}

fn round(kubectl: &Kubectl) {
    kubectl.apply(CRD);
    kubectl.ok(&["wait", "--for=condition=established", "crd/custompods.zhhnzw.mock.com", "--timeout=30s"]);
    kubectl.apply(&sample(1));
    kubectl.apply(&sample(3));
    kubectl.ok(&["scale", "custompod", "sample", "--replicas=2"]);
    kubectl.ok(&["label", "custompod", "sample", "tier=front"]);
    kubectl.ok(&["patch", "custompod", "sample", "--type=merge", "-p", r#"{"spec":{"replicas":5}}"#]);
    assert!(kubectl.ok(&["get", "custompods"]).contains("sample   5"));
    assert!(kubectl.ok(&["explain", "custompod.spec.replicas"]).contains("How many pods to keep."));
    assert_eq!(kubectl.run(&["diff", "-f", "-"], &sample(4)).status.code(), Some(1));
    kubectl.ok(&["create", "deployment", "web", "--image=nginx"]);
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    kubectl.ok(&["create", "secret", "generic", "s", "--from-literal=a=b"]);
    kubectl.ok(&["describe", "deployment", "web"]);
    kubectl.ok(&["delete", "custompod,deployment", "--all", "--timeout=60s"]);
}
