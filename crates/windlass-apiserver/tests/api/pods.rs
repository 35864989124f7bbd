//! Features of pods only: a node, a priority, a log.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::{Value, json};
use windlass_apiserver::{AdmissionPlugin, Server};
use windlass_patience::stretched;

use crate::fixtures::pod;
use crate::harness::{Api, MERGE_PATCH, Reply, STRATEGIC_PATCH, lines};

async fn bind(api: &Api, pods: &str, name: &str) {
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    api.post(&format!("{pods}/{name}/binding"), binding).await.is(201);
}

#[tokio::test]
async fn a_binding_without_a_target_is_refused() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    api.post(&pods, pod("a")).await.is(201);
    let binding = json!({"metadata": {"name": "a"}, "target": {}});
    let refused = api.post(&format!("{pods}/a/binding"), binding).await.is(500);
    assert_eq!(refused.text_at("/message"), "target.name: Required value");
    assert_eq!(api.get(&format!("{pods}/a")).await.is(200).at("/spec/nodeName"), json!(null));
}

#[tokio::test]
async fn a_bound_pod_keeps_its_node() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    api.post(&pods, pod("a")).await.is(201);
    bind(&api, &pods, "a").await;
    let bound = api.get(&format!("{pods}/a")).await.is(200);
    assert_eq!(bound.at("/spec/nodeName"), "n");
    assert_eq!(bound.at("/metadata/generation"), 1, "no client changed the specification");
    assert_eq!(bound.at("/status/conditions/0/type"), "PodScheduled");
    let again = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "m"}});
    let refused = api.post(&format!("{pods}/a/binding"), again).await.is(409);
    assert!(refused.text_at("/message").ends_with("pod a is already assigned to node \"n\""), "{refused}");
}

#[tokio::test]
async fn a_pod_has_the_priority_of_its_class() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let of_class = |class: &str| {
        let mut pod = pod("a");
        pod["spec"]["priorityClassName"] = json!(class);
        pod
    };
    let refused = api.post(&pods, of_class("nope")).await.is(403);
    assert_eq!(refused.at("/message"), "pods \"a\" is forbidden: no PriorityClass with name nope was found");
    let created = api.post(&pods, of_class("system-node-critical")).await.is(201);
    assert_eq!(created.at("/spec/priority"), 2_000_001_000);
}

#[tokio::test]
async fn resources_of_the_whole_pod_come_from_the_containers() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let mut seen = String::new();
    for (whole, containers) in [
        (json!({"limits": {"cpu": "1"}}), json!([{}])),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}}), json!([{}, {}])),
        (json!({"requests": {"cpu": "3"}}), json!([{"limits": {"cpu": "1"}}, {"limits": {"cpu": "500m"}}])),
        (
            json!({"requests": {"cpu": "100m", "memory": "1Gi"}}),
            json!([{"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1Gi"}}]),
        ),
        (json!({"limits": {"memory": "1Gi"}}), json!([{"requests": {"cpu": "100m", "memory": "100Mi"}}])),
        (json!({"requests": {}}), json!([{"limits": {"cpu": "1", "memory": "1Gi"}}])),
    ] {
        let mut object = pod("a");
        object["spec"]["resources"] = whole;
        let containers = containers.as_array().unwrap().iter().enumerate();
        let container = |(number, resources): (usize, &Value)| json!({"name": format!("c{number}"), "image": "i", "resources": resources});
        object["spec"]["containers"] = containers.map(container).collect();
        let reply = api.post(&format!("{pods}?dryRun=All"), object).await;
        let shown =
            if reply.code == 201 { reply.at("/spec/resources").to_string() } else { reply.to_string() };
        writeln!(seen, "{shown} {}", reply.json()["status"]["qosClass"]).unwrap();
    }
    expect![[r#"
        {"limits":{"cpu":"1"},"requests":{"cpu":"1"}} "Burstable"
        {"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}} "Guaranteed"
        {"limits":{"cpu":"3"},"requests":{"cpu":"3"}} "Burstable"
        422 Invalid: Pod "a" is invalid: spec.resources.requests[memory]: Invalid value: "1Gi": must be greater than or equal to aggregate container requests of 2Gi
        kind="Pod" name="a"
        - FieldValueInvalid spec.resources.requests[memory]: Invalid value: "1Gi": must be greater than or equal to aggregate container requests of 2Gi null
        {"limits":{"memory":"1Gi"},"requests":{"cpu":"100m","memory":"100Mi"}} "Burstable"
        {} "Guaranteed"
    "#]].assert_eq(&seen);
    let mut object = pod("a");
    object["spec"]["resources"] = json!({"limits": {"cpu": "1"}});
    api.post(&pods, object).await.is(201);
    let mut kept = api.get(&format!("{pods}/a")).await.json();
    kept["spec"].as_object_mut().unwrap().remove("resources");
    let kept = api.put(&format!("{pods}/a"), kept).await.is(200);
    assert_eq!(kept.at("/spec/resources"), json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}));
}

