//! The quotes of values in the messages of errors: plain strings as Go quotes them, and values of other types as JSON.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::Api;

/// A text that Go and JSON quote in different ways.
const ODD: &str = "<&\u{7f}>";

fn pod(container: Value, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "a"}, "spec": spec});
    pod["spec"]["containers"] = json!([{"name": "a", "image": "b"}]);
    if let (Some(fields), Some(to)) = (container.as_object(), pod["spec"]["containers"][0].as_object_mut()) {
        to.extend(fields.clone());
    }
    pod
}

#[tokio::test]
async fn a_value_is_quoted_by_the_go_type_of_the_field() {
    let api = Api::start();
    let namespace = api.namespace().await;
    let spec = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
    let selector = json!({"matchExpressions": [{"key": "a", "operator": ODD}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod(json!({}), json!({"restartPolicy": ODD}))["spec"]});
    let ports = json!([{"port": 1}]);
    let role = json!({"apiGroup": ODD, "kind": ODD, "name": "a"});
    let subject = json!({"kind": ODD, "name": "a"});
    let claim = |modes: Value| json!({"accessModes": modes, "resources": {"requests": {"storage": "1"}}});
    let requests = [
        ("api/v1", "pods", pod(json!({}), json!({"restartPolicy": ODD, "dnsPolicy": ODD}))),
        ("api/v1", "pods", pod(json!({"imagePullPolicy": ODD, "terminationMessagePolicy": ODD}), json!({}))),
        ("api/v1", "pods", pod(json!({"resources": {"limits": {ODD: "1"}}}), json!({}))),
        ("api/v1", "pods", pod(json!({"resources": {"limits": {"a": "1"}}}), json!({"nodeName": ODD}))),
        (
            "api/v1",
            "pods",
            pod(json!({}), json!({"tolerations": [{"key": "a", "operator": ODD, "effect": ODD}]})),
        ),
        (
            "api/v1",
            "pods",
            pod(
                json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.a<"}}}]}),
                json!({}),
            ),
        ),
        (
            "api/v1",
            "pods",
            pod(json!({"ports": [{"containerPort": 1, "protocol": ODD, "name": ODD}]}), json!({})),
        ),
        ("api/v1", "services", spec(json!({"ports": ports, "type": ODD}))),
        (
            "api/v1",
            "services",
            spec(json!({"ports": ports, "trafficDistribution": ODD, "sessionAffinity": ODD})),
        ),
        ("api/v1", "persistentvolumeclaims", spec(claim(json!([ODD])))),
        ("api/v1", "resourcequotas", spec(json!({"hard": {ODD: "1"}}))),
        ("api/v1", "limitranges", spec(json!({"limits": [{"type": ODD}]}))),
        ("api/v1", "limitranges", spec(json!({"limits": [{"type": "a<b/c"}, {"type": "a<b/c"}]}))),
        ("apis/apps/v1", "deployments", spec(json!({"selector": selector, "template": template}))),
        ("apis/batch/v1", "jobs", spec(json!({"completionMode": ODD, "template": template}))),
        (
            "apis/batch/v1",
            "cronjobs",
            spec(
                json!({"concurrencyPolicy": ODD, "timeZone": ODD, "schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}),
            ),
        ),
        (
            "apis/rbac.authorization.k8s.io/v1",
            "rolebindings",
            json!({"metadata": {"name": "a"}, "roleRef": role, "subjects": [subject]}),
        ),
        ("apis/policy/v1", "poddisruptionbudgets", spec(json!({"unhealthyPodEvictionPolicy": ODD}))),
    ];
    let mut seen: Vec<String> = Vec::new();
    for (group, plural, body) in requests {
        let path = format!("/{group}/namespaces/{namespace}/{plural}");
        let reply = api.post(&path, body).await;
        let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
        let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
        let mut causes: Vec<String> = causes
            .iter()
            .map(|cause| format!("  {}: {}\n", text(cause, "field"), text(cause, "message")))
            .collect();
        causes.sort();
        seen.push(format!("{plural} {}\n{}", reply.code, causes.concat()));
    }
    for query in ["propagationPolicy", "dryRun", "fieldValidation", "resourceVersionMatch"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps?{query}=%3C%7F");
        let reply = match query {
            "fieldValidation" => api.post(&path, json!({"metadata": {"name": "a"}})).await,
            "resourceVersionMatch" => api.get(&path).await,
            _ => api.delete(&path).await,
        };
        seen.push(format!("{query} {} {}\n", reply.code, reply.text_at("/message")));
    }
    expect![[r#"
        pods 422
          spec.dnsPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"
          spec.restartPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "Always", "OnFailure", "Never"
        pods 422
          spec.containers[0].imagePullPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "Always", "IfNotPresent", "Never"
          spec.containers[0].terminationMessagePolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "File", "FallbackToLogsOnError"
        pods 422
          spec.containers[0].resources.limits[<&DEL>]: Invalid value: "\u003c\u0026DEL\u003e": must be a standard resource for containers
          spec.containers[0].resources.limits[<&DEL>]: Invalid value: "\u003c\u0026DEL\u003e": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
          spec.containers[0].resources.requests[<&DEL>]: Invalid value: "\u003c\u0026DEL\u003e": must be a standard resource for containers
          spec.containers[0].resources.requests[<&DEL>]: Invalid value: "\u003c\u0026DEL\u003e": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        pods 422
          spec.containers[0].resources.limits[a]: Invalid value: "a": must be a standard resource for containers
          spec.containers[0].resources.limits[a]: Invalid value: "a": must be a standard resource type or fully qualified
          spec.containers[0].resources.requests[a]: Invalid value: "a": must be a standard resource for containers
          spec.containers[0].resources.requests[a]: Invalid value: "a": must be a standard resource type or fully qualified
          spec.nodeName: Invalid value: "<&\x7f>": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        pods 422
          spec.tolerations[0].effect: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"
          spec.tolerations[0].operator: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "Equal", "Exists"
        pods 422
          spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "status.a<": error converting fieldPath: field label not supported: status.a<
        pods 422
          spec.containers[0].ports[0].name: Invalid value: "<&\x7f>": must contain at least one letter (a-z)
          spec.containers[0].ports[0].name: Invalid value: "<&\x7f>": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
          spec.containers[0].ports[0].protocol: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "SCTP", "TCP", "UDP"
        services 422
          spec.type: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"
        services 422
          spec.sessionAffinity: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "ClientIP", "None"
          spec.trafficDistribution: Unsupported value: "<&\x7f>": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"
        persistentvolumeclaims 422
          spec.accessModes: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
        resourcequotas 422
          spec.hard[<&DEL>]: Invalid value: "\u003c\u0026DEL\u003e": must be a standard resource for quota
          spec.hard[<&DEL>]: Invalid value: "\u003c\u0026DEL\u003e": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        limitranges 422
          spec.limits[0].type: Invalid value: "\u003c\u0026DEL\u003e": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        limitranges 422
          spec.limits[0].type: Invalid value: "a\u003cb/c": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
          spec.limits[1].type: Duplicate value: "a\u003cb/c"
          spec.limits[1].type: Invalid value: "a\u003cb/c": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        deployments 422
          spec.selector.matchExpressions[0].operator: Invalid value: "\u003c\u0026DEL\u003e": not a valid selector operator
          spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"\u003c\u0026DEL\u003e"}]}: invalid label selector
        jobs 422
          spec.completionMode: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "NonIndexed", "Indexed"
          spec.template.spec.restartPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "Always", "OnFailure", "Never"
          spec.template.spec.restartPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "OnFailure", "Never"
        cronjobs 422
          spec.concurrencyPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "Allow", "Forbid", "Replace"
          spec.jobTemplate.spec.template.spec.restartPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "Always", "OnFailure", "Never"
          spec.jobTemplate.spec.template.spec.restartPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "OnFailure", "Never"
          spec.timeZone: Invalid value: "\u003c\u0026DEL\u003e": unknown time zone <&DEL>
        rolebindings 422
          roleRef.apiGroup: Unsupported value: "<&\x7f>": supported values: "rbac.authorization.k8s.io"
          roleRef.kind: Unsupported value: "<&\x7f>": supported values: "Role", "ClusterRole"
          subjects[0].kind: Unsupported value: "<&\x7f>": supported values: "ServiceAccount", "User", "Group"
        poddisruptionbudgets 422
          spec.unhealthyPodEvictionPolicy: Unsupported value: "\u003c\u0026DEL\u003e": supported values: "AlwaysAllow", "IfHealthyBudget"
        propagationPolicy 422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "\u003cDEL": supported values: "Foreground", "Background", "Orphan", "nil"
        dryRun 422 DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["\u003cDEL"]: supported values: "All"
        fieldValidation 422 CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "<\x7f": supported values: "", "Ignore", "Strict", "Warn"
        resourceVersionMatch 422 ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Unsupported value: "\u003cDEL": supported values: "Exact", "NotOlderThan", ""]
    "#]].assert_eq(&seen.concat().replace('\u{7f}', "DEL"));
}
