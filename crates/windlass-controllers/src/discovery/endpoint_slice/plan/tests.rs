use serde_json::{Value, json};

use super::*;

fn service(change: Value) -> Service {
    let mut spec = json!({
        "selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"],
        "ports": [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}],
    });
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let metadata = json!({"name": "web", "namespace": "n", "uid": "s", "labels": {"l": "v"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn pod(name: &str, port: i32, ready: bool) -> Arc<Pod> {
    let address = format!("10.1.0.{}", name.len());
    let ports = json!([{"name": "web", "containerPort": port, "protocol": "TCP"}]);
    let ready = if ready { "True" } else { "False" };
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": "web"}},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "ports": ports}]},
            "status": {"podIP": address, "podIPs": [{"ip": address}, {"ip": "fd00::1"}],
                "conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap(),
    )
}

fn next(service: &Service, pods: &[Arc<Pod>], existing: &[Arc<EndpointSlice>]) -> SlicePlan {
    let node = serde_json::from_value(json!({"metadata": {"name": "node"}})).unwrap();
    plan(service, pods, &BTreeMap::from([("node".to_owned(), Arc::new(node))]), existing)
}

fn count(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}

fn stored(name: &str, slice: &EndpointSlice) -> Arc<EndpointSlice> {
    let mut slice = slice.clone();
    slice.metadata.name = Some(name.to_owned());
    Arc::new(slice)
}

#[test]
fn a_service_without_pods_has_an_empty_slice() {
    let plan = next(&service(json!({})), &[], &[]);
    assert_eq!((plan.create.len(), count(&plan.create[0])), (1, 0));
    let again = next(&service(json!({})), &[], &[stored("a", &plan.create[0])]);
    assert_eq!(again, SlicePlan::default());
}

#[test]
fn pods_with_other_ports_are_in_another_slice() {
    let pods = [pod("a", 8080, true), pod("bb", 8080, false), pod("ccc", 9090, true)];
    let plan = next(&service(json!({})), &pods, &[]);
    let shown: Vec<_> =
        plan.create.iter().map(|slice| (slice.ports.as_ref().unwrap()[0].port, count(slice))).collect();
    assert_eq!(shown, [(Some(8080), 2), (Some(9090), 1)]);
    let ready = |endpoint: &Endpoint| endpoint.conditions.as_ref().unwrap().ready;
    let all: Vec<_> = plan.create[0].endpoints.iter().flatten().map(ready).collect();
    assert_eq!(all, [Some(true), Some(false)]);
}

#[test]
fn a_slice_is_updated_when_an_endpoint_changes_and_reused_when_the_ports_do() {
    let plain = service(json!({}));
    let first = next(&plain, &[pod("a", 8080, false)], &[]);
    let slice = stored("s", &first.create[0]);
    let ready = next(&plain, &[pod("a", 8080, true)], &[Arc::clone(&slice)]);
    assert_eq!((ready.create.len(), ready.update.len(), ready.delete.len()), (0, 1, 0));
    let moved = next(&plain, &[pod("a", 9090, true)], &[slice]);
    assert_eq!(moved.update[0].metadata.name.as_deref(), Some("s"));
    assert_eq!((moved.create.len(), moved.delete.len()), (0, 0));
}

#[test]
fn both_families_have_slices_of_their_own() {
    let dual = service(json!({"ipFamilies": ["IPv6", "IPv4"], "clusterIP": "None"}));
    let plan = next(&dual, &[pod("a", 8080, true)], &[]);
    let addresses: Vec<_> =
        plan.create.iter().map(|slice| slice.endpoints.as_ref().unwrap()[0].addresses[0].as_str()).collect();
    assert_eq!(addresses, ["10.1.0.1", "fd00::1"]);
    assert_eq!(plan.create[0].metadata.labels.as_ref().unwrap()[member::HEADLESS], "");
}

#[test]
fn a_full_slice_is_followed_by_another() {
    let pods: Vec<_> = (0..150).map(|n| pod(&format!("p{n}"), 8080, true)).collect();
    let sizes: Vec<_> = next(&service(json!({})), &pods, &[]).create.iter().map(count).collect();
    assert_eq!(sizes, [100, 50]);
}
