//! Defaults of the built-in kinds, and refused objects.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{config_map, deployment, pod, secret};
use crate::harness::{Api, MERGE_PATCH, lines};

fn change(mut body: Value, pointer: &str, value: Value) -> Value {
    *body.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    body
}

#[tokio::test]
async fn a_pod_is_filled_in() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/pods"), pod("a")).await.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update v1: {'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:image':{},'f:imagePullPolicy':{},'f:name':{},'f:resources':{},'f:terminationMessagePath':{},'f:terminationMessagePolicy':{}}},'f:dnsPolicy':{},'f:enableServiceLinks':{},'f:restartPolicy':{},'f:schedulerName':{},'f:securityContext':{},'f:terminationGracePeriodSeconds':{}}}"
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
            "phase": "Pending",
            "qosClass": "BestEffort"
          }
        }"#]]);
}

#[tokio::test]
async fn a_pod_with_everything_is_filled_in() {
    let api = Api::start();
    let ns = api.namespace().await;
    let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {
        "initContainers": [{"name": "init", "image": "busybox"}],
        "containers": [{
            "name": "main", "image": "nginx:1.2",
            "ports": [{"containerPort": 80, "name": "http"}],
            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": 0.1}},
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 3},
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            "volumeMounts": [{"name": "c", "mountPath": "/c"}, {"name": "s", "mountPath": "/s", "readOnly": true}]
        }],
        "volumes": [
            {"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}},
            {"name": "e"}, {"name": "h", "hostPath": {"path": "/h"}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}
        ],
        "terminationGracePeriodSeconds": 5, "restartPolicy": "Never",
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    }});
    api.post(&format!("/api/v1/namespaces/{ns}/pods"), body).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.volumes[4].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set
        kind="Pod" name="a"
        - FieldValueForbidden spec.volumes[4].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"#]]);
}

#[tokio::test]
async fn the_image_s_tag_decides_the_pull_policy() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods?dryRun=All");
    for (image, policy) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("r.io:5000/nginx", "Always"),
        ("r.io:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "IfNotPresent"),
    ] {
        let created =
            api.post(&path, change(pod("a"), "/spec/containers/0/image", json!(image))).await.is(201);
        assert_eq!(created.at("/spec/containers/0/imagePullPolicy"), policy, "{image}");
    }
}