#[tokio::test]
async fn a_log_is_the_text_of_the_annotation() {
    let api = Api::start();
    if api.is_shared() {
        // A real log needs a kubelet.
        return;
    }
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let mut body: Value = pod("a");
    body["metadata"]["annotations"] = json!({"kubelet.windlass.dev/log": "one\ntwo\nthree"});
    api.post(&pods, body).await.is(201);
    let path = &format!("{pods}/a/log");
    api.get(path).await.is(204);
    bind(&api, &pods, "a").await;
    assert_eq!(api.get(path).await.is(200).body, "one\ntwo\nthree\n");
    assert_eq!(api.get(&format!("{path}?tailLines=1")).await.is(200).body, "three\n");
    let unknown = api.get(&format!("{path}?container=x")).await.is(400);
    assert_eq!(unknown.at("/message"), "container x is not valid for pod a");
}

#[tokio::test]
async fn options_of_a_log_are_checked_first() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let mut answers = Vec::new();
    for query in [
        "tailLines=-1",
        "limitBytes=0",
        "sinceSeconds=0&limitBytes=0",
        "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
        "sinceTime=x",
        "stream=Stdout",
    ] {
        let refused = api.get(&format!("{pods}/absent/log?{query}")).await;
        answers.push(format!("{} {}", refused.code, refused.at("/message").as_str().unwrap_or_default()));
    }
    expect![[r#"
        422 PodLogOptions "absent" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0
        422 PodLogOptions "absent" is invalid: limitBytes: Invalid value: 0: must be greater than 0
        422 PodLogOptions "absent" is invalid: [limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]
        422 PodLogOptions "absent" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified
        400 parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"
        422 PodLogOptions "absent" is invalid: stream: Forbidden: may not be specified"#]].assert_eq(&answers.join("\n"));
}

#[tokio::test]
async fn a_log_is_followed_until_its_container_ends() {
    let api = Api::start();
    if api.is_shared() {
        // A real log needs a kubelet.
        return;
    }
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let pod = &format!("{pods}/a");
    let annotated = |log: &str| json!({"metadata": {"annotations": {"kubelet.windlass.dev/log": log}}});
    let state = |state: Value| json!({"status": {"containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]}});
    let set_state =
        async |to: Value| api.patch(&format!("{pod}/status"), STRATEGIC_PATCH, state(to)).await.is(200);
    let mut body: Value = self::pod("a");
    body["metadata"]["annotations"] = annotated("one")["metadata"]["annotations"].clone();
    api.post(&pods, body).await.is(201);
    bind(&api, &pods, "a").await;
    set_state(json!({"waiting": {"reason": "ContainerCreating"}})).await;
    let early = api.get(&format!("{pod}/log")).await.is(400);
    assert_eq!(
        early.at("/message"),
        "container \"main\" in pod \"a\" is waiting to start: ContainerCreating"
    );
    set_state(json!({"running": {"startedAt": "2026-01-02T03:04:05Z"}})).await;
    let log = format!("{pod}/log?follow=true&timestamps=true");
    let ends = async {
        api.patch(pod, MERGE_PATCH, annotated("one\ntwo")).await.is(200);
        set_state(json!({"terminated": {"exitCode": 0, "startedAt": "2026-01-02T03:04:05Z"}})).await
    };
    let (log, _) = tokio::join!(api.get(&log), ends);
    let expected = "2026-01-02T03:04:05.000000000Z one\n2026-01-02T03:04:05.000000000Z two\n";
    assert_eq!(log.is(200).body, expected);
    let previous = api.get(&format!("{pod}/log?previous=true")).await.is(400);
    assert_eq!(previous.at("/message"), "previous terminated container \"main\" in pod \"a\" not found");
}

#[tokio::test]
async fn a_pod_with_many_tolerations_is_updated_quickly() {
    let api = Api::start();
    if api.is_shared() {
        // The real server compares every toleration with every other toleration.
        return;
    }
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod("a");
    let tolerations = (0..10_000).map(|number| json!({"key": format!("k{number}"), "operator": "Exists"}));
    body["spec"]["tolerations"] = tolerations.collect();
    api.post(&path, body).await.is(201);
    let start = Instant::now();
    let path = format!("{path}/a");
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    assert!(start.elapsed() < stretched(Duration::from_secs(3)), "{:?}", start.elapsed());
}

#[tokio::test]
async fn only_one_priority_class_is_the_default() {
    let api = Api::start();
    if api.is_shared() {
        // The pods of other tests would be of the class.
        return;
    }
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, is_default: bool| json!({"metadata": {"name": name}, "value": 5, "globalDefault": is_default});
    api.post(classes, class("a", true)).await.is(201);
    api.post(classes, class("b", false)).await.is(201);
    api.post(classes, class("c", true)).await.is(403).shows(expect![[r#"
        403 Forbidden: priorityclasses.scheduling.k8s.io "c" is forbidden: PriorityClass a is already marked as default. Only one default can exist
        group="scheduling.k8s.io" kind="priorityclasses" name="c""#]]);
    let mark = json!({"globalDefault": true});
    api.patch(&format!("{classes}/b"), MERGE_PATCH, mark.clone()).await.is(403);
    api.patch(&format!("{classes}/a"), MERGE_PATCH, json!({"description": "x"})).await.is(200);
    api.delete(&format!("{classes}/a")).await.is(200);
    api.patch(&format!("{classes}/b"), MERGE_PATCH, mark).await.is(200);
}

#[tokio::test]
async fn a_pod_on_a_node_that_is_gone_is_not_resized() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut bound = pod("a");
    bound["spec"]["nodeName"] = json!("gone");
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, bound).await.is(201);
    let size = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}});
    let strategic = "application/strategic-merge-patch+json";
    let reply = api.patch(&format!("{path}/a/resize"), strategic, size).await;
    assert!(reply.code == 403 || reply.code == 422, "{reply}");
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"activeDeadlineSeconds": 9}})).await.is(200);
}

