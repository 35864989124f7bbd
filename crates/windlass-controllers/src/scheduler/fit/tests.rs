use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
}

fn node(name: &str, spec: Value) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"disk": "ssd", "cores": "8"}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "2"}},
    }))
    .unwrap()
}

fn chosen(spec: Value, node: &Node, requested: &[(&str, i128)]) -> Result<String, String> {
    let amounts = requested.iter().map(|(name, amount)| ((*name).to_owned(), Milli(*amount))).collect();
    let requested = Requests { amounts, ..Requests::default() };
    choose(&pod(spec), &[Candidate { node, requested }])
}

fn plain() -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]})
}

#[test]
fn a_plain_pod_goes_to_the_node() {
    assert_eq!(chosen(plain(), &node("n", json!({})), &[]), Ok("n".into()));
}

#[test]
fn without_nodes_it_says_so() {
    assert_eq!(choose(&pod(plain()), &[]), Err("no nodes available to schedule pods".into()));
}

#[test]
fn the_emptier_node_wins_and_the_first_name_among_equals() {
    let (a, b) = (node("a", json!({})), node("b", json!({})));
    let on = |a_pods: i128, b_pods: i128| {
        let requested = |n| Requests {
            amounts: ResourceList::from([("pods".to_owned(), Milli(n))]),
            ..Requests::default()
        };
        choose(
            &pod(plain()),
            &[
                Candidate { node: &b, requested: requested(b_pods) },
                Candidate { node: &a, requested: requested(a_pods) },
            ],
        )
    };
    assert_eq!(on(0, 0), Ok("a".into()));
    assert_eq!(on(1000, 0), Ok("b".into()));
}

#[test]
fn shortages_are_named() {
    let node = node("n", json!({}));
    assert_eq!(
        chosen(plain(), &node, &[("cpu", 1600)]),
        Err("0/1 nodes are available: 1 Insufficient cpu.".into())
    );
    assert_eq!(
        chosen(plain(), &node, &[("pods", 2000)]),
        Err("0/1 nodes are available: 1 Too many pods.".into())
    );
}

#[test]
fn selectors_and_affinity_must_match() {
    let node = node("n", json!({}));
    let refused = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    let with_selector = |value: &str| json!({"containers": [], "nodeSelector": {"disk": value}});
    assert_eq!(chosen(with_selector("ssd"), &node, &[]), Ok("n".into()));
    assert_eq!(chosen(with_selector("tape"), &node, &[]), Err(refused.into()));
    let with_rule = |operator: &str, key: &str, values: &[&str]| {
        let rule = json!({"key": key, "operator": operator, "values": values});
        json!({"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}}})
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
        assert_eq!(chosen(with_rule(operator, key, values), &node, &[]).is_ok(), fits, "{operator} {key}");
    }
}

#[test]
fn taints_keep_out_who_does_not_tolerate_them() {
    let tainted = node("n", json!({"taints": [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}]}));
    assert_eq!(
        chosen(plain(), &tainted, &[]),
        Err("0/1 nodes are available: 1 node(s) had untolerated taint(s) {gpu: a100}.".into())
    );
    for toleration in [
        json!({"operator": "Exists"}),
        json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}),
        json!({"key": "gpu", "value": "a100"}),
    ] {
        let spec = json!({"containers": [], "tolerations": [toleration]});
        assert_eq!(chosen(spec, &tainted, &[]), Ok("n".into()));
    }
    let spec = json!({"containers": [], "tolerations": [{"key": "gpu", "value": "h100"}]});
    assert!(chosen(spec, &tainted, &[]).is_err());
}

#[test]
fn a_cordoned_node_takes_nothing_new() {
    let cordoned = node("n", json!({"unschedulable": true}));
    assert_eq!(
        chosen(plain(), &cordoned, &[]),
        Err("0/1 nodes are available: 1 node(s) were unschedulable.".into())
    );
}

#[test]
fn the_largest_init_container_counts_once() {
    let spec = json!({
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}],
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "400m"}}},
                       {"name": "b", "resources": {"requests": {"cpu": "400m"}}}],
    });
    let wanted = requests(&pod(spec));
    assert_eq!(wanted.amounts["cpu"], Milli(1500));
    assert_eq!(wanted.amounts["memory"], "1Gi".parse().unwrap());
}

#[test]
fn a_node_has_each_of_its_ports_once() {
    let wanting = |port: i32| json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": port}]}]});
    let node = node("n", json!({}));
    let with_pod = || [Candidate { node: &node, requested: requests(&pod(wanting(8080))) }];
    let why = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.";
    assert_eq!(choose(&pod(wanting(8080)), &with_pod()), Err(why.into()));
    assert_eq!(choose(&pod(wanting(8081)), &with_pod()), Ok("n".into()));
}