#[tokio::test]
async fn a_pod_that_is_wrong_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let spec = |spec: Value| change(pod("a"), "/spec", spec);
    let with = |field: &str, value: Value| {
        let mut body = pod("a");
        body["spec"]["containers"][0][field] = value;
        body
    };
    api.post(&path, spec(json!({}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers: Required value
        kind="Pod" name="a"
        - FieldValueRequired spec.containers: Required value"#]]);
    api.post(&path, spec(json!({"containers": []}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers: Required value
        kind="Pod" name="a"
        - FieldValueRequired spec.containers: Required value"#]]);
    api.post(&path, spec(json!({"containers": [{}]}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueRequired spec.containers[0].image: Required value
        - FieldValueRequired spec.containers[0].name: Required value"#]]);
    api.post(&path, spec(json!({"containers": [{"name": "x", "image": "i"}, {"name": "x", "image": "i"}]})))
        .await
        .shows(expect![[r#"
            422 Invalid: Pod "a" is invalid: spec.containers[1].name: Duplicate value: "x"
            kind="Pod" name="a"
            - FieldValueDuplicate spec.containers[1].name: Duplicate value: "x""#]]);
    api.post(&path, spec(json!({"containers": [{"name": "Bad_Name", "image": "i"}], "restartPolicy": "Sometimes", "dnsPolicy": "x"}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueInvalid spec.containers[0].name: Invalid value: "Bad_Name": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueNotSupported spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"
        - FieldValueNotSupported spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never""#]]);
    api.post(&path, spec(json!({"containers": [{"name": "x", "image": " i "}]}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers[0].image: Invalid value: " i ": must not have leading or trailing whitespace
        kind="Pod" name="a"
        - FieldValueInvalid spec.containers[0].image: Invalid value: " i ": must not have leading or trailing whitespace"#]]);
    api.post(&path, with("imagePullPolicy", json!("Maybe"))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"
        kind="Pod" name="a"
        - FieldValueNotSupported spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never""#]]);
    api.post(&path, with("ports", json!([{"containerPort": 0}, {"containerPort": 70000, "protocol": "ICMP", "name": "Way_Too_Long_For_A_Name"}]))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueInvalid spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive
        - FieldValueInvalid spec.containers[0].ports[1].name: Invalid value: "Way_Too_Long_For_A_Name": must be no more than 15 characters
        - FieldValueInvalid spec.containers[0].ports[1].name: Invalid value: "Way_Too_Long_For_A_Name": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
        - FieldValueNotSupported spec.containers[0].ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"
        - FieldValueRequired spec.containers[0].ports[0].containerPort: Required value"#]]);
    api.post(&path, with("env", json!([{"name": "a=b"}, {"name": "x", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueInvalid spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='
        - FieldValueInvalid spec.containers[0].env[1].valueFrom: Invalid value: "": may not be specified when `value` is not empty"#]]);
    api.post(&path, with("volumeMounts", json!([{"name": "none", "mountPath": "/x"}]))).await.shows(expect![
        [r#"
            422 Invalid: Pod "a" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "none"
            kind="Pod" name="a"
            - FieldValueNotFound spec.containers[0].volumeMounts[0].name: Not found: "none""#]
    ]);
    api.post(&path, with("resources", json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})))
        .await
        .shows(expect![[r#"
            422 Invalid: Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1
            kind="Pod" name="a"
            - FieldValueInvalid spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#]]);
    api.post(&path, with("resources", json!({"requests": {"cpu": "lots"}}))).await.shows(expect![[r#"400 BadRequest: Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"#]]);
    api.post(&path, with("livenessProbe", json!({"periodSeconds": -1}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueInvalid spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0
        - FieldValueRequired spec.containers[0].livenessProbe: Required value: must specify a handler type"#]]);
    api.post(&path, change(pod("a"), "/metadata/name", json!("UPPER"))).await.shows(expect![[r#"
        422 Invalid: Pod "UPPER" is invalid: metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        kind="Pod" name="UPPER"
        - FieldValueInvalid metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]]);
}

#[tokio::test]
async fn a_deployment_is_filled_in() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut body = deployment("a");
    body["spec"].as_object_mut().unwrap().remove("replicas");
    // Only tried: a controller would write to it at once.
    let created = api.post(&format!("/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All"), body).await;
    created.shows(expect![[r#"
        201
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update apps/v1: {'f:spec':{'f:progressDeadlineSeconds':{},'f:replicas':{},'f:revisionHistoryLimit':{},'f:selector':{},'f:strategy':{'f:rollingUpdate':{'.':{},'f:maxSurge':{},'f:maxUnavailable':{}},'f:type':{}},'f:template':{'f:metadata':{'f:labels':{'.':{},'f:app':{}}},'f:spec':{'f:containers':{'k:{\\'name\\':\\'main\\'}':{'.':{},'f:image':{},'f:imagePullPolicy':{},'f:name':{},'f:resources':{},'f:terminationMessagePath':{},'f:terminationMessagePolicy':{}}},'f:dnsPolicy':{},'f:restartPolicy':{},'f:schedulerName':{},'f:securityContext':{},'f:terminationGracePeriodSeconds':{}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "uid": "UID"
          },
          "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": 1,
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
async fn a_deployment_that_is_wrong_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(
        &path,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {}}),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: Deployment.apps "a" is invalid: [as below]
        group="apps" kind="Deployment" name="a"
        - FieldValueInvalid spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`
        - FieldValueRequired spec.selector: Required value
        - FieldValueRequired spec.template.spec.containers: Required value"#]]);
    api.post(&path, change(deployment("a"), "/spec/selector/matchLabels/app", json!("other")))
        .await
        .shows(expect![[r#"
            422 Invalid: Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`
            group="apps" kind="Deployment" name="a"
            - FieldValueInvalid spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`"#]]);
    api.post(&path, change(deployment("a"), "/spec/replicas", json!(-1))).await.shows(expect![[r#"
        422 Invalid: Deployment.apps "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0
        group="apps" kind="Deployment" name="a"
        - FieldValueInvalid spec.replicas: Invalid value: -1: must be greater than or equal to 0"#]]);
    api.post(&path, change(deployment("a"), "/spec/selector", json!({}))).await.shows(expect![[r#"
        422 Invalid: Deployment.apps "a" is invalid: spec.selector: Invalid value: {}: empty selector is invalid for deployment
        group="apps" kind="Deployment" name="a"
        - FieldValueInvalid spec.selector: Invalid value: {}: empty selector is invalid for deployment"#]]);
    api.post(&path, change(deployment("a"), "/spec/template/spec/containers", json!([]))).await.shows(
        expect![[r#"
            422 Invalid: Deployment.apps "a" is invalid: spec.template.spec.containers: Required value
            group="apps" kind="Deployment" name="a"
            - FieldValueRequired spec.template.spec.containers: Required value"#]],
    );
    let mut never = deployment("a");
    never["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    api.post(&path, never).await.shows(expect![[r#"
        422 Invalid: Deployment.apps "a" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"
        group="apps" kind="Deployment" name="a"
        - FieldValueNotSupported spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]]);
    api.post(&path, deployment("a")).await.is(201);
    let selector = json!({"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}});
    api.patch(&format!("{path}/a"), MERGE_PATCH, selector).await.shows(expect![[r#"
        422 Invalid: Deployment.apps "a" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable
        group="apps" kind="Deployment" name="a"
        - FieldValueInvalid spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable"#]]);
}

#[tokio::test]
async fn other_workloads_are_filled_in() {
    let api = Api::start();
    let ns = api.namespace().await;
    let apps = format!("/apis/apps/v1/namespaces/{ns}");
    let spec = |kind: &str| {
        let mut body = change(deployment("a"), "/kind", json!(kind));
        body["spec"].as_object_mut().unwrap().remove("replicas");
        body
    };
    let own = |reply: crate::harness::Reply| {
        let mut spec = reply.is(201).at("/spec");
        spec.as_object_mut().unwrap().remove("template");
        serde_json::to_string_pretty(&spec).unwrap()
    };
    let replica_set = own(api.post(&format!("{apps}/replicasets?dryRun=All"), spec("ReplicaSet")).await);
    expect![[r#"
        {
          "replicas": 1,
          "selector": {
            "matchLabels": {
              "app": "a"
            }
          }
        }"#]]
    .assert_eq(&replica_set);
    let stateful = change(
        spec("StatefulSet"),
        "/spec",
        json!({"serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": spec("x")["spec"]["template"]}),
    );
    expect![[r#"
        {
          "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": "Retain",
            "whenScaled": "Retain"
          },
          "podManagementPolicy": "OrderedReady",
          "replicas": 1,
          "revisionHistoryLimit": 10,
          "selector": {
            "matchLabels": {
              "app": "a"
            }
          },
          "serviceName": "s",
          "updateStrategy": {
            "rollingUpdate": {
              "maxUnavailable": 1,
              "partition": 0
            },
            "type": "RollingUpdate"
          }
        }"#]]
    .assert_eq(&own(api.post(&format!("{apps}/statefulsets?dryRun=All"), stateful).await));
    expect![[r#"
        {
          "revisionHistoryLimit": 10,
          "selector": {
            "matchLabels": {
              "app": "a"
            }
          },
          "updateStrategy": {
            "rollingUpdate": {
              "maxSurge": 0,
              "maxUnavailable": 1
            },
            "type": "RollingUpdate"
          }
        }"#]]
    .assert_eq(&own(api.post(&format!("{apps}/daemonsets?dryRun=All"), spec("DaemonSet")).await));
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "uid": "ignored"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "i"}]}}}});
    let job = api.post(&format!("/apis/batch/v1/namespaces/{ns}/jobs?dryRun=All"), job).await.is(201);
    let text = job.to_string();
    expect![[r#"
        201
        {
          "apiVersion": "batch/v1",
          "kind": "Job",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "labels": {
              "batch.kubernetes.io/controller-uid": "UID",
              "batch.kubernetes.io/job-name": "a",
              "controller-uid": "UID",
              "job-name": "a"
            },
            "managedFields": [
              "api-test Update batch/v1: {'f:spec':{'f:backoffLimit':{},'f:completionMode':{},'f:completions':{},'f:manualSelector':{},'f:parallelism':{},'f:podReplacementPolicy':{},'f:suspend':{},'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'x\\'}':{'.':{},'f:image':{},'f:imagePullPolicy':{},'f:name':{},'f:resources':{},'f:terminationMessagePath':{},'f:terminationMessagePolicy':{}}},'f:dnsPolicy':{},'f:restartPolicy':{},'f:schedulerName':{},'f:securityContext':{},'f:terminationGracePeriodSeconds':{}}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "uid": "UID"
          },
          "spec": {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "completions": 1,
            "manualSelector": false,
            "parallelism": 1,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {
              "matchLabels": {
                "batch.kubernetes.io/controller-uid": "UID"
              }
            },
            "suspend": false,
            "template": {
              "metadata": {
                "labels": {
                  "batch.kubernetes.io/controller-uid": "UID",
                  "batch.kubernetes.io/job-name": "a",
                  "controller-uid": "UID",
                  "job-name": "a"
                }
              },
              "spec": {
                "containers": [
                  {
                    "image": "i",
                    "imagePullPolicy": "Always",
                    "name": "x",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                  }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Never",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30
              }
            }
          },
          "status": {}
        }"#]]
    .assert_eq(&text);
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "i"}]}}}}}});
    let cron = api.post(&format!("/apis/batch/v1/namespaces/{ns}/cronjobs?dryRun=All"), cron).await.is(201);
    assert_eq!(cron.at("/spec/concurrencyPolicy"), "Allow");
    assert_eq!(cron.at("/spec/successfulJobsHistoryLimit"), 3);
    assert_eq!(cron.at("/spec/failedJobsHistoryLimit"), 1);
    assert_eq!(cron.at("/spec/suspend"), false);
}

#[tokio::test]
async fn a_service_is_filled_in_and_gets_an_address() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let service =
        |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec});
    let created = api.post(&path, service(json!({"selector": {"a": "b"}, "ports": [{"port": 80}]}))).await;
    let address = created.text_at("/spec/clusterIP");
    assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{address}");
    let text = created.to_string().replace(&address, "ADDRESS");
    expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "Service",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:spec':{'f:internalTrafficPolicy':{},'f:ports':{'.':{},'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{},'f:protocol':{},'f:targetPort':{}}},'f:selector':{},'f:sessionAffinity':{},'f:type':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "clusterIP": "ADDRESS",
            "clusterIPs": [
              "ADDRESS"
            ],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": [
              "IPv4"
            ],
            "ipFamilyPolicy": "SingleStack",
            "ports": [
              {
                "port": 80,
                "protocol": "TCP",
                "targetPort": 80
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
        }"#]]
    .assert_eq(&text);
    api.delete(&format!("{path}/a")).await.is(200);
    let headless = api.post(&path, service(json!({"clusterIP": "None", "ports": [{"port": 80}]}))).await;
    headless.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "Service",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:spec':{'f:clusterIP':{},'f:internalTrafficPolicy':{},'f:ports':{'.':{},'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{},'f:protocol':{},'f:targetPort':{}}},'f:sessionAffinity':{},'f:type':{}}}"
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
              "IPv4",
              "IPv6"
            ],
            "ipFamilyPolicy": "RequireDualStack",
            "ports": [
              {
                "port": 80,
                "protocol": "TCP",
                "targetPort": 80
              }
            ],
            "sessionAffinity": "None",
            "type": "ClusterIP"
          },
          "status": {
            "loadBalancer": {}
          }
        }"#]]);
}

#[tokio::test]
async fn a_service_that_is_wrong_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let service =
        |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec});
    api.post(&path, service(json!({}))).await.shows(expect![[r#"
        422 Invalid: Service "a" is invalid: spec.ports: Required value
        kind="Service" name="a"
        - FieldValueRequired spec.ports: Required value"#]]);
    api.post(&path, service(json!({"ports": [{"port": 0}]}))).await.shows(expect![[r#"
        422 Invalid: Service "a" is invalid: [as below]
        kind="Service" name="a"
        - FieldValueInvalid spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
        - FieldValueInvalid spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"#]]);
    api.post(&path, service(json!({"ports": [{"port": 80}, {"port": 81}]}))).await.shows(expect![[r#"
        422 Invalid: Service "a" is invalid: [as below]
        kind="Service" name="a"
        - FieldValueRequired spec.ports[0].name: Required value
        - FieldValueRequired spec.ports[1].name: Required value"#]]);
    api.post(&path, service(json!({"type": "Magic", "ports": [{"port": 80}]}))).await.shows(expect![[r#"
        422 Invalid: Service "a" is invalid: spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"
        kind="Service" name="a"
        - FieldValueNotSupported spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#]]);
    api.post(&path, service(json!({"clusterIP": "x", "ports": [{"port": 80}]}))).await.shows(expect![[r#"
        422 Invalid: Service "a" is invalid: spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        kind="Service" name="a"
        - FieldValueInvalid spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]]);
    let named = change(service(json!({"ports": [{"port": 80}]})), "/metadata/name", json!("-a"));
    api.post(&path, named).await.shows(expect![[r#"
        422 Invalid: Service "-a" is invalid: metadata.name: Invalid value: "-a": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        kind="Service" name="-a"
        - FieldValueInvalid metadata.name: Invalid value: "-a": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#]]);
    api.post(&path, service(json!({"ports": [{"port": 80}]}))).await.is(201);
    api.patch(
        &format!("{path}/a"),
        MERGE_PATCH,
        json!({"spec": {"clusterIP": "10.0.0.250", "clusterIPs": ["10.0.0.250"]}}),
    )
    .await
    .is(422);
}

#[tokio::test]
async fn a_secret_turns_its_text_into_data() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}, "data": {"k": "b3RoZXI=", "l": "bA=="}});
    let created = api.post(&path, body).await.is(201);
    assert_eq!(created.at("/data"), json!({"k": "dg==", "l": "bA=="}));
    assert_eq!(created.at("/stringData"), Value::Null);
    assert_eq!(created.at("/type"), "Opaque");
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"type": "other"})).await.shows(expect![[r#"
        422 Invalid: Secret "a" is invalid: type: Invalid value: "other": field is immutable
        kind="Secret" name="a"
        - FieldValueInvalid type: Invalid value: "other": field is immutable"#]]);
    let typed = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "type": "kubernetes.io/tls", "data": {}});
    api.post(&path, typed).await.shows(expect![[r#"
        422 Invalid: Secret "b" is invalid: [as below]
        kind="Secret" name="b"
        - FieldValueRequired data[tls.crt]: Required value
        - FieldValueRequired data[tls.key]: Required value"#]]);
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "type": "kubernetes.io/basic-auth"});
    api.post(&path, token).await.shows(expect![[r#"
        422 Invalid: Secret "b" is invalid: [as below]
        kind="Secret" name="b"
        - FieldValueRequired data[password]: Required value
        - FieldValueRequired data[username]: Required value"#]]);
    let keys =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "data": {"bad key": ""}});
    api.post(&path, keys).await.shows(expect![[r#"
        422 Invalid: Secret "b" is invalid: data[bad key]: Invalid value: "bad key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
        kind="Secret" name="b"
        - FieldValueInvalid data[bad key]: Invalid value: "bad key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#]]);
    let mut immutable = secret("c");
    immutable["immutable"] = json!(true);
    api.post(&path, immutable).await.is(201);
    api.patch(&format!("{path}/c"), MERGE_PATCH, json!({"data": {"k": "dg=="}})).await.is(422);
}

#[tokio::test]
async fn a_config_map_checks_its_keys_and_size() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, change(config_map("a"), "/data", json!({"bad key": "v"}))).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: data[bad key]: Invalid value: "bad key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
        kind="ConfigMap" name="a"
        - FieldValueInvalid data[bad key]: Invalid value: "bad key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#]]);
    api.post(&path, change(config_map("a"), "/data", json!({"..": "v"}))).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: data[..]: Invalid value: "..": must not be '..'
        kind="ConfigMap" name="a"
        - FieldValueInvalid data[..]: Invalid value: "..": must not be '..'"#]]);
    let mut both = config_map("a");
    both["binaryData"] = json!({"k": "dg=="});
    api.post(&path, both).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: data[k]: Invalid value: "k": duplicate of key present in binaryData
        kind="ConfigMap" name="a"
        - FieldValueInvalid data[k]: Invalid value: "k": duplicate of key present in binaryData"#]]);
    let mut binary = config_map("a");
    binary["binaryData"] = json!({"b": "dg=="});
    let created = api.post(&path, binary).await.is(201);
    assert_eq!(created.at("/binaryData/b"), "dg==");
}

#[tokio::test]
async fn leases_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases");
    let lease = |spec: Value| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": spec});
    api.post(&path, lease(json!({"leaseDurationSeconds": 0, "leaseTransitions": -1})))
        .await
        .shows(expect![[r#"
            422 Invalid: Lease.coordination.k8s.io "a" is invalid: [as below]
            group="coordination.k8s.io" kind="Lease" name="a"
            - FieldValueInvalid spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0
            - FieldValueInvalid spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"#]]);
    let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.123456Z", "acquireTime": "2026-01-02T03:04:05.000000Z"});
    let created = api.post(&path, lease(spec.clone())).await.is(201);
    assert_eq!(created.at("/spec"), spec, "microseconds are kept");
}

#[tokio::test]
async fn nodes_are_filled_in() {
    let api = Api::start();
    let name = format!("node-{}", api.id);
    let body = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"podCIDR": "10.1.0.0/24"}, "status": {"capacity": {"cpu": "1", "memory": "1Gi"}}});
    let created = api.post("/api/v1/nodes?dryRun=All", body).await;
    created.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "Node",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:spec':{'f:podCIDR':{},'f:podCIDRs':{'.':{},'v:\\'10.1.0.0/24\\'':{}}}}"
            ],
            "name": "node-ID",
            "uid": "UID"
          },
          "spec": {
            "podCIDR": "10.1.0.0/24",
            "podCIDRs": [
              "10.1.0.0/24"
            ],
            "taints": [
              {
                "effect": "NoSchedule",
                "key": "node.kubernetes.io/not-ready"
              }
            ]
          },
          "status": {
            "allocatable": {
              "cpu": "1",
              "memory": "1Gi"
            },
            "capacity": {
              "cpu": "1",
              "memory": "1Gi"
            },
            "daemonEndpoints": {
              "kubeletEndpoint": {
                "Port": 0
              }
            },
            "nodeInfo": {
              "architecture": "",
              "bootID": "",
              "containerRuntimeVersion": "",
              "kernelVersion": "",
              "kubeProxyVersion": "",
              "kubeletVersion": "",
              "machineID": "",
              "operatingSystem": "",
              "osImage": "",
              "systemUUID": ""
            }
          }
        }"#]]);
}

#[tokio::test]
async fn service_accounts_are_kept() {
    let api = Api::start();
    let ns = api.namespace().await;
    let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}, "automountServiceAccountToken": false});
    let created = api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), body).await.is(201);
    assert_eq!(created.at("/automountServiceAccountToken"), false);
}

#[tokio::test]
async fn events_are_checked_and_seen_in_both_groups() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/events");
    let event = |namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "reason": "Made", "message": "a thing", "type": "Normal", "count": 2,
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": namespace, "uid": "u"}, "source": {"component": "me"},
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z"
        })
    };
    api.post(&path, event("elsewhere")).await.shows(expect![[r#"
        422 Invalid: Event "a" is invalid: involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace
        kind="Event" name="a"
        - FieldValueInvalid involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace"#]]);
    let created = api.post(&path, event(&ns)).await;
    created.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "count": 2,
          "eventTime": null,
          "firstTimestamp": "TIME",
          "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "namespace": "ns-ID",
            "uid": "u"
          },
          "kind": "Event",
          "lastTimestamp": "TIME",
          "message": "a thing",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:count':{},'f:firstTimestamp':{},'f:involvedObject':{},'f:lastTimestamp':{},'f:message':{},'f:reason':{},'f:source':{'f:component':{}},'f:type':{}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "reason": "Made",
          "reportingComponent": "",
          "reportingInstance": "",
          "source": {
            "component": "me"
          },
          "type": "Normal"
        }"#]]);
    let newer = format!("/apis/events.k8s.io/v1/namespaces/{ns}/events");
    api.get(&format!("{newer}/a")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "events.k8s.io/v1",
          "deprecatedCount": 2,
          "deprecatedFirstTimestamp": "TIME",
          "deprecatedLastTimestamp": "TIME",
          "deprecatedSource": {
            "component": "me"
          },
          "eventTime": null,
          "kind": "Event",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:count':{},'f:firstTimestamp':{},'f:involvedObject':{},'f:lastTimestamp':{},'f:message':{},'f:reason':{},'f:source':{'f:component':{}},'f:type':{}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "note": "a thing",
          "reason": "Made",
          "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "namespace": "ns-ID",
            "uid": "u"
          },
          "type": "Normal"
        }"#]]);
    let new = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "b"}, "reason": "Made", "type": "Normal", "action": "Making",
        "eventTime": "2026-01-02T03:04:05.123456Z", "reportingController": "example.com/me", "reportingInstance": "me-1", "note": "a thing",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": ns}
    });
    api.post(&newer, new.clone()).await.is(201);
    let old = api.get(&format!("{path}/b")).await.is(200);
    assert_eq!(old.at("/message"), "a thing");
    assert_eq!(old.at("/involvedObject/name"), "p");
    assert_eq!(old.at("/reportingComponent"), "example.com/me");
    let bare = change(change(new, "/metadata/name", json!("c")), "/reportingController", json!(""));
    api.post(&newer, bare).await.shows(expect![[r#"
        422 Invalid: Event "c" is invalid: [as below]
        kind="Event" name="c"
        - FieldValueInvalid reportingController: Invalid value: "": name part must be non-empty
        - FieldValueInvalid reportingController: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueRequired reportingController: Required value"#]]);
}

#[tokio::test]
async fn roles_and_bindings_are_filled_in() {
    let api = Api::start();
    let ns = api.namespace().await;
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "a"},
        "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]});
    let created = api.post(&format!("{rbac}/rolebindings"), binding).await.is(201);
    assert_eq!(created.at("/roleRef/apiGroup"), "rbac.authorization.k8s.io");
    assert_eq!(created.at("/subjects/0/apiGroup"), "rbac.authorization.k8s.io");
    assert_eq!(created.at("/subjects/1/apiGroup"), Value::Null);
    api.patch(&format!("{rbac}/rolebindings/a"), MERGE_PATCH, json!({"roleRef": {"name": "other"}}))
        .await
        .shows(expect![[r#"
            422 Invalid: RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"other"}: field is immutable
            group="rbac.authorization.k8s.io" kind="RoleBinding" name="a"
            - FieldValueInvalid roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"other"}: field is immutable"#]]);
}

#[tokio::test]
async fn an_autoscaler_loses_nothing_in_its_older_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/{ns}/horizontalpodautoscalers");
    let metrics = json!([
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    ]);
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "metrics": metrics,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    });
    api.post(&path("v2"), scaler).await.is(201);
    let old = format!("{}/h", path("v1"));
    let shown = api.get(&old).await.is(200);
    assert_eq!(shown.at("/spec/targetCPUUtilizationPercentage"), 60);
    assert_eq!(shown.at("/spec/metrics"), Value::Null);
    api.patch(&old, MERGE_PATCH, json!({"spec": {"maxReplicas": 9}})).await.is(200);
    let new = api.get(&format!("{}/h", path("v2"))).await.is(200);
    assert_eq!(new.at("/spec/maxReplicas"), 9);
    let names = [0, 1].map(|index| new.text_at(&format!("/spec/metrics/{index}/resource/name")));
    assert_eq!(names, ["memory", "cpu"]);
    assert_eq!(new.at("/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics"), Value::Null);
}

#[tokio::test]
async fn the_first_update_of_a_claim_is_a_write_and_the_second_is_none() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    });
    let created = api.post(&path, claim).await.is(201);
    assert_eq!(created.at("/status/phase"), "Pending");
    let first = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({})).await.is(200);
    assert!(first.version() > created.version());
    let second = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({})).await.is(200);
    assert_eq!(second.version(), first.version());
}

#[tokio::test]
async fn component_statuses_are_checked_at_the_time_of_the_request() {
    let api = Api::start();
    let path = "/api/v1/componentstatuses";
    let list = api.get(path).await.is(200).json();
    assert_eq!((&list["kind"], &list["metadata"]), (&json!("ComponentStatusList"), &json!({})));
    let mut names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["controller-manager", "etcd-0", "scheduler"]);
    let store = api.get(&format!("{path}/etcd-0")).await.is(200).json();
    assert_eq!(
        store,
        json!({
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": "etcd-0"},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        })
    );
    let selected = api.get(&format!("{path}?fieldSelector=metadata.name%3Dscheduler")).await.is(200).json();
    assert_eq!(selected["items"].as_array().map(Vec::len), Some(1));
    let labelled = api.get(&format!("{path}?labelSelector=a%3Db")).await.is(200).json();
    assert_eq!(labelled["items"], json!([]));
    let table = api
        .request(Method::GET, &format!("{path}/etcd-0"))
        .accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    assert_eq!(table.send().await.is(200).json()["rows"][0]["cells"], json!(["etcd-0", "Healthy", "ok", ""]));
    let mut seen = Vec::new();
    for path in [format!("{path}/none"), format!("{path}?watch=1")] {
        seen.push(api.get(&path).await.to_string());
    }
    seen.push(api.post(path, json!({})).await.to_string());
    expect![[r#"
        404
        Warning: 299 - "v1 ComponentStatus is deprecated in v1.19+" NotFound: componentstatus "none" not found
        kind="componentstatus" name="none"
        405
        Warning: 299 - "v1 ComponentStatus is deprecated in v1.19+" MethodNotAllowed: watch is not supported on resources of kind "componentstatuses"
        kind="componentstatuses"
        405 MethodNotAllowed: the server does not allow this method on the requested resource
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_name_of_a_time_zone_is_exact() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/batch/v1/namespaces/{ns}/cronjobs?dryRun=All");
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]
    }}}});
    let create = async |zone: &str| {
        let spec = json!({"schedule": "* * * * *", "timeZone": zone, "jobTemplate": template});
        api.post(&path, json!({"metadata": {"name": "a"}, "spec": spec})).await
    };
    for zone in ["Europe/Berlin", "UTC", "Etc/UTC", "US/Eastern", "EST5EDT", "Etc/GMT+5"] {
        create(zone).await.is(201);
    }
    for zone in ["europe/berlin", "utc", "EUROPE/BERLIN"] {
        let refused = create(zone).await.is(422);
        assert_eq!(
            refused.at("/details/causes/0/message"),
            format!("Invalid value: \"{zone}\": unknown time zone {zone}")
        );
    }
}

#[tokio::test]
async fn a_new_daemon_set_keeps_the_generation_of_its_template() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/daemonsets");
    let key = "deprecated.daemonset.template.generation";
    for (index, (given, stored)) in
        [(Some("5"), "5"), (Some("0"), "1"), (Some("-3"), "1"), (None, "1")].into_iter().enumerate()
    {
        let mut set = deployment(&format!("a{index}"));
        set["kind"] = json!("DaemonSet");
        set["spec"].as_object_mut().unwrap().remove("replicas");
        given.into_iter().for_each(|given| set["metadata"]["annotations"] = json!({key: given}));
        let created = api.post(&path, set.clone()).await.is(201);
        assert_eq!(created.at("/metadata/annotations")[key], stored, "{given:?}");
        set["metadata"]["annotations"] = json!({});
        set["spec"]["template"]["metadata"]["labels"]["more"] = json!("x");
        let updated = api.put(&format!("{path}/a{index}"), set).await.is(200);
        let next = stored.parse::<u64>().unwrap() + 1;
        assert_eq!(updated.at("/metadata/annotations")[key], next.to_string());
    }
}