#[tokio::test]
async fn a_pod_keeps_the_priority_class_and_a_gated_pod_is_not_bound() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod("x");
    body["spec"]["priorityClassName"] = json!("system-node-critical");
    api.post(&path, body).await.is(201);
    api.put(&format!("{path}/x"), pod("x")).await.is(422);
    let mut body = pod("y");
    body["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    api.post(&path, body).await.is(201);
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "y"}, "target": {"kind": "Node", "name": "n"}});
    let refused = api.post(&format!("{path}/y/binding"), binding).await.is(409);
    assert!(refused.text_at("/message").ends_with("pod y has non-empty .spec.schedulingGates"));
}

#[tokio::test]
async fn the_values_of_label_keys_are_in_the_selectors_of_a_new_pod() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let mut labelled = pod("a");
    labelled["metadata"]["labels"] = json!({"app": "a", "hash": "h", "tenant": "t"});
    let term = json!({
        "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["hash", "missing"], "mismatchLabelKeys": ["tenant"],
    });
    let without = json!({"topologyKey": "zone"});
    let affinity = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [term, without],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
    });
    labelled["spec"]["affinity"] = json!({"podAffinity": affinity, "podAntiAffinity": affinity});
    labelled["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash"],
    }]);
    let created = api.post(&pods, labelled).await.is(201);
    let is_in = json!({"key": "hash", "operator": "In", "values": ["h"]});
    let is_not_in = json!({"key": "tenant", "operator": "NotIn", "values": ["t"]});
    let merged = json!({"matchLabels": {"app": "a"}, "matchExpressions": [is_in, is_not_in]});
    for kind in ["podAffinity", "podAntiAffinity"] {
        let at = |path: &str| {
            let list = "DuringSchedulingIgnoredDuringExecution";
            created.at(&format!("/spec/affinity/{kind}/{}", path.replacen('/', &format!("{list}/"), 1)))
        };
        assert_eq!(at("required/0/labelSelector"), merged);
        assert_eq!(at("required/1/labelSelector"), Value::Null);
        assert_eq!(at("preferred/0/podAffinityTerm/labelSelector"), merged);
    }
    let spread = json!({"matchLabels": {"app": "a"}, "matchExpressions": [is_in]});
    assert_eq!(created.at("/spec/topologySpreadConstraints/0/labelSelector"), spread);
    let relabelled = json!({"metadata": {"labels": {"hash": "other"}}});
    let updated = api.patch(&format!("{pods}/a"), MERGE_PATCH, relabelled).await.is(200);
    assert_eq!(updated.at("/spec"), created.at("/spec"), "an update merges nothing");
}

