//! Sidecars, init containers and restart rules.

use serde_json::{Value, json};

use super::one;
use super::stage::Stage;

fn with_sidecar(container: &Value) -> Value {
    let mut spec = one(&json!({}));
    let mut sidecar = json!({"name": "side", "image": "i", "restartPolicy": "Always"});
    for (key, value) in container.as_object().unwrap() {
        sidecar[key] = value.clone();
    }
    spec["initContainers"] = json!([sidecar]);
    spec
}

fn message(stage: &Stage, condition: &str) -> Option<String> {
    let conditions = stage.pod.status.clone().unwrap().conditions.unwrap();
    conditions.into_iter().find(|found| found.type_ == condition).unwrap().message
}

#[test]
fn a_sidecar_of_a_completed_pod_is_not_started_again() {
    let mut spec = with_sidecar(&json!({}));
    spec["restartPolicy"] = json!("Never");
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0).exits("c2", 0).run_for(60.0);
    assert_eq!((stage.state("side").as_str(), stage.phase().as_str()), ("Error 143", "Succeeded"));
    assert_eq!((stage.container("side").restart_count, stage.starts), (0, 2));
}

#[test]
fn a_pod_is_ready_when_its_sidecars_are_ready() {
    let probe = json!({"periodSeconds": 1, "failureThreshold": 1, "tcpSocket": {"port": 1}});
    let mut stage = Stage::new(&with_sidecar(&json!({"readinessProbe": probe})));
    stage.probes.insert("Readiness", "dial tcp");
    stage.run_for(3.0);
    assert_eq!((stage.phase().as_str(), stage.is_ready()), ("Running", false));
    let unready = "containers with unready status: [side]";
    assert_eq!(message(&stage, "ContainersReady").as_deref(), Some(unready));
    stage.probes.clear();
    stage.run_for(2.0);
    assert!(stage.is_ready());
}

#[test]
fn a_pod_stays_initialized_while_a_sidecar_restarts() {
    let mut stage = Stage::new(&with_sidecar(&json!({})));
    stage.run_for(1.0).exits("side1", 1).exits("side3", 1);
    assert_eq!((stage.state("side").as_str(), stage.phase().as_str()), ("CrashLoopBackOff", "Running"));
    assert!(crate::conditions::is_true(stage.pod.status.clone().unwrap().conditions.as_ref(), "Initialized"));
}

#[test]
fn rules_decide_about_a_restart_before_the_policy() {
    let rule = |operator: &str, code: i32| json!([{"action": "Restart", "exitCodes": {"operator": operator, "values": [code]}}]);
    for (rules, code, starts) in
        [(rule("In", 42), 42, 2), (rule("In", 42), 1, 1), (rule("NotIn", 3), 42, 2), (rule("NotIn", 3), 3, 1)]
    {
        let container = json!({"restartPolicy": "Never", "restartPolicyRules": rules});
        let mut stage = Stage::new(&one(&container));
        stage.run_for(1.0).exits("c1", code).run_for(1.0);
        assert_eq!(stage.starts, starts, "{rules} {code}");
        assert_eq!(stage.phase(), if starts == 2 { "Running" } else { "Failed" }, "{rules} {code}");
    }
}

#[test]
fn an_init_container_has_rules_and_a_policy_of_its_own() {
    let init = |container: Value| {
        let mut spec = one(&json!({}));
        let mut init = json!({"name": "i", "image": "i"});
        for (key, value) in container.as_object().unwrap() {
            init[key] = value.clone();
        }
        spec["initContainers"] = json!([init]);
        let mut stage = Stage::new(&spec);
        stage.run_for(1.0).exits("i1", 42);
        (stage.phase(), stage.starts)
    };
    assert_eq!(init(json!({"restartPolicy": "Never"})), ("Failed".to_owned(), 1));
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let restarted = init(json!({"restartPolicy": "Never", "restartPolicyRules": rules}));
    assert_eq!(restarted, ("Pending".to_owned(), 2));
}
