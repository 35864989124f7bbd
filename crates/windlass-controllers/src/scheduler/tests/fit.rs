//! Nodes by name, labels, taints, ports and resources.

use serde_json::{Value, json};

use super::cluster::{TestCluster, pod, requesting};

fn plain() -> Value {
    pod("p", requesting(json!({"cpu": "500m"})))
}

#[test]
fn without_a_node_there_is_nothing_to_choose() {
    assert_eq!(TestCluster::default().choose(plain()), Err("no nodes available to schedule pods".into()));
}

#[test]
fn the_emptiest_node_wins_and_equal_nodes_go_by_name() {
    let cluster = TestCluster::of(&["b", "a"]);
    assert_eq!(cluster.choose(plain()), Ok("a".into()));
    let cluster = cluster.with("a", pod("other", json!({})));
    assert_eq!(cluster.choose(plain()), Ok("b".into()));
}

#[test]
fn shortages_are_named_and_counted() {
    let cluster = TestCluster::of(&["a", "b"]).with("a", pod("x", requesting(json!({"cpu": "1600m"}))));
    let cluster = cluster.with("b", pod("y", json!({}))).with("b", pod("z", json!({})));
    assert_eq!(cluster.refusal(plain()), "0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods.");
    let gpu = pod("p", requesting(json!({"example.com/gpu": "1", "memory": "5Gi"})));
    assert_eq!(
        TestCluster::of(&["n"]).choose(gpu),
        Err("0/1 nodes are available: 1 Insufficient example.com/gpu, 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are \
             available: 1 Preemption is not helpful for scheduling."
            .into())
    );
}

#[test]
fn selectors_and_affinity_must_match() {
    let cluster = TestCluster::default().node("n", json!({"disk": "ssd", "cores": "8"}), json!({}));
    let refused = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    let with_selector = |value: &str| pod("p", json!({"nodeSelector": {"disk": value}}));
    assert_eq!(cluster.choose(with_selector("ssd")), Ok("n".into()));
    assert_eq!(cluster.refusal(with_selector("tape")), refused);
    let with_rule = |operator: &str, key: &str, values: &[&str]| {
        let rule = json!({"key": key, "operator": operator, "values": values});
        let required = json!({"nodeSelectorTerms": [{"matchExpressions": [rule]}]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        pod("p", json!({"affinity": affinity}))
    };
    for (operator, key, values, fits) in [
        ("In", "disk", &["ssd", "nvme"][..], true),
        ("NotIn", "disk", &["ssd"], false),
        ("NotIn", "absent", &["x"], true),
        ("Exists", "disk", &[], true),
        ("DoesNotExist", "disk", &[], false),
        ("Gt", "cores", &["4"], true),
        ("Lt", "cores", &["4"], false),
        ("Perhaps", "disk", &["ssd"], false),
    ] {
        assert_eq!(cluster.choose(with_rule(operator, key, values)).is_ok(), fits, "{operator} {key}");
    }
}

#[test]
fn preferred_node_affinity_outweighs_free_room() {
    let cluster = TestCluster::of(&["a"]).node("z", json!({"disk": "ssd"}), json!({}));
    let cluster = cluster.with("z", pod("other", requesting(json!({"cpu": "500m"}))));
    assert_eq!(cluster.choose(plain()), Ok("a".into()));
    let preference = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
    let preferred = json!([{"weight": 1, "preference": preference}]);
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    assert_eq!(cluster.choose(pod("p", json!({"affinity": affinity}))), Ok("z".into()));
}

#[test]
fn taints_keep_out_who_does_not_tolerate_them() {
    let taint = |effect: &str| json!({"taints": [{"key": "gpu", "value": "a100", "effect": effect}]});
    let cluster = TestCluster::default().node("n", json!({}), taint("NoSchedule"));
    assert_eq!(cluster.refusal(plain()), "0/1 nodes are available: 1 node(s) had untolerated taint(s).");
    for toleration in [
        json!({"operator": "Exists"}),
        json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}),
        json!({"key": "gpu", "value": "a100"}),
    ] {
        assert_eq!(cluster.choose(pod("p", json!({"tolerations": [toleration]}))), Ok("n".into()));
    }
    let other = json!({"tolerations": [{"key": "gpu", "value": "h100"}]});
    assert!(cluster.choose(pod("p", other)).is_err());
    let avoided = TestCluster::of(&["z"]).node("a", json!({}), taint("PreferNoSchedule"));
    assert_eq!(avoided.choose(plain()), Ok("z".into()));
}

#[test]
fn a_cordoned_node_takes_nothing_new() {
    let cluster = TestCluster::default().node("n", json!({}), json!({"unschedulable": true}));
    assert_eq!(cluster.refusal(plain()), "0/1 nodes are available: 1 node(s) were unschedulable.");
}

#[test]
fn a_node_has_each_of_its_ports_once() {
    let wanting = |name: &str, port: i32| {
        pod(name, json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": port}]}]}))
    };
    let cluster = TestCluster::of(&["n"]).with("n", wanting("first", 8080));
    let why = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.";
    assert_eq!(cluster.refusal(wanting("p", 8080)), why);
    assert_eq!(cluster.choose(wanting("p", 8081)), Ok("n".into()));
}

#[test]
fn an_obstacle_of_the_volumes_rules_out_all_nodes() {
    let cluster = TestCluster::of(&["a", "b"]);
    let unbound = "pod has unbound immediate PersistentVolumeClaims";
    let decision = cluster.decide_as(plain(), Some(unbound), true);
    let crate::scheduler::decision::Decision::Wait(wait) = decision else { panic!("{decision:?}") };
    assert_eq!(
        wait.message,
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    );
}