#[tokio::test]
async fn a_pod_gets_the_tolerations_of_its_runtime_class_that_it_does_not_cover() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let class = format!("class-{}", api.id);
    let more = json!([
        {"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"},
        {"key": "b", "operator": "Exists"},
        {"key": "c", "operator": "Exists", "effect": "NoExecute"},
    ]);
    let classes = "/apis/node.k8s.io/v1/runtimeclasses";
    let body = json!({"metadata": {"name": class}, "handler": "h", "scheduling": {"tolerations": more}});
    api.post(classes, body).await.is(201);
    api.discard(format!("{classes}/{class}"));
    let mut tolerant = pod("a");
    tolerant["spec"]["runtimeClassName"] = json!(class);
    tolerant["spec"]["tolerations"] = json!([
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "Equal", "value": "2", "effect": "NoSchedule"},
        {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ]);
    let created = api.post(&pods, tolerant).await.is(201);
    let kept =
        created.at("/spec/tolerations").as_array().cloned().unwrap().into_iter().filter(|toleration| {
            !toleration["key"].as_str().unwrap_or_default().starts_with("node.kubernetes.io/")
        });
    expect![[r#"
        {"key":"a","operator":"Exists"}
        {"key":"b","operator":"Exists"}
        {"effect":"NoExecute","key":"c","operator":"Exists"}
    "#]]
    .assert_eq(&lines(&kept.map(|toleration| toleration.to_string()).collect::<Vec<_>>()));
}

#[tokio::test]
async fn annotations_of_app_armor_become_profiles() {
    let api = Api::start();
    let ns = api.namespace().await;
    let key = "container.apparmor.security.beta.kubernetes.io/main";
    let annotated = |profile: &str, spec: Value| {
        let mut annotated = pod("a");
        annotated["metadata"]["annotations"] = json!({key: profile});
        annotated["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        annotated
    };
    let own = json!({"containers": [{"name": "main", "image": "i", "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}]});
    let unconfined = json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}});
    let local =
        json!({"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}});
    let mut seen = Vec::new();
    for (profile, spec) in [
        ("localhost/x", json!({})),
        ("runtime/default", json!({})),
        ("unconfined", json!({})),
        ("", json!({})),
        ("localhost/", json!({})),
        ("nonsense", json!({})),
        ("localhost/x", unconfined),
        ("localhost/x", local.clone()),
        ("unconfined", own),
        ("localhost/x", json!({"os": {"name": "windows"}})),
    ] {
        let pod = annotated(profile, spec.clone());
        let path = format!("/api/v1/namespaces/{ns}/pods?dryRun=All");
        let created = api.post(&path, pod.clone()).await;
        let container = created.at("/spec/containers/0/securityContext/appArmorProfile");
        let template = json!({
            "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"},
            "template": {"metadata": pod["metadata"], "spec": pod["spec"]}
        });
        let templates = format!("/api/v1/namespaces/{ns}/podtemplates?dryRun=All");
        let template = api.post(&templates, template).await;
        let spec = &spec;
        let told = |reply: &Reply, path: &str| {
            let annotation = format!("{path}metadata.annotations[{key}]");
            let text = format!(
                "{annotation}: deprecated since v1.30; use the \\\"appArmorProfile\\\" field instead"
            );
            let warnings = reply.warnings();
            assert!(warnings.iter().all(|warning| warning.contains(&text)), "{warnings:?}");
            if warnings.is_empty() { "silent" } else { "deprecated" }
        };
        seen.push(format!("{profile} {spec}: {} {container} {}", created.code, told(&created, "")));
        seen.push(format!("  in a template: {} {}", template.code, told(&template, "template.")));
    }
    expect![[r#"
        localhost/x {}: 201 {"localhostProfile":"x","type":"Localhost"} deprecated
          in a template: 201 deprecated
        runtime/default {}: 201 {"type":"RuntimeDefault"} deprecated
          in a template: 201 deprecated
        unconfined {}: 201 {"type":"Unconfined"} deprecated
          in a template: 201 deprecated
         {}: 201 null deprecated
          in a template: 201 deprecated
        localhost/ {}: 201 null deprecated
          in a template: 201 deprecated
        nonsense {}: 422 null deprecated
          in a template: 422 silent
        localhost/x {"securityContext":{"appArmorProfile":{"type":"Unconfined"}}}: 201 {"localhostProfile":"x","type":"Localhost"} deprecated
          in a template: 422 silent
        localhost/x {"securityContext":{"appArmorProfile":{"localhostProfile":"x","type":"Localhost"}}}: 201 null silent
          in a template: 201 silent
        unconfined {"containers":[{"image":"i","name":"main","securityContext":{"appArmorProfile":{"type":"Unconfined"}}}]}: 201 {"type":"Unconfined"} silent
          in a template: 201 silent
        localhost/x {"os":{"name":"windows"}}: 201 null silent
          in a template: 201 deprecated
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_write_of_the_status_keeps_the_observed_generations_that_it_leaves_out() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    api.post(&pods, pod("a")).await.is(201);
    let write = async |status: Value| {
        let mut pod = api.get(&format!("{pods}/a")).await.is(200).json();
        pod["status"] = status;
        api.put(&format!("{pods}/a/status"), pod).await.is(200)
    };
    let condition = |kind: &str, generation: Option<u64>| {
        let mut condition = json!({"type": kind, "status": "True"});
        generation.into_iter().for_each(|number| condition["observedGeneration"] = json!(number));
        condition
    };
    let first = [condition("Ready", Some(3)), condition("Ready", Some(4)), condition("Initialized", None)];
    write(json!({"observedGeneration": 7, "conditions": first})).await;
    let second = [
        condition("Ready", None),
        condition("Initialized", None),
        condition("Ready", None),
        condition("Ready", None),
        condition("PodScheduled", Some(9)),
    ];
    let written = write(json!({"conditions": second})).await;
    assert_eq!(written.at("/status/observedGeneration"), 7);
    let conditions = written.at("/status/conditions");
    let generations: Vec<_> = conditions
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["observedGeneration"].as_u64())
        .collect();
    assert_eq!(generations, [Some(3), None, Some(4), None, Some(9)]);
    let written = write(json!({"observedGeneration": 8, "conditions": [condition("Ready", Some(5))]})).await;
    assert_eq!(written.at("/status/observedGeneration"), 8);
    assert_eq!(written.at("/status/conditions/0/observedGeneration"), 5);
}

#[tokio::test]
async fn a_runtime_class_counts_without_the_plugin_of_priorities() {
    let server = |plugin| Server::builder().admission_plugin(plugin, false).build().unwrap();
    let create = async |server: &Server| {
        let api = Api::embedded(server);
        let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
        let class =
            json!({"metadata": {"name": "c"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1"}}});
        api.post("/apis/node.k8s.io/v1/runtimeclasses", class).await.is(201);
        let mut pod = pod("a");
        pod["spec"]["runtimeClassName"] = json!("c");
        let created = api.post(&pods, pod).await.is(201);
        (created.at("/spec/priority"), created.at("/spec/overhead"))
    };
    let without_priorities = create(&server(AdmissionPlugin::Priority)).await;
    assert_eq!(without_priorities, (Value::Null, json!({"cpu": "1"})));
    let without_classes = create(&server(AdmissionPlugin::RuntimeClass)).await;
    assert_eq!(without_classes, (json!(0), Value::Null));
}
