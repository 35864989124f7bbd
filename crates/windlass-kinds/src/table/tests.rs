use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-11-21T12:30:00Z".parse().expect("a time")
}

fn cells(group: &str, resource: &str, object: &Value) -> Value {
    let row = TableKind::built_in(crate::of(group, resource).table).row(
        object,
        IncludeObject::None,
        TableVersion::V1,
        now(),
    );
    row["cells"].clone()
}

fn pod(status: Value) -> Value {
    json!({
        "metadata": {"name": "p", "creationTimestamp": "2026-11-21T12:25:00Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "n"},
        "status": status,
    })
}

#[test]
fn ages_grow_coarser() {
    let cases = [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (8 * 86_400, "8d"),
        (365 * 2 * 86_400, "2y"),
        ((365 * 2 + 30) * 86_400, "2y30d"),
        (365 * 9 * 86_400, "9y"),
    ];
    for (seconds, text) in cases {
        assert_eq!(human_duration(seconds), text);
    }
}

#[test]
fn a_pending_pod_shows_what_it_waits_for() {
    assert_eq!(
        cells("", "pods", &pod(json!({"phase": "Pending"}))),
        json!(["p", "0/2", "Pending", "0", "5m", "<none>", "n", "<none>", "<none>"])
    );
    let creating = json!({"phase": "Pending", "containerStatuses": [
        {"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0}]});
    assert_eq!(cells("", "pods", &pod(creating))[2], "ContainerCreating");
    let gated = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]});
    assert_eq!(cells("", "pods", &pod(gated))[2], "SchedulingGated");
}

#[test]
fn a_running_pod_counts_ready_containers_and_restarts() {
    let status = json!({"phase": "Running", "podIPs": [{"ip": "10.1.0.5"}], "containerStatuses": [
        {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
         "lastState": {"terminated": {"finishedAt": "2026-11-21T12:28:00Z"}}},
        {"name": "b", "ready": false, "restartCount": 1, "state": {"terminated": {"exitCode": 3}}}]});
    assert_eq!(
        cells("", "pods", &pod(status)),
        json!(["p", "1/2", "ExitCode:3", "3 (2m ago)", "5m", "10.1.0.5", "n", "<none>", "<none>"])
    );
}

#[test]
fn a_deleted_pod_is_terminating_and_an_ended_one_says_how() {
    let mut deleted = pod(json!({"phase": "Running"}));
    deleted["metadata"]["deletionTimestamp"] = "2026-11-21T12:29:00Z".into();
    assert_eq!(cells("", "pods", &deleted)[2], "Terminating");
    let kind = TableKind::built_in(crate::of("", "pods").table);
    let row = kind.row(&pod(json!({"phase": "Failed"})), IncludeObject::None, TableVersion::V1, now());
    assert_eq!(
        row["conditions"],
        json!([{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}])
    );
}

#[test]
fn init_containers_hold_a_pod_up() {
    let mut object = pod(json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "i", "state": {"terminated": {"exitCode": 0}}},
        {"name": "j", "state": {"running": {}}}]}));
    object["spec"]["initContainers"] = json!([{"name": "i"}, {"name": "j"}]);
    assert_eq!(cells("", "pods", &object)[2], "Init:1/2");
    object["status"]["initContainerStatuses"][1]["state"] =
        json!({"waiting": {"reason": "CrashLoopBackOff"}});
    assert_eq!(cells("", "pods", &object)[2], "Init:CrashLoopBackOff");
}

#[test]
fn services_show_addresses_and_ports() {
    let service = json!({
        "metadata": {"name": "s", "creationTimestamp": "2026-11-21T12:29:30Z"},
        "spec": {"type": "NodePort", "clusterIPs": ["10.0.0.7"], "selector": {"app": "web"}, "ports": [
            {"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]},
    });
    assert_eq!(
        cells("", "services", &service),
        json!(["s", "NodePort", "10.0.0.7", "<none>", "80:30080/TCP,53/UDP", "30s", "app=web"])
    );
}

#[test]
fn workloads_show_counts_and_selectors() {
    let deployment = json!({
        "metadata": {"name": "d", "creationTimestamp": "2026-11-21T12:29:30Z"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "c"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]}]},
            "template": {"spec": {"containers": [{"name": "c1", "image": "i1"}, {"name": "c2", "image": "i2"}]}}},
        "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
    });
    assert_eq!(
        cells("apps", "deployments", &deployment),
        json!(["d", "1/3", 2, 1, "30s", "c1,c2", "i1,i2", "a in (x,y),b=c"])
    );
}

#[test]
fn custom_resources_have_the_columns_of_their_definition() {
    let kind = TableKind::custom(&[
        json!({"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}),
        json!({"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}),
        json!({"name": "Since", "type": "date", "jsonPath": ".status.since", "priority": 1}),
        json!({"name": "Broken", "type": "string", "jsonPath": ".a["}),
        json!({"name": "Names", "type": "string", "jsonPath": ".status.names"}),
    ]);
    let object = json!({
        "apiVersion": "e.io/v1", "kind": "E",
        "metadata": {"name": "x", "resourceVersion": "7"},
        "spec": {"replicas": 2},
        "status": {"since": "2026-11-21T12:00:00Z", "names": ["a", "b"]},
    });
    let options = TableOptions {
        include: IncludeObject::Metadata,
        version: TableVersion::V1,
        headers: true,
        now: now(),
    };
    let table = kind.table_of_one(&object, options);
    assert_eq!(table["rows"][0]["cells"], json!(["x", 2, null, "30m", null, "[\"a\",\"b\"]"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(table["columnDefinitions"].as_array().map(Vec::len), Some(6));
    let plain = TableKind::custom(&[]);
    assert_eq!(plain.column_definitions()[1]["name"], "Age");
    let later = TableOptions { headers: false, ..options };
    assert_eq!(plain.table_of_one(&object, later)["columnDefinitions"], Value::Null);
}

#[test]
fn every_built_in_row_has_a_cell_for_each_column() {
    let catalog = windlass_schema::Catalog::builtin();
    for version in catalog.group_versions() {
        for resource in &version.resources {
            let table = crate::of(&version.group, &resource.name).table;
            let row = Row { object: &json!({"metadata": {"name": "x"}}), now: now() };
            let extra = usize::from(&*resource.name == "ipaddresses");
            assert_eq!((table.cells)(&row).len(), table.columns.len() + extra, "{}", resource.name);
        }
    }
}
