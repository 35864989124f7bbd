//! Other forms of the same objects: tables, metadata alone, compressed.

use std::io::Read;

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};
use windlass_apiserver::Server;

use crate::fixtures::{config_map, deployment, group, labelled, pod, secret, widget, widgets, widgets_path};
use crate::harness::{Api, plain};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

#[tokio::test]
async fn a_list_as_a_table() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, secret("a")).await.is(201);
    let table = api.request(Method::GET, &path).accept(TABLE).send().await.is(200);
    assert!(table.header("content-type").unwrap().starts_with("application/json"));
    // Ages are as old as the test.
    let text = table.to_string();
    let text = regex::Regex::new(r#""\d+s""#).unwrap().replace_all(&text, "\"AGE\"").into_owned();
    let text =
        regex::Regex::new(r#""description": ".*""#).unwrap().replace_all(&text, "\"description\": \"…\"");
    expect![[r#"
        200
        {
          "apiVersion": "meta.k8s.io/v1",
          "columnDefinitions": [
            {
              "description": "…",
              "format": "name",
              "name": "Name",
              "priority": 0,
              "type": "string"
            },
            {
              "description": "…",
              "format": "",
              "name": "Type",
              "priority": 0,
              "type": "string"
            },
            {
              "description": "…",
              "format": "",
              "name": "Data",
              "priority": 0,
              "type": "string"
            },
            {
              "description": "…",
              "format": "",
              "name": "Age",
              "priority": 0,
              "type": "string"
            }
          ],
          "kind": "Table",
          "metadata": {
            "resourceVersion": "RV"
          },
          "rows": [
            {
              "cells": [
                "a",
                "Opaque",
                0,
                "AGE"
              ],
              "object": {
                "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata",
                "metadata": {
                  "creationTimestamp": "TIME",
                  "managedFields": [
                    "api-test Update v1: {'f:type':{}}"
                  ],
                  "name": "a",
                  "namespace": "ns-ID",
                  "resourceVersion": "RV",
                  "uid": "UID"
                }
              }
            }
          ]
        }"#]]
    .assert_eq(&text);
}

/// The names of the columns with a priority, and the cells of the first row.
async fn columns(api: &Api, path: &str) -> String {
    let table = api.request(Method::GET, path).accept(TABLE).send().await.is(200).json();
    let name = |column: &Value| {
        let name = column["name"].as_str().unwrap().to_owned();
        if column["priority"] == 0 { name } else { format!("({name})") }
    };
    let names: Vec<String> = table["columnDefinitions"].as_array().unwrap().iter().map(name).collect();
    let cells = table["rows"][0]["cells"].to_string();
    let cells = regex::Regex::new(r#""\d+s""#).unwrap().replace_all(&cells, "AGE").replace(&api.id, "ID");
    format!("{}\n{cells}", names.join(" "))
}

#[tokio::test]
async fn everyday_kinds_have_their_columns() {
    let api = Api::start();
    let ns = api.namespace().await;
    let at = |group: &str, resource: &str| format!("{group}/namespaces/{ns}/{resource}");
    let (core, apps) = ("/api/v1", "/apis/apps/v1");
    api.post(&at(core, "configmaps"), config_map("a")).await.is(201);
    expect![[r#"
        Name Data Age
        ["a",1,AGE]"#]]
    .assert_eq(&columns(&api, &format!("{}/a", at(core, "configmaps"))).await);
    api.post(&at(core, "secrets"), secret("a")).await.is(201);
    expect![[r#"
        Name Type Data Age
        ["a","Opaque",0,AGE]"#]]
    .assert_eq(&columns(&api, &at(core, "secrets")).await);
    api.post(&at(core, "pods"), pod("a")).await.is(201);
    expect![[r#"
        Name Ready Status Restarts Age (IP) (Node) (Nominated Node) (Readiness Gates)
        ["a","0/1","Pending","0",AGE,"<none>","<none>","<none>","<none>"]"#]]
    .assert_eq(&columns(&api, &at(core, "pods")).await);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"selector": {"a": "b"}, "clusterIP": "None", "ports": [{"name": "x", "port": 80}, {"name": "y", "port": 53, "protocol": "UDP"}]}});
    api.post(&at(core, "services"), service).await.is(201);
    expect![[r#"
        Name Type Cluster-IP External-IP Port(s) Age (Selector)
        ["a","ClusterIP","None","<none>","80/TCP,53/UDP",AGE,"a=b"]"#]]
    .assert_eq(&columns(&api, &at(core, "services")).await);
    api.post(&at(apps, "deployments"), deployment("a")).await.is(201);
    expect![[r#"
        Name Ready Up-to-date Available Age (Containers) (Images) (Selector)
        ["a","0/0",0,0,AGE,"main","nginx","app=a"]"#]]
    .assert_eq(&columns(&api, &format!("{}/a", at(apps, "deployments"))).await);
    let mut replica_set = deployment("b");
    replica_set["kind"] = json!("ReplicaSet");
    api.post(&at(apps, "replicasets"), replica_set).await.is(201);
    expect![[r#"
        Name Desired Current Ready Age (Containers) (Images) (Selector)
        ["b",0,0,0,AGE,"main","nginx","app=b"]"#]]
    .assert_eq(&columns(&api, &format!("{}/b", at(apps, "replicasets"))).await);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    let leases = at("/apis/coordination.k8s.io/v1", "leases");
    api.post(&leases, lease).await.is(201);
    expect![[r#"
        Name Holder Age
        ["a","me",AGE]"#]]
    .assert_eq(&columns(&api, &leases).await);
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "reason": "Made", "type": "Normal", "message": "a thing", "involvedObject": {"kind": "Pod", "name": "a", "namespace": ns}});
    api.post(&at(core, "events"), event).await.is(201);
    expect![[r#"
        Last Seen Type Reason Object (Subobject) (Source) Message (First Seen) (Count) (Name)
        ["<unknown>","Normal","Made","pod/a","","","a thing","<unknown>",1,"a"]"#]]
    .assert_eq(&columns(&api, &format!("{}/a", at(core, "events"))).await);
    expect![[r#"
        Name Status Age
        ["ns-ID","Active",AGE]"#]]
    .assert_eq(&columns(&api, &format!("/api/v1/namespaces/{ns}")).await);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    api.post(&at(core, "serviceaccounts"), account).await.is(201);
    expect![[r#"
        Name Age
        ["a",AGE]"#]]
    .assert_eq(&columns(&api, &format!("{}/a", at(core, "serviceaccounts"))).await);
}

#[tokio::test]
async fn a_custom_resource_has_name_and_age() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    expect![[r#"
        Name Age
        ["a",AGE]"#]]
    .assert_eq(&columns(&api, &path).await);
}

#[tokio::test]
async fn a_definition_has_the_columns_of_its_resource() {
    let api = Api::start();
    widgets_path(&api).await;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(&api));
    let table = api.request(Method::GET, &path).accept(TABLE).send().await.is(200).json();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns: Vec<String> =
        columns.map(|column| format!("{} {}", column["name"], column["priority"])).collect();
    let mut cells = table["rows"][0]["cells"].clone();
    assert!(cells[3].take().is_string(), "{table}");
    expect![[r#"
        "Name" 0, "Scope" 0, "Versions" 0, "Created At" 0, "Group" 1, "Kind" 1, "ShortNames" 1, "Established" 1
        ["widgets.ID.example.com","Namespaced","v1(storage)",null,"ID.example.com","Widget","wd",true]"#]].assert_eq(&plain(&format!("{}\n{cells}", columns.join(", ")), &api.id));
}

#[tokio::test]
async fn printer_columns_become_columns() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut definition = widgets(&api);
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "How it is"},
        {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
        {"name": "First", "type": "string", "jsonPath": ".spec.tags[0]"},
        {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.a\\.b/c"},
        {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Never", "type": "date", "jsonPath": ".metadata.deletionTimestamp"},
        {"name": "Wrong", "type": "integer", "jsonPath": ".spec.colour"}
    ]);
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let mut body = labelled(widget(&api, "a"), json!({"a.b/c": "l"}));
    body["spec"]["tags"] = json!(["x", "y"]);
    api.post(&path, body).await.is(201);
    expect![[r#"
        Name Size (Colour) Phase Tags First Label Made Never Wrong
        ["a",3,"red",null,"[\"x\",\"y\"]","x","l",AGE,null,null]"#]]
    .assert_eq(&columns(&api, &path).await);
}

#[tokio::test]
async fn a_table_row_has_as_much_of_the_object_as_asked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, secret("a")).await.is(201);
    let row = async |query: &str| {
        let path = format!("{path}{query}");
        api.request(Method::GET, &path).accept(TABLE).send().await.is(200).at("/rows/0/object")
    };
    assert_eq!(row("").await["kind"], "PartialObjectMetadata");
    assert_eq!(row("?includeObject=Metadata").await["kind"], "PartialObjectMetadata");
    assert_eq!(row("?includeObject=Object").await["kind"], "Secret");
    assert_eq!(row("?includeObject=None").await, Value::Null);
    api.request(Method::GET, &format!("{path}?includeObject=Some"))
        .accept(TABLE)
        .send()
        .await
        .shows(expect![[r#"400 BadRequest: Unable to convert to Table as requested: includeObject: Invalid value: "Some": must be 'Metadata', 'Object', 'None', or empty"#]]);
}

#[tokio::test]
async fn a_watch_of_tables_tells_its_columns_once() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let version = api.get(&path).await.version();
    let watched = format!("{path}?watch=true&resourceVersion={version}");
    let mut watch = api.request(Method::GET, &watched).accept(TABLE).stream().await;
    for name in ["a", "b"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let (first, second) = (watch.next().await, watch.next().await);
    assert_eq!(first.object["kind"], "Table");
    assert_eq!(first.object["columnDefinitions"].as_array().map(Vec::len), Some(4));
    assert_eq!(second.object["columnDefinitions"], Value::Null);
    assert_eq!(second.object["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn metadata_alone() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, labelled(widget(&api, "a"), json!({"l": "v"}))).await.is(201);
    let one = api.request(Method::GET, &format!("{path}/a")).accept(METADATA).send().await;
    one.shows(expect![[r#"
        200
        {
          "apiVersion": "meta.k8s.io/v1",
          "kind": "PartialObjectMetadata",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "labels": {
              "l": "v"
            },
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:metadata':{'f:labels':{'.':{},'f:l':{}}},'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    let list = api.request(Method::GET, &path).accept(METADATA_LIST).send().await;
    list.shows(expect![[r#"
        200
        {
          "apiVersion": "meta.k8s.io/v1",
          "items": [
            {
              "apiVersion": "meta.k8s.io/v1",
              "kind": "PartialObjectMetadata",
              "metadata": {
                "creationTimestamp": "TIME",
                "generation": 1,
                "labels": {
                  "l": "v"
                },
                "managedFields": [
                  "api-test Update ID.example.com/v1: {'f:metadata':{'f:labels':{'.':{},'f:l':{}}},'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}"
                ],
                "name": "a",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              }
            }
          ],
          "kind": "PartialObjectMetadataList",
          "metadata": {
            "resourceVersion": "RV"
          }
        }"#]]);
    let mut watch = api.request(Method::GET, &format!("{path}?watch=true")).accept(METADATA).stream().await;
    assert_eq!(watch.next().await.object["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn what_cannot_be_shown_so_is_not_acceptable() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let ask = |accept: &str| api.request(Method::GET, &path).accept(accept).send();
    ask("application/xml").await.shows(expect![[r#"
        406 NotAcceptable: 406: Not Acceptable

        Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"#]]);
    ask("application/json;as=Table;v=v9;g=meta.k8s.io").await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    ask("application/json;as=Cake;v=v1;g=meta.k8s.io").await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    assert_eq!(ask("application/xml,application/json").await.code, 200);
    assert_eq!(ask("*/*").await.code, 200);
    assert_eq!(ask("application/*").await.code, 406);
    assert_eq!(
        ask("application/json;as=Cake;v=v1;g=meta.k8s.io,application/json").await.is(200).text_at("/kind"),
        "SecretList"
    );
    assert_eq!(ask("application/json;q=0.5").await.code, 200);
}

#[tokio::test]
async fn yaml_is_given_when_asked_for() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let reply =
        api.request(Method::GET, &format!("{path}/a")).accept("application/yaml").send().await.is(200);
    assert_eq!(reply.header("content-type"), Some("application/yaml"));
    let object: Value = serde_saphyr::from_str(std::str::from_utf8(&reply.body).unwrap()).unwrap();
    assert_eq!(object["data"], json!({"k": "v"}));
    assert_eq!(object["kind"], "ConfigMap");
}

#[tokio::test]
async fn large_replies_are_compressed_when_the_client_can() {
    // In process even if the other tests go over TLS: the embedded server does not compress replies for the
    // same machine.
    let api = Api::start();
    let api = if api.is_shared() { api } else { Api::embedded(&Server::builder().build().unwrap()) };
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("big");
    body["data"] = json!({"k": "v".repeat(200 * 1024)});
    api.post(&path, body).await.is(201);
    let small = api
        .request(Method::GET, &format!("/api/v1/namespaces/{ns}"))
        .header("accept-encoding", "gzip")
        .send()
        .await;
    assert_eq!(small.header("content-encoding"), None);
    let plain = api.get(&format!("{path}/big")).await.is(200);
    assert_eq!(plain.header("content-encoding"), None);
    let packed = api
        .request(Method::GET, &format!("{path}/big"))
        .header("accept-encoding", "gzip")
        .send()
        .await
        .is(200);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < 10_000, "{} bytes", packed.body.len());
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.body);
}

#[tokio::test]
async fn a_reply_names_its_type_and_is_not_cached() {
    let api = Api::start();
    let ns = api.namespace().await;
    let reply = api.get(&format!("/api/v1/namespaces/{ns}")).await.is(200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-cache, private"));
    assert!(reply.header("audit-id").is_some_and(|id| id.len() == 36));
    let missing = api.get("/api/v1/namespaces/none-such").await.is(404);
    assert_eq!(missing.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_long_list_is_whole_however_it_is_sent() {
    let api = Api::start();
    let path = format!("/api/v1/namespaces/{}/secrets", api.namespace().await);
    for index in 0..8 {
        let mut object = secret(&format!("x{index}"));
        object["stringData"] = json!({"a": "v".repeat(100_000)});
        api.post(&path, object).await.is(201);
    }
    let plain = api.get(&path).await.is(200);
    assert_eq!(plain.names().len(), 8);
    assert_eq!(plain.header("content-encoding"), None);
    let pretty = api.get(&format!("{path}?pretty=true")).await.is(200);
    // Other tests may write between both lists.
    assert_eq!(pretty.at("/items"), plain.at("/items"));
}

#[tokio::test]
async fn a_list_is_not_shown_as_the_metadata_of_one_object() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("forms-{}", api.id)).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let get = async |path: &str, accept: &str| api.request(Method::GET, path).accept(accept).send().await;
    get(&path, METADATA).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"]);
    get(&format!("{path}/a"), METADATA_LIST).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"]);
    let autoscalers = format!("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers");
    get(&autoscalers, METADATA).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadata, but the requested object is a list (*autoscaling.HorizontalPodAutoscalerList)"]);
    get(&format!("/apis/events.k8s.io/v1/namespaces/{ns}/events"), METADATA).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadata, but the requested object is a list (*core.EventList)"]);
    let widgets = widgets_path(&api).await;
    get(&widgets, METADATA).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)"]);
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&deployments, deployment("a")).await.is(201);
    get(&format!("{deployments}/a/scale"), METADATA_LIST).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadataList, but the requested object is not a list (*autoscaling.Scale)"]);
    api.post(&widgets, widget(&api, "a")).await.is(201);
    get(&format!("{widgets}/a/scale"), METADATA_LIST).await.shows(expect!["406 NotAcceptable: you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Scale)"]);
}

#[tokio::test]
async fn empty_lists_of_metadata_are_null() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("forms-{}", api.id)).await;
    let list = async |kind: &str, accept: &str| {
        let path = format!("{kind}?labelSelector=is%3Dnowhere");
        api.request(Method::GET, &path).accept(accept).send().await.is(200).json()
    };
    let config_maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles");
    assert_eq!(list(&config_maps, METADATA_LIST).await.get("items"), Some(&Value::Null));
    assert_eq!(list(&config_maps, "application/json").await["items"], json!([]));
    assert_eq!(list(&config_maps, TABLE).await["rows"], json!([]));
    assert_eq!(list(&roles, TABLE).await.get("rows"), Some(&Value::Null));
    assert_eq!(list(&widgets_path(&api).await, TABLE).await["rows"], json!([]));
}

#[tokio::test]
async fn a_form_that_is_not_available_is_refused_before_anything_else() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("forms-{}", api.id)).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let get = async |path: &str, accept: &str| api.request(Method::GET, path).accept(accept).send().await;
    get(&format!("{path}?limit=x"), "text/html").await.shows(expect![[r#"
        406 NotAcceptable: 406: Not Acceptable

        Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"#]]);
    get(&format!("{path}/none"), "text/html").await.shows(expect![[r#"
        406 NotAcceptable: 406: Not Acceptable

        Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"#]]);
    get(&format!("{path}/none"), "application/json;as=Odd;v=v1;g=meta.k8s.io").await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    get(&format!("{path}?watch=1"), "application/json;as=Table;v=v9;g=meta.k8s.io").await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    get(&format!("{}?limit=x", widgets_path(&api).await), "text/html").await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    let post = api.request(Method::POST, &path).accept("text/html").json(&json!(5)).send().await;
    post.shows(expect![[r#"
        406 NotAcceptable: 406: Not Acceptable

        Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"#]]);
}

/// The form of a reply: code, media type, whether JSON is indented, and whether a line feed ends it.
async fn form(api: &Api, method: Method, path: &str, headers: &[(&str, &str)]) -> String {
    let mut request = api.request(method, path);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let reply = request.body("application/json", "{}").send().await;
    let media_type = reply.header("content-type").unwrap_or("-").split(';').next().unwrap_or_default();
    let style = if reply.body.starts_with(b"{\n") { "indented" } else { "compact" };
    let end = if reply.body.ends_with(b"\n") { "a line feed" } else { "none" };
    format!("{} {media_type} {style} {end}", reply.code)
}

#[tokio::test]
async fn compact_json_ends_with_a_line_feed() {
    let api = Api::start();
    let mut seen = Vec::new();
    for path in [
        "/api/v1/namespaces/default",
        "/api/v1/namespaces",
        "/api/v1/namespaces/none",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps",
        "/apis/apps/v1",
        "/version",
        "/",
        "/apis/none",
    ] {
        for (query, headers) in [
            ("", vec![]),
            ("?pretty=true", vec![]),
            ("?pretty=false", vec![("x-none", "")]),
            ("", vec![("accept", "application/yaml")]),
            ("", vec![("accept", "application/json;pretty=1")]),
        ] {
            let form = form(&api, Method::GET, &format!("{path}{query}"), &headers).await;
            let (name, value) = headers.first().copied().unwrap_or_default();
            seen.push(format!("{path}{query} {name} {value}: {form}"));
        }
    }
    for accept in [
        TABLE,
        METADATA,
        METADATA_LIST,
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    ] {
        for path in ["/api/v1/namespaces/default", "/api/v1/namespaces", "/apis"] {
            let form = form(&api, Method::GET, path, &[("accept", accept)]).await;
            seen.push(format!("{path} {accept}: {form}"));
        }
    }
    for (method, path) in [
        (Method::POST, "/api/v1/namespaces/default/configmaps?dryRun=All"),
        (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        (Method::DELETE, "/api/v1/namespaces/default/configmaps/none"),
        (Method::GET, "/version"),
    ] {
        for accept in ["application/json", "application/yaml", "text/html", "*/*"] {
            let form = form(&api, method.clone(), path, &[("accept", accept)]).await;
            seen.push(format!("{method} {path} {accept}: {form}"));
        }
    }
    let anonymous = api.impersonating("nobody", &[]);
    for accept in ["application/json", "application/yaml", "application/json;pretty=1"] {
        let form = form(&anonymous, Method::GET, "/api/v1/secrets", &[("accept", accept)]).await;
        seen.push(format!("forbidden {accept}: {form}"));
    }
    expect![[r#"
        /api/v1/namespaces/default  : 200 application/json compact a line feed
        /api/v1/namespaces/default?pretty=true  : 200 application/json indented none
        /api/v1/namespaces/default?pretty=false x-none : 200 application/json compact a line feed
        /api/v1/namespaces/default accept application/yaml: 200 application/yaml compact a line feed
        /api/v1/namespaces/default accept application/json;pretty=1: 200 application/json indented none
        /api/v1/namespaces  : 200 application/json compact a line feed
        /api/v1/namespaces?pretty=true  : 200 application/json indented none
        /api/v1/namespaces?pretty=false x-none : 200 application/json compact a line feed
        /api/v1/namespaces accept application/yaml: 200 application/yaml compact a line feed
        /api/v1/namespaces accept application/json;pretty=1: 200 application/json indented none
        /api/v1/namespaces/none  : 404 application/json compact a line feed
        /api/v1/namespaces/none?pretty=true  : 404 application/json indented none
        /api/v1/namespaces/none?pretty=false x-none : 404 application/json compact a line feed
        /api/v1/namespaces/none accept application/yaml: 404 application/yaml compact a line feed
        /api/v1/namespaces/none accept application/json;pretty=1: 404 application/json indented none
        /api  : 200 application/json compact a line feed
        /api?pretty=true  : 200 application/json indented none
        /api?pretty=false x-none : 200 application/json compact a line feed
        /api accept application/yaml: 200 application/yaml compact a line feed
        /api accept application/json;pretty=1: 200 application/json indented none
        /apis  : 200 application/json compact a line feed
        /apis?pretty=true  : 200 application/json indented none
        /apis?pretty=false x-none : 200 application/json compact a line feed
        /apis accept application/yaml: 200 application/yaml compact a line feed
        /apis accept application/json;pretty=1: 200 application/json indented none
        /api/v1  : 200 application/json compact a line feed
        /api/v1?pretty=true  : 200 application/json indented none
        /api/v1?pretty=false x-none : 200 application/json compact a line feed
        /api/v1 accept application/yaml: 200 application/yaml compact a line feed
        /api/v1 accept application/json;pretty=1: 200 application/json indented none
        /apis/apps  : 200 application/json compact a line feed
        /apis/apps?pretty=true  : 200 application/json indented none
        /apis/apps?pretty=false x-none : 200 application/json compact a line feed
        /apis/apps accept application/yaml: 200 application/yaml compact a line feed
        /apis/apps accept application/json;pretty=1: 200 application/json indented none
        /apis/apps/v1  : 200 application/json compact a line feed
        /apis/apps/v1?pretty=true  : 200 application/json indented none
        /apis/apps/v1?pretty=false x-none : 200 application/json compact a line feed
        /apis/apps/v1 accept application/yaml: 200 application/yaml compact a line feed
        /apis/apps/v1 accept application/json;pretty=1: 200 application/json indented none
        /version  : 200 application/json indented none
        /version?pretty=true  : 200 application/json indented none
        /version?pretty=false x-none : 200 application/json indented none
        /version accept application/yaml: 406 application/yaml compact a line feed
        /version accept application/json;pretty=1: 200 application/json indented none
        /  : 200 application/json indented none
        /?pretty=true  : 200 application/json indented none
        /?pretty=false x-none : 200 application/json indented none
        / accept application/yaml: 200 application/json indented none
        / accept application/json;pretty=1: 200 application/json indented none
        /apis/none  : 404 text/plain compact a line feed
        /apis/none?pretty=true  : 404 text/plain compact a line feed
        /apis/none?pretty=false x-none : 404 text/plain compact a line feed
        /apis/none accept application/yaml: 404 text/plain compact a line feed
        /apis/none accept application/json;pretty=1: 404 text/plain compact a line feed
        /api/v1/namespaces/default application/json;as=Table;v=v1;g=meta.k8s.io,application/json: 200 application/json compact a line feed
        /api/v1/namespaces application/json;as=Table;v=v1;g=meta.k8s.io,application/json: 200 application/json compact a line feed
        /apis application/json;as=Table;v=v1;g=meta.k8s.io,application/json: 200 application/json compact a line feed
        /api/v1/namespaces/default application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io: 200 application/json compact a line feed
        /api/v1/namespaces application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io: 406 application/json indented none
        /apis application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io: 406 application/json indented none
        /api/v1/namespaces/default application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io: 406 application/json indented none
        /api/v1/namespaces application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io: 200 application/json compact a line feed
        /apis application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io: 406 application/json indented none
        /api/v1/namespaces/default application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList: 406 application/json indented none
        /api/v1/namespaces application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList: 406 application/json indented none
        /apis application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList: 200 application/json compact a line feed
        POST /api/v1/namespaces/default/configmaps?dryRun=All application/json: 422 application/json compact a line feed
        POST /api/v1/namespaces/default/configmaps?dryRun=All application/yaml: 422 application/yaml compact a line feed
        POST /api/v1/namespaces/default/configmaps?dryRun=All text/html: 406 application/json indented none
        POST /api/v1/namespaces/default/configmaps?dryRun=All */*: 422 application/json compact a line feed
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews application/json: 422 application/json compact a line feed
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews application/yaml: 422 application/yaml compact a line feed
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews text/html: 406 application/json indented none
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews */*: 422 application/json compact a line feed
        DELETE /api/v1/namespaces/default/configmaps/none application/json: 404 application/json compact a line feed
        DELETE /api/v1/namespaces/default/configmaps/none application/yaml: 404 application/yaml compact a line feed
        DELETE /api/v1/namespaces/default/configmaps/none text/html: 406 application/json indented none
        DELETE /api/v1/namespaces/default/configmaps/none */*: 404 application/json compact a line feed
        GET /version application/json: 200 application/json indented none
        GET /version application/yaml: 406 application/yaml compact a line feed
        GET /version text/html: 406 application/json indented none
        GET /version */*: 200 application/json indented none
        forbidden application/json: 403 application/json compact a line feed
        forbidden application/yaml: 403 application/yaml compact a line feed
        forbidden application/json;pretty=1: 403 application/json indented none
    "#]].assert_eq(&crate::harness::lines(&seen));
}

#[tokio::test]
async fn what_is_done_or_asked_has_no_table() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), json!({"metadata": {"name": "a"}}))
        .await
        .is(201);
    let (authorization, authentication) = ("/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1");
    let root = json!({"path": "/", "verb": "get"});
    let requests = [
        (
            format!("{authorization}/selfsubjectaccessreviews"),
            json!({"spec": {"nonResourceAttributes": root}}),
        ),
        (format!("{authorization}/selfsubjectrulesreviews"), json!({"spec": {"namespace": ns}})),
        (format!("{authentication}/tokenreviews"), json!({"spec": {"token": "a"}})),
        (format!("{authentication}/selfsubjectreviews"), json!({})),
        (format!("/api/v1/namespaces/{ns}/serviceaccounts/a/token"), json!({"spec": {}})),
    ];
    let as_table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    for (path, body) in requests {
        let ask = |accept: &'static str| api.request(Method::POST, &path).accept(accept).json(&body).send();
        ask(as_table).await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
        ask("application/json;as=Table;g=meta.k8s.io;v=v1,application/json").await.is(201);
    }
}

#[tokio::test]
async fn some_parts_of_objects_have_no_table() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), json!({"metadata": {"name": "default"}}))
        .await;
    api.post(&pods, pod("a")).await.is(201);
    let mut seen = Vec::new();
    for path in [
        format!("{pods}/a/status"),
        format!("{pods}/a/resize"),
        format!("{pods}/a/ephemeralcontainers"),
        format!("/api/v1/namespaces/{ns}/status"),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none/status".to_owned(),
        "/apis/apiregistration.k8s.io/v1/apiservices/none/status".to_owned(),
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/none/status".to_owned(),
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/none/approval".to_owned(),
        format!("/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims/none/status"),
    ] {
        let as_table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let reply = api.request(Method::GET, &path).accept(as_table).send().await;
        seen.push(format!("{} {}\n", path.replace(&ns, "NS"), reply.code));
    }
    expect![[r#"
        /api/v1/namespaces/NS/pods/a/status 200
        /api/v1/namespaces/NS/pods/a/resize 406
        /api/v1/namespaces/NS/pods/a/ephemeralcontainers 406
        /api/v1/namespaces/NS/status 200
        /apis/apiextensions.k8s.io/v1/customresourcedefinitions/none/status 406
        /apis/apiregistration.k8s.io/v1/apiservices/none/status 406
        /apis/certificates.k8s.io/v1/certificatesigningrequests/none/status 404
        /apis/certificates.k8s.io/v1/certificatesigningrequests/none/approval 406
        /apis/resource.k8s.io/v1/namespaces/NS/resourceclaims/none/status 406
    "#]]
    .assert_eq(&seen.concat());
}

/// Without the owners of fields, which are half of most objects (KEP-5958).
const WITHOUT_MANAGED_FIELDS: &str = "application/json;drop=metadata.managedFields,application/json";

#[tokio::test]
async fn every_reply_can_leave_out_the_managed_fields() {
    let api = Api::start();
    let custom = widgets_path(&api).await;
    let built_in = custom.replace(&format!("/apis/{}/", group(&api)), "/api/").replace("widgets", "secrets");
    for (path, object) in [(built_in, secret("a")), (custom, widget(&api, "a"))] {
        let mut watch = api
            .request(Method::GET, &format!("{path}?watch=1"))
            .accept(WITHOUT_MANAGED_FIELDS)
            .stream()
            .await;
        let mut text = object.clone();
        text["metadata"]["annotations"] = json!({ "text": r#"a ",\"managedFields\":[" b"# });
        let created =
            api.request(Method::POST, &path).accept(WITHOUT_MANAGED_FIELDS).json(&text).send().await.is(201);
        let whole = api.get(&format!("{path}/a")).await.is(200).json();
        assert!(whole["metadata"]["managedFields"].is_array());
        let mut expected = whole.clone();
        // A real server without its feature gate ignores the parameter, and sends the fields in every reply.
        let ignores = api.is_shared() && created.json()["metadata"]["managedFields"].is_array();
        if !ignores {
            expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        assert_eq!(created.json(), expected);
        assert_eq!(watch.next().await.object, expected);
        let get = |path: &str, accept: &str| api.request(Method::GET, path).accept(accept).send();
        assert_eq!(get(&format!("{path}/a"), WITHOUT_MANAGED_FIELDS).await.is(200).json(), expected);
        let list = get(&path, WITHOUT_MANAGED_FIELDS).await.is(200).json();
        assert_eq!(list["items"][0]["metadata"], expected["metadata"]);
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
        let metadata = get(&format!("{path}/a"), &format!("{METADATA};drop=metadata.managedFields")).await;
        assert_eq!(metadata.is(200).json()["metadata"], expected["metadata"]);
        let listed = get(&path, &format!("{METADATA_LIST};drop=metadata.managedFields")).await.is(200);
        assert_eq!(listed.json()["items"][0]["metadata"], expected["metadata"]);
        let other = get(&format!("{path}/a"), "application/json;drop=spec+status").await.is(200).json();
        assert_eq!(other, whole, "other fields are ignored");
    }
}

#[tokio::test]
async fn the_media_type_of_the_reply_is_negotiated_before_the_object_is_read() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments/x/scale?resourceVersion=none");
    let unknown = "application/json;as=Table;v=v9;g=meta.k8s.io";
    api.request(Method::GET, &path).accept(unknown).send().await.is(406);
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "x")).await.is(201);
    let list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let reply = api.request(Method::GET, &format!("{path}/x")).accept(list).send().await.is(500);
    assert_eq!(reply.text_at("/message"), "content is not a list");
}

#[tokio::test]
async fn a_long_list_in_yaml_and_in_indented_json_is_written_item_by_item() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    for name in ["a", "b", "c"] {
        let data = json!({"text": format!("# {}\n  more: 'x'\n", "long ".repeat(40_000)), "empty": "", "number": "1"});
        api.post(&path, json!({"metadata": {"name": name}, "data": data})).await.is(201);
    }
    let list = api.get(&path).await.is(200);
    let yaml = api.request(Method::GET, &path).accept("application/yaml").send().await.is(200);
    assert_eq!(yaml.header("content-length"), None, "the list is a stream");
    if api.is_shared() {
        // The real server wraps texts in YAML, and the versions of two lists differ.
        let found: Value = serde_saphyr::from_str(std::str::from_utf8(&yaml.body).unwrap()).unwrap();
        assert_eq!(found["items"], list.json()["items"]);
        return;
    }
    assert_eq!(String::from_utf8_lossy(&yaml.body), windlass_wire::to_yaml(&list.json()).unwrap());
    let pretty = api.get(&format!("{path}?pretty=true")).await.is(200);
    let text = String::from_utf8_lossy(&pretty.body).into_owned();
    let short: String = text.lines().map(str::trim_start).collect::<String>().replace("\": ", "\":");
    assert_eq!(short, String::from_utf8_lossy(&list.body).trim_end());
    assert_eq!(text.matches("\n    },\n    {\n      \"").count(), 2);
    assert!(text.ends_with("\n    }\n  ]\n}"), "{}", &text[text.len() - 100..]);
    let table = format!("{TABLE};q=0.9");
    let rows = api.request(Method::GET, &format!("{path}?pretty=true&includeObject=Object"));
    let rows = rows.accept(&table).send().await.is(200);
    assert_eq!(rows.json()["rows"].as_array().unwrap().len(), 3);
}
