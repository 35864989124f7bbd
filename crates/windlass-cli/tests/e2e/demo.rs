//! The demo, driven from another terminal, as described in the README.

use crate::kubectl::{Kubectl, missing, on_path};
use crate::process::Windlass;

#[test]
fn the_demo_tells_what_kubectl_makes_happen() {
    let Some(program) = on_path() else { return missing() };
    let mut demo = Windlass::start(&["demo"]);
    demo.until("custompod-sample reports 1 pod:");
    let kubeconfig = demo.kubeconfig();
    let watched = Kubectl::new(program, Windlass::start(&["--version"]));
    let kubectl = |arguments: &[&str]| {
        let kubeconfig = kubeconfig.display().to_string();
        watched.ok(&[arguments, &["--kubeconfig", &kubeconfig]].concat())
    };
    kubectl(&["scale", "custompod", "custompod-sample", "--replicas=3"]);
    demo.until("custompod-sample wants 3 pods now, 1 before");
    demo.until("custompod-sample reports 3 pods:");
    kubectl(&["wait", "--for=condition=Ready", "pods", "--all", "--timeout=30s"]);
    kubectl(&["patch", "custompod", "custompod-sample", "--type=merge", "-p", r#"{"spec":{"replicas":1}}"#]);
    demo.until("custompod-sample reports 1 pod:");
    let left = kubectl(&["get", "custompod", "custompod-sample", "-o", "jsonpath={.status.podNames[0]}"]);
    kubectl(&["delete", "pod", &left]);
    demo.until_all(&[&format!("pod {left} is gone"), "custompod-sample reports 1 pod:"]);
    kubectl(&["delete", "custompod", "custompod-sample", "--timeout=30s"]);
    demo.until("custompod custompod-sample is gone");
    demo.signal("INT");
    assert_eq!(demo.end().code(), Some(0));
}
