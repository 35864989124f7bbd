//! Server-side apply, and who manages which field.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{config_map, deployment, group, pod, widget, widgets, widgets_path};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, Reply, STRATEGIC_PATCH};

const APPLY: &str = "application/apply-patch+yaml";

/// Applies as a manager.
async fn apply(api: &Api, path: &str, manager: &str, configuration: Value) -> Reply {
    api.patch(&format!("{path}?fieldManager={manager}"), APPLY, configuration).await
}

async fn force(api: &Api, path: &str, manager: &str, configuration: Value) -> Reply {
    api.patch(&format!("{path}?fieldManager={manager}&force=true"), APPLY, configuration).await
}

#[tokio::test]
async fn an_apply_creates_what_is_not_there() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a");
    apply(&api, &path, "one", config_map("a")).await.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "data": {
            "k": "v"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "one Apply v1: {'f:data':{'f:k':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    let again = apply(&api, &path, "one", config_map("a")).await.is(200);
    assert_eq!(again.at("/metadata/managedFields"), api.get(&path).await.at("/metadata/managedFields"));
}

#[tokio::test]
async fn an_apply_that_changes_nothing_writes_nothing() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments/a");
    let first = apply(&api, &path, "one", deployment("a")).await.is(201);
    let second = apply(&api, &path, "one", deployment("a")).await.is(200);
    assert_eq!(first.json(), second.json());
    let shared = apply(&api, &path, "two", deployment("a")).await.is(200);
    assert!(shared.version() > first.version(), "a second owner is a change");
    shared.shows(expect![[r#"
        200
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "two Apply apps/v1 without time: {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:metadata':{'f:labels':{'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}}",
              "one Apply apps/v1: {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:metadata':{'f:labels':{'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": 0,
            "revisionHistoryLimit": 10,
            "selector": {
              "matchLabels": {
                "app": "a"
              }
            },
            "strategy": {
              "rollingUpdate": {
                "maxSurge": "25%",
                "maxUnavailable": "25%"
              },
              "type": "RollingUpdate"
            },
            "template": {
              "metadata": {
                "labels": {
                  "app": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "nginx",
                    "imagePullPolicy": "Always",
                    "name": "main",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {}
        }"#]]);
}

#[tokio::test]
async fn what_others_own_is_a_conflict_unless_forced() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a");
    apply(&api, &path, "one", config_map("a")).await.is(201);
    api.patch(&path, MERGE_PATCH, json!({"data": {"n": "x"}, "metadata": {"labels": {"l": "x"}}}))
        .await
        .is(200);
    let mut wanted = config_map("a");
    wanted["data"] = json!({"k": "w", "n": "y"});
    wanted["metadata"]["labels"] = json!({"l": "y"});
    apply(&api, &path, "two", wanted.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 3 conflicts: conflicts with "api-test" using v1:
        - .data.n
        - .metadata.labels.l
        conflicts with "one":
        - .data.k
        - FieldManagerConflict .data.k: conflict with "one"
        - FieldManagerConflict .data.n: conflict with "api-test" using v1
        - FieldManagerConflict .metadata.labels.l: conflict with "api-test" using v1"#]]);
    wanted["metadata"].as_object_mut().unwrap().remove("labels");
    wanted["data"] = json!({"k": "w"});
    apply(&api, &path, "two", wanted.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "one": .data.k
        - FieldManagerConflict .data.k: conflict with "one""#]]);
    force(&api, &path, "two", wanted).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "w",
            "n": "x"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "labels": {
              "l": "x"
            },
            "managedFields": [
              "two Apply v1: {'f:data':{'f:k':{}}}",
              "api-test Update v1: {'f:data':{'f:n':{}},'f:metadata':{'f:labels':{'.':{},'f:l':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
}

#[tokio::test]
async fn an_apply_removes_what_only_its_manager_owned() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a");
    let with = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    apply(&api, &path, "one", with(json!({"a": "1", "b": "2", "c": "3"}))).await.is(201);
    apply(&api, &path, "two", with(json!({"b": "2"}))).await.is(200);
    api.patch(&path, MERGE_PATCH, json!({"data": {"c": "3", "d": "4"}})).await.is(200);
    apply(&api, &path, "one", with(json!({}))).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "b": "2",
            "d": "4"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "two Apply v1 without time: {'f:data':{'f:b':{}}}",
              "one Apply v1: {'f:data':{}}",
              "api-test Update v1: {'f:data':{'f:d':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    apply(&api, &path, "one", json!({"apiVersion": "v1", "kind": "ConfigMap"})).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "b": "2",
            "d": "4"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "two Apply v1 without time: {'f:data':{'f:b':{}}}",
              "api-test Update v1: {'f:data':{'f:d':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
}

#[tokio::test]
async fn lists_are_merged_by_their_keys() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments/a");
    let mut wanted = deployment("a");
    let containers = "/spec/template/spec/containers";
    *wanted.pointer_mut(containers).unwrap() = json!([
        {"name": "main", "image": "nginx", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
         "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "side", "image": "side"}
    ]);
    apply(&api, &path, "one", wanted.clone()).await.is(201);
    let mut other = deployment("a");
    other["spec"] = json!({"template": {"spec": {
        "containers": [{"name": "extra", "image": "extra"}, {"name": "main", "env": [{"name": "C", "value": "3"}]}]
    }}});
    apply(&api, &path, "two", other).await.shows(expect![[r#"
        200
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 2,
            "managedFields": [
              "one Apply apps/v1: {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:metadata':{'f:labels':{'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:env':{'k:{\\'name\\':\\'A\\'}':{'.':{},'f:name':{},'f:value':{}},'k:{\\'name\\':\\'B\\'}':{'.':{},'f:name':{},'f:value':{}}},'f:image':{},'f:name':{},'f:ports':{'k:{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:containerPort':{}},'k:{\\'containerPort\\':80,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:containerPort':{},'f:protocol':{}}}},'k:{\\'name\\':\\'side\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}}",
              "two Apply apps/v1: {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'extra\\'}':{'.':{},'f:image':{},'f:name':{}},'k:{\\'name\\':\\'main\\'}':{'.':{},'f:env':{'k:{\\'name\\':\\'C\\'}':{'.':{},'f:name':{},'f:value':{}}},'f:name':{}}}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": 0,
            "revisionHistoryLimit": 10,
            "selector": {
              "matchLabels": {
                "app": "a"
              }
            },
            "strategy": {
              "rollingUpdate": {
                "maxSurge": "25%",
                "maxUnavailable": "25%"
              },
              "type": "RollingUpdate"
            },
            "template": {
              "metadata": {
                "labels": {
                  "app": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "extra",
                    "imagePullPolicy": "Always",
                    "name": "extra",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  },
                  {
                    "env": [
                      {
                        "name": "A",
                        "value": "1"
                      },
                      {
                        "name": "B",
                        "value": "2"
                      },
                      {
                        "name": "C",
                        "value": "3"
                      }
                    ],
                    "image": "nginx",
                    "imagePullPolicy": "Always",
                    "name": "main",
                    "ports": [
                      {
                        "containerPort": 80,
                        "protocol": "TCP"
                      },
                      {
                        "containerPort": 80,
                        "protocol": "UDP"
                      }
                    ],
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  },
                  {
                    "image": "side",
                    "imagePullPolicy": "Always",
                    "name": "side",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {}
        }"#]]);
    wanted.pointer_mut(containers).unwrap().as_array_mut().unwrap().remove(1);
    wanted.pointer_mut(&format!("{containers}/0/env")).unwrap().as_array_mut().unwrap().remove(0);
    wanted.pointer_mut(&format!("{containers}/0/ports")).unwrap().as_array_mut().unwrap().remove(0);
    apply(&api, &path, "one", wanted).await.shows(expect![[r#"
        200
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 3,
            "managedFields": [
              "one Apply apps/v1: {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:metadata':{'f:labels':{'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:env':{'k:{\\'name\\':\\'B\\'}':{'.':{},'f:name':{},'f:value':{}}},'f:image':{},'f:name':{},'f:ports':{'k:{\\'containerPort\\':80,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:containerPort':{},'f:protocol':{}}}}}}}}}",
              "two Apply apps/v1: {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'extra\\'}':{'.':{},'f:image':{},'f:name':{}},'k:{\\'name\\':\\'main\\'}':{'.':{},'f:env':{'k:{\\'name\\':\\'C\\'}':{'.':{},'f:name':{},'f:value':{}}},'f:name':{}}}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": 0,
            "revisionHistoryLimit": 10,
            "selector": {
              "matchLabels": {
                "app": "a"
              }
            },
            "strategy": {
              "rollingUpdate": {
                "maxSurge": "25%",
                "maxUnavailable": "25%"
              },
              "type": "RollingUpdate"
            },
            "template": {
              "metadata": {
                "labels": {
                  "app": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "extra",
                    "imagePullPolicy": "Always",
                    "name": "extra",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  },
                  {
                    "env": [
                      {
                        "name": "B",
                        "value": "2"
                      },
                      {
                        "name": "C",
                        "value": "3"
                      }
                    ],
                    "image": "nginx",
                    "imagePullPolicy": "Always",
                    "name": "main",
                    "ports": [
                      {
                        "containerPort": 80,
                        "protocol": "UDP"
                      }
                    ],
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {}
        }"#]]);
}

#[tokio::test]
async fn a_service_keeps_ports_of_the_same_number() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services/a");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {
        "clusterIP": "None", "selector": {"a": "b"},
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]
    }});
    apply(&api, &path, "one", service).await.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "Service",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "one Apply v1: {'f:spec':{'f:clusterIP':{},'f:ports':{'k:{\\'port\\':53,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},'f:port':{}},'k:{\\'port\\':53,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:name':{},'f:port':{},'f:protocol':{}}},'f:selector':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "clusterIP": "None",
            "clusterIPs": [
              "None"
            ],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": [
              "IPv4"
            ],
            "ipFamilyPolicy": "SingleStack",
            "ports": [
              {
                "name": "dns",
                "port": 53,
                "protocol": "UDP",
                "targetPort": 53
              },
              {
                "name": "dns-tcp",
                "port": 53,
                "protocol": "TCP",
                "targetPort": 53
              }
            ],
            "selector": {
              "a": "b"
            },
            "sessionAffinity": "None",
            "type": "ClusterIP"
          },
          "status": {
            "loadBalancer": {}
          }
        }"#]]);
    let patch = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 53, "protocol": "TCP", "targetPort": 54}]}});
    apply(&api, &path, "two", patch).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "kind": "Service",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "one Apply v1: {'f:spec':{'f:clusterIP':{},'f:ports':{'k:{\\'port\\':53,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},'f:port':{}},'k:{\\'port\\':53,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:name':{},'f:port':{},'f:protocol':{}}},'f:selector':{}}}",
              "two Apply v1: {'f:spec':{'f:ports':{'k:{\\'port\\':53,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{},'f:protocol':{},'f:targetPort':{}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "clusterIP": "None",
            "clusterIPs": [
              "None"
            ],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": [
              "IPv4"
            ],
            "ipFamilyPolicy": "SingleStack",
            "ports": [
              {
                "name": "dns",
                "port": 53,
                "protocol": "UDP",
                "targetPort": 53
              },
              {
                "name": "dns-tcp",
                "port": 53,
                "protocol": "TCP",
                "targetPort": 54
              }
            ],
            "selector": {
              "a": "b"
            },
            "sessionAffinity": "None",
            "type": "ClusterIP"
          },
          "status": {
            "loadBalancer": {}
          }
        }"#]]);
}

#[tokio::test]
async fn a_configuration_is_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a");
    let text = |text: &'static str| {
        let (api, path) = (&api, format!("{path}?fieldManager=one"));
        async move { api.request(Method::PATCH, &path).body(APPLY, text).send().await }
    };
    text("[1]").await.shows(expect!["400 BadRequest: error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"]);
    text("").await.shows(expect!["400 BadRequest: invalid object type: /, Kind="]);
    let reply = text("a: b: c").await.is(400);
    assert!(reply.text_at("/message").starts_with("error encoding patch: yaml: "), "{reply}");
    let reply = text("{").await.is(400);
    let head = "error decoding patch: error converting YAML to JSON: yaml: ";
    assert!(reply.text_at("/message").starts_with(head), "{reply}");
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}"#).await.shows(expect![
        "400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided"
    ]);
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}"#)
        .await
        .shows(expect!["400 BadRequest: the name of the object (b) does not match the name on the URL (a)"]);
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "elsewhere"}}"#)
        .await
        .shows(expect!["400 BadRequest: the namespace of the provided object does not match the namespace sent on the request"]);
    text(r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}"#)
        .await
        .shows(expect!["400 BadRequest: invalid object type: /v1, Kind=Secret"]);
    text(r#"{"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}"#)
        .await
        .shows(expect!["400 BadRequest: invalid object type: /v2, Kind=ConfigMap"]);
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": []}}"#)
        .await
        .shows(expect!["400 BadRequest: metadata.managedFields must be nil"]);
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}}"#)
        .await
        .shows(expect![[r#"
            409 Conflict: Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid u, and no existing object was found
            kind="configmaps" name="a""#]]);
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "other": {}}"#).await.shows(expect!["500 -: failed to create typed patch object (/a; /v1, Kind=ConfigMap): .other: field not declared in schema"]);
    text(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": []}"#)
        .await
        .shows(expect!["500 -: failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data: expected map, got &{[]}"]);
    api.patch(&path, APPLY, config_map("a")).await.shows(expect![[r#"
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch
        group="meta.k8s.io" kind="PatchOptions"
        - FieldValueRequired fieldManager: Required value: is required for apply patch"#]]);
    api.patch(&format!("{path}?force=true"), MERGE_PATCH, json!({})).await.shows(expect![[r#"
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch
        group="meta.k8s.io" kind="PatchOptions"
        - FieldValueForbidden force: Forbidden: may not be specified for non-apply patch"#]]);
    api.patch(&format!("{path}?fieldManager=one&dryRun=All"), APPLY, config_map("a")).await.is(201);
    api.get(&path).await.is(404);
}

#[tokio::test]
async fn a_list_with_two_elements_of_one_key_is_no_configuration() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods/a");
    let mut twice = pod("a");
    twice["spec"]["containers"] = json!([{"name": "x", "image": "a"}, {"name": "x", "image": "b"}]);
    twice["metadata"]["finalizers"] = json!(["a/b", "a/b"]);
    apply(&api, &path, "one", twice).await.shows(expect![[r#"
        500 -: failed to create typed patch object (/a; /v1, Kind=Pod): errors:
          .metadata.finalizers: duplicate entries for key [="a/b"]
          .spec.containers: duplicate entries for key [name="x"]"#]]);
    let mut nameless = pod("a");
    nameless["spec"]["containers"] = json!([{"image": "a"}]);
    apply(&api, &path, "one", nameless).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers[0].name: Required value
        kind="Pod" name="a"
        - FieldValueRequired spec.containers[0].name: Required value"#]]);
}

#[tokio::test]
async fn fields_given_twice_are_a_warning_or_an_error() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a?fieldManager=one");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\ndata: {k: w}\n";
    let send = |query: &'static str| {
        let (api, path) = (&api, format!("{path}{query}"));
        async move { api.request(Method::PATCH, &path).body(APPLY, text).send().await }
    };
    send("&fieldValidation=Strict").await.shows(expect![[r#"
        400 BadRequest: error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:
          line 5: key "data" already set in map"#]]);
    send("&fieldValidation=Ignore").await.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "data": {
            "k": "w"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "one Apply v1: {'f:data':{'f:k':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    send("").await.is(200);
}

#[tokio::test]
async fn updates_are_tracked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&format!("{path}?fieldManager=creator"), deployment("a")).await.is(201);
    let path = format!("{path}/a");
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}, {"name": "more", "image": "m"}]}}}});
    api.patch(&format!("{path}?fieldManager=strategic"), STRATEGIC_PATCH, strategic).await.is(200);
    let status = json!({"status": {"replicas": 1, "observedGeneration": 1}, "metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 7}});
    api.patch(&format!("{path}/status?fieldManager=status"), MERGE_PATCH, status).await.is(200);
    let mut object = api.get(&path).await.json();
    object["spec"]["paused"] = json!(true);
    object["spec"].as_object_mut().unwrap().remove("revisionHistoryLimit");
    object["metadata"]["resourceVersion"] = json!("");
    api.put(&format!("{path}?fieldManager=replacer"), object).await.shows(expect![[r#"
        200
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "annotations": {
              "a": "b"
            },
            "creationTimestamp": "TIME",
            "generation": 3,
            "managedFields": [
              "creator Update apps/v1: {'f:spec':{'f:progressDeadlineSeconds':{},'f:replicas':{},'f:revisionHistoryLimit':{},'f:selector':{},'f:strategy':{'f:rollingUpdate':{'.':{},'f:maxSurge':{},'f:maxUnavailable':{}},'f:type':{}},'f:template':{'f:metadata':{'f:labels':{'.':{},'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:imagePullPolicy':{},'f:name':{},'f:resources':{},'f:terminationMessagePath':{},'f:terminationMessagePolicy':{}}},'f:dnsPolicy':{},'f:restartPolicy':{},'f:schedulerName':{},'f:securityContext':{},'f:terminationGracePeriodSeconds':{}}}}}",
              "replacer Update apps/v1: {'f:spec':{'f:paused':{}}}",
              "status Update apps/v1 status: {'f:metadata':{'f:annotations':{'.':{},'f:a':{}}},'f:status':{'f:observedGeneration':{},'f:replicas':{}}}",
              "strategic Update apps/v1: {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'f:image':{}},'k:{\\'name\\':\\'more\\'}':{'.':{},'f:image':{},'f:imagePullPolicy':{},'f:name':{},'f:resources':{},'f:terminationMessagePath':{},'f:terminationMessagePolicy':{}}}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "paused": true,
            "progressDeadlineSeconds": 600,
            "replicas": 0,
            "revisionHistoryLimit": 10,
            "selector": {
              "matchLabels": {
                "app": "a"
              }
            },
            "strategy": {
              "rollingUpdate": {
                "maxSurge": "25%",
                "maxUnavailable": "25%"
              },
              "type": "RollingUpdate"
            },
            "template": {
              "metadata": {
                "labels": {
                  "app": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "other",
                    "imagePullPolicy": "Always",
                    "name": "main",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  },
                  {
                    "image": "m",
                    "imagePullPolicy": "Always",
                    "name": "more",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {
            "observedGeneration": 1,
            "replicas": 1
          }
        }"#]]);
    let patch = json!([{"op": "remove", "path": "/spec/template/spec/containers/1"}]);
    api.patch(&path, JSON_PATCH, patch).await.shows(expect![[r#"
        200
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "annotations": {
              "a": "b"
            },
            "creationTimestamp": "TIME",
            "generation": 4,
            "managedFields": [
              "creator Update apps/v1: {'f:spec':{'f:progressDeadlineSeconds':{},'f:replicas':{},'f:revisionHistoryLimit':{},'f:selector':{},'f:strategy':{'f:rollingUpdate':{'.':{},'f:maxSurge':{},'f:maxUnavailable':{}},'f:type':{}},'f:template':{'f:metadata':{'f:labels':{'.':{},'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:imagePullPolicy':{},'f:name':{},'f:resources':{},'f:terminationMessagePath':{},'f:terminationMessagePolicy':{}}},'f:dnsPolicy':{},'f:restartPolicy':{},'f:schedulerName':{},'f:securityContext':{},'f:terminationGracePeriodSeconds':{}}}}}",
              "replacer Update apps/v1: {'f:spec':{'f:paused':{}}}",
              "status Update apps/v1 status: {'f:metadata':{'f:annotations':{'.':{},'f:a':{}}},'f:status':{'f:observedGeneration':{},'f:replicas':{}}}",
              "strategic Update apps/v1: {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'f:image':{}}}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "paused": true,
            "progressDeadlineSeconds": 600,
            "replicas": 0,
            "revisionHistoryLimit": 10,
            "selector": {
              "matchLabels": {
                "app": "a"
              }
            },
            "strategy": {
              "rollingUpdate": {
                "maxSurge": "25%",
                "maxUnavailable": "25%"
              },
              "type": "RollingUpdate"
            },
            "template": {
              "metadata": {
                "labels": {
                  "app": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "other",
                    "imagePullPolicy": "Always",
                    "name": "main",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {
            "observedGeneration": 1,
            "replicas": 1
          }
        }"#]]);
}

#[tokio::test]
async fn the_scale_has_managers_of_its_own() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments/a");
    apply(&api, &path, "one", deployment("a")).await.is(201);
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2}});
    apply(&api, &format!("{path}/scale"), "scaler", scale.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.replicas
        - FieldManagerConflict .spec.replicas: conflict with "one""#]]);
    force(&api, &format!("{path}/scale"), "scaler", scale).await.shows(expect![[r#"
        200
        {
          "apiVersion": "autoscaling/v1",
          "kind": "Scale",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "replicas": 2
          },
          "status": {
            "replicas": 0,
            "selector": "app=a"
          }
        }"#]]);
    let entries = |reply: &Reply| reply.json()["metadata"]["managedFields"].as_array().unwrap().len();
    assert_eq!(entries(&api.get(&path).await), 2);
    api.patch(&format!("{path}/scale?fieldManager=hpa"), MERGE_PATCH, json!({"spec": {"replicas": 3}}))
        .await
        .is(200);
    api.get(&path).await.shows(expect![[r#"
        200
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 3,
            "managedFields": [
              "one Apply apps/v1: {'f:spec':{'f:selector':{},'f:template':{'f:metadata':{'f:labels':{'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}}",
              "hpa Update apps/v1 scale without time: {'f:spec':{'f:replicas':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": 3,
            "revisionHistoryLimit": 10,
            "selector": {
              "matchLabels": {
                "app": "a"
              }
            },
            "strategy": {
              "rollingUpdate": {
                "maxSurge": "25%",
                "maxUnavailable": "25%"
              },
              "type": "RollingUpdate"
            },
            "template": {
              "metadata": {
                "labels": {
                  "app": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "nginx",
                    "imagePullPolicy": "Always",
                    "name": "main",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {}
        }"#]]);
}

#[tokio::test]
async fn whoever_empties_the_list_ends_the_tracking() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a");
    apply(&api, &path, "one", config_map("a")).await.is(201);
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"managedFields": [{}]}})).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    api.patch(&path, MERGE_PATCH, json!({"data": {"n": "w"}})).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v",
            "n": "w"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    apply(&api, &path, "two", config_map("a")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v",
            "n": "w"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "two Apply v1 without time: {'f:data':{'f:k':{}}}",
              "before-first-apply Update v1: {'f:data':{'.':{},'f:k':{},'f:n':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    api.patch(&path, JSON_PATCH, json!([{"op": "replace", "path": "/metadata/managedFields", "value": []}]))
        .await
        .shows(expect![[r#"
            200
            {
              "apiVersion": "v1",
              "data": {
                "k": "v",
                "n": "w"
              },
              "kind": "ConfigMap",
              "metadata": {
                "creationTimestamp": "TIME",
                "name": "a",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              }
            }"#]]);
    let wrong =
        json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{"operation": "Dance"}]}]);
    api.patch(&path, JSON_PATCH, wrong).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v",
            "n": "w"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
}

#[tokio::test]
async fn a_client_may_rewrite_the_list() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/a");
    let created = apply(&api, &path, "one", config_map("a")).await.is(201);
    let mut entries = created.at("/metadata/managedFields");
    entries[0]["manager"] = json!("renamed");
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": entries}]);
    api.patch(&path, JSON_PATCH, patch).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "renamed Apply v1: {'f:data':{'f:k':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
}

#[tokio::test]
async fn the_oldest_updaters_are_merged() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let mut last = None;
    for number in 0..12 {
        let patch = json!({"data": {format!("k{number}"): "v"}});
        last =
            Some(api.patch(&format!("{path}/a?fieldManager=m{number:02}"), MERGE_PATCH, patch).await.is(200));
    }
    let entries = last.unwrap().at("/metadata/managedFields");
    let managers: Vec<_> = entries.as_array().unwrap().iter().map(|entry| entry["manager"].clone()).collect();
    assert_eq!(managers.len(), 10, "{managers:?}");
    assert!(managers.contains(&json!("ancient-changes")), "{managers:?}");
}

#[tokio::test]
async fn kubectl_takes_over_what_it_applied_on_its_side() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let last = config_map("a");
    let mut object = config_map("a");
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": format!("{last}\n")});
    api.post(&format!("{path}?fieldManager=kubectl-client-side-apply"), object).await.is(201);
    let path = format!("{path}/a");
    let mut wanted = config_map("a");
    wanted["data"]["k"] = json!("w");
    apply(&api, &path, "other", wanted.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.k
        - FieldManagerConflict .data.k: conflict with "kubectl-client-side-apply" using v1"#]]);
    apply(&api, &path, "kubectl", wanted.clone()).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "w"
          },
          "kind": "ConfigMap",
          "metadata": {
            "annotations": {
              "kubectl.kubernetes.io/last-applied-configuration": "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"w\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"
            },
            "creationTimestamp": "TIME",
            "managedFields": [
              "kubectl Apply v1: {'f:data':{'f:k':{}}}",
              "kubectl-client-side-apply Update v1: {'f:data':{},'f:metadata':{'f:annotations':{'.':{},'f:kubectl.kubernetes.io/last-applied-configuration':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    api.patch(&path, MERGE_PATCH, json!({"data": {"k": "x"}})).await.is(200);
    apply(&api, &path, "kubectl", wanted).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "api-test" using v1: .data.k
        - FieldManagerConflict .data.k: conflict with "api-test" using v1"#]]);
}

#[tokio::test]
async fn custom_resources_are_applied() {
    let api = Api::start();
    let path = format!("{}/a", widgets_path(&api).await);
    let mut wanted = widget(&api, "a");
    wanted["spec"]["tags"] = json!(["x", "y"]);
    wanted["status"] = json!({"phase": "ignored"});
    apply(&api, &path, "one", wanted.clone()).await.shows(expect![[r#"
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "one Apply ID.example.com/v1: {'f:spec':{'f:size':{},'f:tags':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3,
            "tags": [
              "x",
              "y"
            ]
          }
        }"#]]);
    let status = json!({"apiVersion": wanted["apiVersion"], "kind": "Widget", "metadata": {"name": "a", "labels": {"l": "v"}}, "status": {"phase": "Ready"}, "spec": {"size": 9}});
    apply(&api, &format!("{path}/status"), "controller", status).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "controller Apply ID.example.com/v1 status: {'f:status':{'f:phase':{}}}",
              "one Apply ID.example.com/v1: {'f:spec':{'f:size':{},'f:tags':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3,
            "tags": [
              "x",
              "y"
            ]
          },
          "status": {
            "phase": "Ready"
          }
        }"#]]);
    let mut other = widget(&api, "a");
    other["spec"] = json!({"tags": ["z"], "colour": "green"});
    apply(&api, &path, "two", other.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.tags
        - FieldManagerConflict .spec.tags: conflict with "one""#]]);
    other["spec"] = json!({"nothing": 1});
    apply(&api, &path, "two", other).await.shows(expect!["500 -: failed to create typed patch object (/a; ID.example.com/v1, Kind=Widget): .spec.nothing: field not declared in schema"]);
    let mut invalid = widget(&api, "a");
    invalid["spec"]["size"] = json!(99);
    force(&api, &path, "one", invalid).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.size: Invalid value: 99: spec.size in body should be less than or equal to 10
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.size: Invalid value: 99: spec.size in body should be less than or equal to 10"#]]);
}

/// A definition with lists and maps of every type.
fn shapes(api: &Api) -> Value {
    let mut definition = widgets(api);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": {"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer", "default": 80}, "value": {"type": "string"}, "more": {"type": "string"}}}},
        "atomic": {"type": "array", "items": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true}
    }}});
    definition
}

#[tokio::test]
async fn lists_and_maps_of_a_definition_are_merged_by_their_types() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(shapes(&api)).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets/a", group(&api));
    let object = |spec: Value| json!({"apiVersion": format!("{}/v1", group(&api)), "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
    let one = object(json!({
        "set": ["a", "b"], "map": [{"name": "x", "value": "1"}, {"name": "x", "port": 81, "value": "2"}], "atomic": ["a"],
        "whole": {"a": "1"}, "labels": {"a": "1"}, "any": {"deep": {"a": [1, {"b": 2}]}, "n": null}, "either": 5
    }));
    apply(&api, &path, "one", one.clone()).await.shows(expect![[r#"
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "one Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:a':{}},'f:n':{}},'f:atomic':{},'f:either':{},'f:labels':{'f:a':{}},'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'.':{},'f:name':{},'f:value':{}},'k:{\\'name\\':\\'x\\',\\'port\\':81}':{'.':{},'f:name':{},'f:port':{},'f:value':{}}},'f:set':{'v:\\'a\\'':{},'v:\\'b\\'':{}},'f:whole':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "any": {
              "deep": {
                "a": [
                  1,
                  {
                    "b": 2
                  }
                ]
              },
              "n": null
            },
            "atomic": [
              "a"
            ],
            "either": 5,
            "labels": {
              "a": "1"
            },
            "map": [
              {
                "name": "x",
                "port": 80,
                "value": "1"
              },
              {
                "name": "x",
                "port": 81,
                "value": "2"
              }
            ],
            "set": [
              "a",
              "b"
            ],
            "whole": {
              "a": "1"
            }
          }
        }"#]]);
    let two = object(json!({
        "set": ["b", "c"], "map": [{"name": "x", "port": 80, "more": "m"}, {"name": "y", "value": "3"}],
        "labels": {"b": "2"}, "any": {"deep": {"c": 3}}
    }));
    apply(&api, &path, "two", two).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 2,
            "managedFields": [
              "one Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:a':{}},'f:n':{}},'f:atomic':{},'f:either':{},'f:labels':{'f:a':{}},'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'.':{},'f:name':{},'f:value':{}},'k:{\\'name\\':\\'x\\',\\'port\\':81}':{'.':{},'f:name':{},'f:port':{},'f:value':{}}},'f:set':{'v:\\'a\\'':{},'v:\\'b\\'':{}},'f:whole':{}}}",
              "two Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:c':{}}},'f:labels':{'f:b':{}},'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'.':{},'f:more':{},'f:name':{},'f:port':{}},'k:{\\'name\\':\\'y\\',\\'port\\':80}':{'.':{},'f:name':{},'f:value':{}}},'f:set':{'v:\\'b\\'':{},'v:\\'c\\'':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "any": {
              "deep": {
                "a": [
                  1,
                  {
                    "b": 2
                  }
                ],
                "c": 3
              },
              "n": null
            },
            "atomic": [
              "a"
            ],
            "either": 5,
            "labels": {
              "a": "1",
              "b": "2"
            },
            "map": [
              {
                "more": "m",
                "name": "x",
                "port": 80,
                "value": "1"
              },
              {
                "name": "x",
                "port": 81,
                "value": "2"
              },
              {
                "name": "y",
                "port": 80,
                "value": "3"
              }
            ],
            "set": [
              "a",
              "b",
              "c"
            ],
            "whole": {
              "a": "1"
            }
          }
        }"#]]);
    let conflicting =
        object(json!({"atomic": ["b"], "whole": {"b": "2"}, "any": {"deep": {"a": []}}, "either": "5"}));
    apply(&api, &path, "three", conflicting.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 4 conflicts: conflicts with "one":
        - .spec.atomic
        - .spec.either
        - .spec.whole
        - .spec.any.deep.a
        - FieldManagerConflict .spec.any.deep.a: conflict with "one"
        - FieldManagerConflict .spec.atomic: conflict with "one"
        - FieldManagerConflict .spec.either: conflict with "one"
        - FieldManagerConflict .spec.whole: conflict with "one""#]]);
    force(&api, &path, "three", conflicting).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 3,
            "managedFields": [
              "one Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{},'f:n':{}},'f:labels':{'f:a':{}},'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'.':{},'f:name':{},'f:value':{}},'k:{\\'name\\':\\'x\\',\\'port\\':81}':{'.':{},'f:name':{},'f:port':{},'f:value':{}}},'f:set':{'v:\\'a\\'':{},'v:\\'b\\'':{}}}}",
              "three Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:a':{}}},'f:atomic':{},'f:either':{},'f:whole':{}}}",
              "two Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:c':{}}},'f:labels':{'f:b':{}},'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'.':{},'f:more':{},'f:name':{},'f:port':{}},'k:{\\'name\\':\\'y\\',\\'port\\':80}':{'.':{},'f:name':{},'f:value':{}}},'f:set':{'v:\\'b\\'':{},'v:\\'c\\'':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "any": {
              "deep": {
                "a": [],
                "c": 3
              },
              "n": null
            },
            "atomic": [
              "b"
            ],
            "either": "5",
            "labels": {
              "a": "1",
              "b": "2"
            },
            "map": [
              {
                "more": "m",
                "name": "x",
                "port": 80,
                "value": "1"
              },
              {
                "name": "x",
                "port": 81,
                "value": "2"
              },
              {
                "name": "y",
                "port": 80,
                "value": "3"
              }
            ],
            "set": [
              "a",
              "b",
              "c"
            ],
            "whole": {
              "b": "2"
            }
          }
        }"#]]);
    let less = object(json!({"set": ["b"], "map": [{"name": "x", "port": 81}]}));
    apply(&api, &path, "one", less).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 4,
            "managedFields": [
              "one Apply ID.example.com/v1: {'f:spec':{'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':81}':{'.':{},'f:name':{},'f:port':{}}},'f:set':{'v:\\'b\\'':{}}}}",
              "three Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:a':{}}},'f:atomic':{},'f:either':{},'f:whole':{}}}",
              "two Apply ID.example.com/v1: {'f:spec':{'f:any':{'f:deep':{'.':{},'f:c':{}}},'f:labels':{'f:b':{}},'f:map':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'.':{},'f:more':{},'f:name':{},'f:port':{}},'k:{\\'name\\':\\'y\\',\\'port\\':80}':{'.':{},'f:name':{},'f:value':{}}},'f:set':{'v:\\'b\\'':{},'v:\\'c\\'':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "any": {
              "deep": {
                "a": [],
                "c": 3
              }
            },
            "atomic": [
              "b"
            ],
            "either": "5",
            "labels": {
              "b": "2"
            },
            "map": [
              {
                "more": "m",
                "name": "x",
                "port": 80
              },
              {
                "name": "x",
                "port": 81
              },
              {
                "name": "y",
                "port": 80,
                "value": "3"
              }
            ],
            "set": [
              "b",
              "c"
            ],
            "whole": {
              "b": "2"
            }
          }
        }"#]]);
    let twice =
        object(json!({"set": ["b", "b"], "map": [{"name": "x"}, {"name": "x", "port": 80}, {"port": 3}]}));
    apply(&api, &path, "one", twice).await.shows(expect![[r#"
        500 -: failed to create typed patch object (/a; ID.example.com/v1, Kind=Widget): errors:
          .spec.map: duplicate entries for key [name="x",port=80]
          .spec.set: duplicate entries for key [="b"]"#]]);
}

#[tokio::test]
async fn managers_write_in_several_versions() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut definition = widgets(&api);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    api.crd(definition).await;
    let path = |version: &str| format!("/apis/{}/{version}/namespaces/{ns}/widgets/a", group(&api));
    let object = |version: &str, spec: Value| json!({"apiVersion": format!("{}/{version}", group(&api)), "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
    apply(&api, &path("v1"), "one", object("v1", json!({"size": 1, "colour": "green"}))).await.is(201);
    apply(&api, &path("v2"), "two", object("v2", json!({"size": 2}))).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.size
        - FieldManagerConflict .spec.size: conflict with "one""#]]);
    apply(&api, &path("v2"), "one", object("v2", json!({"size": 3}))).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v2",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 2,
            "managedFields": [
              "one Apply ID.example.com/v2: {'f:spec':{'f:size':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3
          }
        }"#]]);
    api.patch(&path("v2"), MERGE_PATCH, json!({"spec": {"size": 4}})).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v2",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 3,
            "managedFields": [
              "api-test Update ID.example.com/v2: {'f:spec':{'f:size':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 4
          }
        }"#]]);
    apply(&api, &path("v1"), "one", object("v2", json!({"size": 3})))
        .await
        .shows(expect!["400 BadRequest: invalid object type: ID.example.com/v2, Kind=Widget"]);
}

#[tokio::test]
async fn autoscalers_have_managers_in_two_versions() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/{ns}/horizontalpodautoscalers/a");
    let v1 = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "maxReplicas": 5, "targetCPUUtilizationPercentage": 50
    }});
    apply(&api, &path("v1"), "one", v1).await.shows(expect![[r#"
        201
        {
          "apiVersion": "autoscaling/v1",
          "kind": "HorizontalPodAutoscaler",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "one Apply autoscaling/v1: {'f:spec':{'f:maxReplicas':{},'f:scaleTargetRef':{},'f:targetCPUUtilizationPercentage':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "maxReplicas": 5,
            "minReplicas": 1,
            "scaleTargetRef": {
              "apiVersion": "apps/v1",
              "kind": "Deployment",
              "name": "a"
            },
            "targetCPUUtilizationPercentage": 50
          },
          "status": {
            "currentReplicas": 0,
            "desiredReplicas": 0
          }
        }"#]]);
    let v2 = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": {"maxReplicas": 6}});
    apply(&api, &path("v2"), "two", v2.clone()).await.shows(expect![[r#"
        409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.maxReplicas
        - FieldManagerConflict .spec.maxReplicas: conflict with "one""#]]);
    force(&api, &path("v2"), "two", v2).await.shows(expect![[r#"
        200
        {
          "apiVersion": "autoscaling/v2",
          "kind": "HorizontalPodAutoscaler",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 2,
            "managedFields": [
              "one Apply autoscaling/v1: {'f:spec':{'f:scaleTargetRef':{},'f:targetCPUUtilizationPercentage':{}}}",
              "two Apply autoscaling/v2: {'f:spec':{'f:maxReplicas':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "maxReplicas": 6,
            "metrics": [
              {
                "resource": {
                  "name": "cpu",
                  "target": {
                    "averageUtilization": 50,
                    "type": "Utilization"
                  }
                },
                "type": "Resource"
              }
            ],
            "minReplicas": 1,
            "scaleTargetRef": {
              "apiVersion": "apps/v1",
              "kind": "Deployment",
              "name": "a"
            }
          },
          "status": {
            "currentMetrics": null,
            "desiredReplicas": 0
          }
        }"#]]);
}

#[tokio::test]
async fn subresources_of_pods_are_applied() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods/a");
    apply(&api, &path, "one", pod("a")).await.is(201);
    let status = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "Custom", "status": "True"}]}});
    apply(&api, &format!("{path}/status"), "gate", status).await.is(200);
    let ephemeral = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    apply(&api, &format!("{path}/ephemeralcontainers"), "debugger", ephemeral).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 2,
            "managedFields": [
              "debugger Apply v1 ephemeralcontainers: {'f:metadata':{'f:labels':{'f:x':{}}},'f:spec':{'f:ephemeralContainers':{'k:{\\'name\\':\\'debug\\'}':{'.':{},'f:image':{},'f:name':{}}}}}",
              "gate Apply v1 status: {'f:status':{'f:conditions':{'k:{\\'type\\':\\'Custom\\'}':{'.':{},'f:status':{},'f:type':{}}}}}",
              "one Apply v1: {'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:image':{},'f:name':{}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "containers": [
              {
                "image": "nginx",
                "imagePullPolicy": "Always",
                "name": "main",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File"
              }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "ephemeralContainers": [
              {
                "image": "busybox",
                "imagePullPolicy": "Always",
                "name": "debug",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File"
              }
            ],
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
              {
                "effect": "NoExecute",
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "tolerationSeconds": 300
              },
              {
                "effect": "NoExecute",
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "tolerationSeconds": 300
              }
            ]
          },
          "status": {
            "conditions": [
              {
                "lastProbeTime": null,
                "lastTransitionTime": null,
                "status": "True",
                "type": "Custom"
              }
            ],
            "phase": "Pending",
            "qosClass": "BestEffort"
          }
        }"#]]);
    apply(&api, "/api/v1/namespaces/default/pods/none/status", "one", pod("none")).await.shows(expect![[
        r#"
        404 NotFound: pods "none" not found
        kind="pods" name="none""#
    ]]);
}

#[tokio::test]
async fn the_names_of_managers_are_validated() {
    let api = Api::start();
    let path = format!("/api/v1/namespaces/{}/configmaps/a", api.namespace().await);
    apply(&api, &path, "one", config_map("a")).await.is(201);
    let managed_by = |name: &str| {
        let fields = json!({"f:data": {"f:k": {}}});
        let entry = json!({"manager": name, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields});
        json!({"metadata": {"managedFields": [entry]}})
    };
    for (name, why) in [
        ("m".repeat(129), "Too long: may not be more than 128 bytes"),
        ("m\n".to_owned(), "Invalid value: \"m\\n\": invalid character U+000A (at position 1)"),
    ] {
        let refused = api.patch(&path, MERGE_PATCH, managed_by(&name)).await.is(422);
        let expected = format!("ConfigMap \"a\" is invalid: metadata.managedFields[0].manager: {why}");
        assert_eq!(refused.text_at("/message"), expected);
    }
    api.patch(&path, MERGE_PATCH, managed_by(&"m".repeat(128))).await.is(200);
}

#[tokio::test]
async fn a_deep_configuration_is_read_or_refused() {
    let api = Api::start();
    let configmaps = format!("/api/v1/namespaces/{}/configmaps", api.namespace().await);
    let block: Vec<String> = (0..399).map(|level| format!("{}a:", " ".repeat(level))).collect();
    let block = block.join("\n");
    for (method, path, media_type) in [
        (Method::PATCH, format!("{configmaps}/a?fieldManager=m"), APPLY),
        (Method::POST, configmaps.clone(), "application/yaml"),
    ] {
        for text in
            [block.clone(), format!("{}1{}", "{\"a\": ".repeat(399), "}".repeat(399)), "[".repeat(10_000)]
        {
            let reply = api.request(method.clone(), &path).body(media_type, text).send().await;
            assert!(reply.code >= 400, "{reply}");
        }
    }
    api.get(&configmaps).await.is(200);
}

#[tokio::test]
async fn an_apply_that_creates_a_custom_object_refuses_null() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut configuration = widget(&api, "a");
    configuration["spec"]["tags"] = Value::Null;
    let created = api.post(&path, configuration.clone()).await.is(201);
    assert_eq!(created.at("/spec").get("tags"), None, "a create leaves it out");
    configuration["metadata"]["name"] = json!("b");
    let refused = apply(&api, &format!("{path}/b"), "one", configuration.clone()).await.is(422);
    let message = refused.text_at("/message");
    assert!(message.contains("spec.tags in body must be of type array: \"null\""), "{message}");
    configuration["spec"] = Value::Null;
    let refused = apply(&api, &format!("{path}/b"), "one", configuration).await.is(422);
    let message = refused.text_at("/message");
    assert!(message.ends_with("spec in body must be of type object: \"null\""), "{message}");
}

#[tokio::test]
async fn an_apply_fits_the_types_of_the_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"acquireTime": "2001-01-01 00:00"}
    });
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a?fieldManager=m");
    let reply = api.patch(&path, APPLY, lease).await.is(500);
    assert!(reply.text_at("/message").starts_with("failed to convert new object (/a; "), "{reply}");
}

#[tokio::test]
async fn an_apply_to_an_object_that_breaks_its_schema_names_the_first_manager() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}, "secrets": [{}]});
    api.post(&path, account).await.is(201);
    let configuration = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}});
    let refused = api.patch(&format!("{path}/x?fieldManager=m"), APPLY, configuration).await.is(500);
    let message = refused.text_at("/message");
    assert!(
        message.starts_with("failed to create manager for existing fields: failed to convert new object ("),
        "{message}"
    );
}

#[tokio::test]
async fn an_apply_whose_object_has_a_link_to_itself_is_a_write() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/x?fieldManager=m");
    let mut body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": "v"}});
    let version = api.patch(&path, APPLY, body.clone()).await.is(201).version();
    // The time of the manager, in seconds, is what changes.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(api.patch(&path, APPLY, body.clone()).await.is(200).version(), version);
    body["metadata"]["selfLink"] = json!("/x");
    assert_ne!(api.patch(&path, APPLY, body).await.is(200).version(), version);
}

#[tokio::test]
async fn a_dry_run_of_a_new_apply_keeps_its_resource_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/x?fieldManager=m");
    let mut body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "resourceVersion": "1"}});
    let dry = api.patch(&format!("{path}&dryRun=All"), APPLY, body.clone()).await.is(201);
    assert_eq!(dry.text_at("/metadata/resourceVersion"), "1");
    body["metadata"]["resourceVersion"] = json!("x");
    let refused = api.patch(&path, APPLY, body).await.is(500);
    assert_eq!(refused.text_at("/message"), "strconv.ParseUint: parsing \"x\": invalid syntax");
}
