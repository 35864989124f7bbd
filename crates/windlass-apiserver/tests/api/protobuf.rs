//! Replies in protobuf. The bytes are those of `ProtobufEncoder` for the JSON of the same server: against a real server,
//! the tests compare the encoder with Go's.

use std::io::Read;

use expect_test::expect;
use futures::StreamExt;
use http::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use windlass_apiserver::Server;
use windlass_schema::{Catalog, ProtobufEncoder, decode_protobuf};

use crate::fixtures::{config_map, deployment, labelled, pod, widget, widgets_path};
use crate::harness::{Api, MERGE_PATCH, Reply, deadline};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The media types that typed clients of client-go ask for.
const TYPED: &str = "application/vnd.kubernetes.protobuf,application/json";
const METADATA: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Returns the body of a reply in protobuf.
#[track_caller]
fn protobuf(reply: &Reply) -> Vec<u8> {
    assert_eq!(reply.header("content-type"), Some(PROTOBUF), "{reply}");
    reply.body.to_vec()
}

#[track_caller]
fn encoded(object: &Value) -> Vec<u8> {
    let mut encoder = ProtobufEncoder::new(Catalog::builtin());
    let bytes = encoder.object(object.to_string().as_bytes());
    bytes.unwrap_or_else(|error| panic!("{error}: {object}")).to_vec()
}

fn decoded(bytes: &[u8]) -> Value {
    decode_protobuf(&Catalog::builtin(), bytes).expect("a message")
}

/// Compares two messages. The difference is shown as JSON, if the JSON differs.
#[track_caller]
fn assert_same(found: &[u8], expected: &[u8]) {
    if found != expected {
        assert_eq!(decoded(found), decoded(expected));
        assert_eq!(found, expected, "the encodings differ: {}", decoded(found));
    }
}

async fn get(api: &Api, path: &str, accept: &str) -> Reply {
    api.request(Method::GET, path).accept(accept).send().await
}

/// Compares the reply to a GET in protobuf with the reply in JSON.
async fn assert_same_object(api: &Api, path: &str) {
    let json = get(api, path, JSON).await.is(200);
    let found = get(api, path, TYPED).await.is(200);
    assert_same(&protobuf(&found), &encoded(&json.json()));
}

fn rich_pod(name: &str) -> Value {
    let mut pod = labelled(pod(name), json!({"b": "2", "a": "1", "c.d/e": ""}));
    pod["metadata"]["annotations"] = json!({"text": "a \"quoted\"\nline, ünïcode \u{1f600} <&>"});
    pod["spec"] = json!({
        "volumes": [
            {"name": "config", "configMap": {"name": "c", "items": [{"key": "k", "path": "p", "mode": 256}]}},
            {"name": "empty", "emptyDir": {"sizeLimit": "1.5Gi"}},
            {"name": "token", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "t", "mode": 256, "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
        ],
        "containers": [{
            "name": "main", "image": "nginx:1",
            "ports": [{"containerPort": 80, "name": "http"}],
            "env": [{"name": "A", "value": "b"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "0.1"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
            "readinessProbe": {"tcpSocket": {"port": 80}},
            "volumeMounts": [{"name": "empty", "mountPath": "/e"}],
            "securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"]}},
        }],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"operator": "Exists", "tolerationSeconds": -5, "effect": "NoExecute"}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "1"}}
        }],
        "securityContext": {"supplementalGroups": [5, 70000]},
    });
    pod
}

/// Objects with all encodings that kinds have: paths below the namespace, and bodies.
fn rich_objects() -> Vec<(&'static str, Value)> {
    let service = json!({
        "kind": "Service", "apiVersion": "v1", "metadata": {"name": "a"},
        "spec": {"clusterIP": "None", "selector": {"a": "1"}, "ports": [
            {"name": "one", "port": 80, "targetPort": "http"}, {"name": "two", "port": 81, "targetPort": 8081}
        ]},
    });
    let secret = json!({
        "kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"z": "AP8=", "a": "", "key": "dmFsdWU="},
    });
    let lease = json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2023-11-14T22:13:20.123456Z"},
    });
    let autoscaler = json!({
        "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
        },
    });
    let ingress = json!({
        "kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "a"},
        "spec": {"rules": [{"host": "h", "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}
        }]}}]},
    });
    let revision = json!({
        "kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": "a"},
        "revision": 3, "data": {"spec": {"list": [1, 2.5, null, "x"]}},
    });
    let slice = json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": {"name": "a"}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}], "ports": [{"port": 80}],
    });
    let role = json!({
        "kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "a"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    });
    let budget = json!({
        "kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "a"},
        "spec": {"maxUnavailable": "25%", "selector": {}},
    });
    let event = json!({
        "kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "a"},
        "eventTime": "2023-11-14T22:13:20.000000Z", "action": "Test", "reason": "Test", "type": "Normal",
        "reportingController": "example.com/test", "reportingInstance": "one",
    });
    vec![
        ("api/v1 pods", rich_pod("a")),
        ("api/v1 services", service),
        ("api/v1 secrets", secret),
        ("apis/apps/v1 deployments", deployment("a")),
        ("apis/apps/v1 controllerrevisions", revision),
        ("apis/coordination.k8s.io/v1 leases", lease),
        ("apis/autoscaling/v2 horizontalpodautoscalers", autoscaler),
        ("apis/networking.k8s.io/v1 ingresses", ingress),
        ("apis/discovery.k8s.io/v1 endpointslices", slice),
        ("apis/rbac.authorization.k8s.io/v1 roles", role),
        ("apis/policy/v1 poddisruptionbudgets", budget),
        ("apis/events.k8s.io/v1 events", event),
    ]
}

#[tokio::test]
async fn objects_have_the_same_content_as_in_json() {
    let api = Api::start();
    let ns = api.namespace().await;
    for (place, object) in rich_objects() {
        let (version, resource) = place.split_once(' ').unwrap();
        let mut path = format!("/{version}/namespaces/{ns}/{resource}");
        if resource == "events" {
            path = path.replace(&ns, "default");
            api.discard(format!("{path}/a"));
        }
        let created = api.request(Method::POST, &path).accept(TYPED).json(&object).send().await.is(201);
        let created = protobuf(&created);
        assert_eq!(decoded(&created)["kind"], object["kind"]);
        assert_same_object(&api, &format!("{path}/a")).await;
    }
    let v1 = format!("/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers/a");
    assert_same_object(&api, &v1).await;
    assert_same_object(&api, &format!("/apis/apps/v1/namespaces/{ns}/deployments/a/scale")).await;
    assert_same_object(&api, &format!("/api/v1/namespaces/{ns}")).await;
}

#[tokio::test]
async fn every_list_has_the_same_content_as_in_json() {
    let api = Api::start();
    let catalog = Catalog::builtin();
    let mut compared = 0;
    for version in catalog.group_versions() {
        let root = match &*version.group {
            "" => format!("/api/{}", version.version),
            group => format!("/apis/{group}/{}", version.version),
        };
        for resource in &version.resources {
            if !resource.verbs.iter().any(|verb| &**verb == "watch") {
                continue;
            }
            let json = get(&api, &format!("{root}/{}", resource.name), JSON).await.is(200);
            let at = json.version();
            let exact = format!("{root}/{}?resourceVersion={at}&resourceVersionMatch=Exact", resource.name);
            let found = get(&api, &exact, PROTOBUF).await.is(200);
            let (found, expected) = (protobuf(&found), encoded(&json.json()));
            if api.is_shared() {
                // The real server writes the keys of managed fields in any order.
                assert_eq!(decoded(&found), decoded(&expected));
            } else {
                assert_same(&found, &expected);
            }
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[tokio::test]
async fn writes_and_errors_are_answered_in_protobuf() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let path = format!("{maps}/a");
    let send = |method: Method, path: &str, body: Value| {
        api.request(method, path).accept(TYPED).body(PROTOBUF, encoded(&body)).send()
    };
    let created = send(Method::POST, &maps, config_map("a")).await.is(201);
    let mut object = decoded(&protobuf(&created));
    assert_eq!(object["data"], json!({"k": "v"}));
    object["data"]["k"] = "w".into();
    let updated = send(Method::PUT, &path, object).await.is(200);
    assert_eq!(decoded(&protobuf(&updated))["data"], json!({"k": "w"}));
    let patch = api.request(Method::PATCH, &path).accept(TYPED).body(MERGE_PATCH, r#"{"data":{"k":"x"}}"#);
    assert_eq!(decoded(&protobuf(&patch.send().await.is(200)))["data"], json!({"k": "x"}));
    let again = send(Method::POST, &maps, config_map("a")).await.is(409);
    let refused = api.request(Method::POST, &maps).accept(JSON).json(&config_map("a")).send().await.is(409);
    assert_same(&protobuf(&again), &encoded(&refused.json()));
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    let deleted = send(Method::DELETE, &path, options).await.is(200);
    let status = decoded(&protobuf(&deleted));
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"]["name"], "a");
    let missing = get(&api, &path, TYPED).await.is(404);
    assert_same(&protobuf(&missing), &encoded(&get(&api, &path, JSON).await.is(404).json()));
    let collection = send(Method::DELETE, &maps, json!({"kind": "DeleteOptions", "apiVersion": "v1"})).await;
    assert_eq!(decoded(&protobuf(&collection.is(200)))["kind"], "ConfigMapList");
    let review = json!({
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = send(Method::POST, reviews, review).await.is(201);
    assert_eq!(decoded(&protobuf(&answer))["status"]["allowed"], true);
}

#[tokio::test]
async fn a_watch_sends_messages_with_their_lengths() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let first = api.post(&maps, labelled(config_map("a"), json!({"l": "1"}))).await.is(201);
    let query = format!("labelSelector=l&resourceVersion={}", first.version());
    let state =
        "labelSelector=l&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for query in [query.as_str(), state] {
        let path = format!("{maps}?watch=true&{query}");
        let watch = |accept: &str| api.request(Method::GET, &path).accept(accept).stream();
        let (mut json, mut messages) = (watch(JSON).await, watch(TYPED).await);
        assert_eq!((json.code, messages.code), (200, 200));
        let name = format!("b{}", query.len());
        api.post(&maps, labelled(config_map(&name), json!({"l": "1"}))).await.is(201);
        api.patch(&format!("{maps}/{name}"), MERGE_PATCH, json!({"data": {"k": "w"}})).await.is(200);
        api.delete(&format!("{maps}/{name}")).await.is(200);
        let mut kinds = Vec::new();
        while kinds.last().is_none_or(|kind| kind != "DELETED") {
            let event = json.next().await;
            let mut encoder = ProtobufEncoder::new(Catalog::builtin());
            let expected = encoder.event(&event.kind, event.object.to_string().as_bytes()).unwrap();
            let message = messages.next_message().await;
            // The bookmarks of two watches have different versions on a server with other writers.
            if event.kind != "BOOKMARK" || !api.is_shared() {
                assert_eq!(message, expected, "{event}");
            }
            kinds.push(event.kind);
        }
        assert_eq!(kinds.contains(&"BOOKMARK".to_owned()), query == state);
    }
}

#[tokio::test]
async fn a_watch_that_fails_sends_a_status() {
    let api = Api::start();
    if api.is_shared() {
        // The real server knows the first revision for some minutes.
        return;
    }
    let path = "/api/v1/configmaps?watch=true&resourceVersion=1";
    let mut watch = api.request(Method::GET, path).accept(PROTOBUF).stream().await;
    let mut json = api.request(Method::GET, path).accept(JSON).stream().await;
    let event = json.next().await;
    assert_eq!((event.kind.as_str(), event.object["code"].as_u64()), ("ERROR", Some(410)));
    let message = watch.next_message().await;
    let mut encoder = ProtobufEncoder::new(Catalog::builtin());
    let status = decoded(&message[message.iter().position(|byte| *byte == b'k').unwrap()..]);
    assert_eq!(status["code"], 410);
    // The message names the oldest revision, which a real server may move meanwhile.
    if status["message"] == event.object["message"] {
        assert_eq!(message, encoder.event("ERROR", event.object.to_string().as_bytes()).unwrap());
    }
}

#[tokio::test]
async fn a_watch_has_the_media_type_of_a_stream() {
    let api = Api::start();
    let path = "/api/v1/namespaces?watch=true&timeoutSeconds=1";
    for (accept, expected) in [
        (TYPED, "application/vnd.kubernetes.protobuf;stream=watch"),
        (
            "application/vnd.kubernetes.protobuf;stream=watch",
            "application/vnd.kubernetes.protobuf;stream=watch",
        ),
        ("application/json;stream=watch", "application/json"),
    ] {
        let reply = get(&api, path, accept).await.is(200);
        assert_eq!(reply.header("content-type"), Some(expected));
    }
}

#[tokio::test]
async fn metadata_of_every_kind_has_an_encoding() {
    let api = Api::start();
    let widgets = widgets_path(&api).await;
    api.post(&widgets, labelled(widget(&api, "a"), json!({"l": "1"}))).await.is(201);
    for version in ["v1", "v1beta1"] {
        let one = METADATA.replace("v=v1", &format!("v={version}"));
        let list = one.replace("Metadata;", "MetadataList;");
        let json = get(&api, &format!("{widgets}/a"), &format!("{JSON};{one}")).await.is(200);
        let found = get(&api, &format!("{widgets}/a"), &format!("{PROTOBUF};{one}")).await.is(200);
        assert_same(&protobuf(&found), &encoded(&json.json()));
        let json = get(&api, &widgets, &format!("{JSON};{list}")).await.is(200);
        let exact = format!("{widgets}?resourceVersion={}&resourceVersionMatch=Exact", json.version());
        let found = get(&api, &exact, &format!("{PROTOBUF};{list}")).await.is(200);
        assert_eq!(protobuf(&found), metadata_list(&json.json()), "{version}");
    }
    let watch = |accept: &str| {
        let path = format!("{widgets}?watch=true");
        api.request(Method::GET, &path).accept(&format!("{accept};{METADATA}")).stream()
    };
    let event = watch(JSON).await.next().await;
    let mut encoder = ProtobufEncoder::new(Catalog::builtin());
    let expected = encoder.event("ADDED", event.object.to_string().as_bytes()).unwrap();
    assert_eq!(watch(PROTOBUF).await.next_message().await, expected);
}

/// Encodes a `PartialObjectMetadataList` by hand. The fields of `v1beta1` have other numbers than in `v1`.
fn metadata_list(list: &Value) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length >= 128 {
            out.push(length as u8 | 128);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(bytes);
        out
    };
    let catalog = Catalog::builtin();
    let mut encoder = ProtobufEncoder::new(catalog.clone());
    let schema = catalog.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta").unwrap();
    let metadata = encoder.message(&schema, list["metadata"].to_string().as_bytes()).unwrap().to_vec();
    let mut items = Vec::new();
    let version = list["apiVersion"].as_str().unwrap();
    let (metadata_number, item_number) = if version.ends_with("v1beta1") { (2, 1) } else { (1, 2) };
    for item in list["items"].as_array().unwrap() {
        let message = encoder.partial_metadata(item["metadata"].to_string().as_bytes()).unwrap();
        items.extend(field(item_number, message));
    }
    let metadata = field(metadata_number, &metadata);
    let raw = if metadata_number == 1 { [metadata, items] } else { [items, metadata] }.concat();
    let kind = [field(1, version.as_bytes()), field(2, b"PartialObjectMetadataList")].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, &raw), field(3, b""), field(4, b"")].concat()
}

#[tokio::test]
async fn a_custom_resource_has_no_encoding() {
    let api = Api::start();
    let widgets = widgets_path(&api).await;
    let path = format!("{widgets}/a");
    api.post(&widgets, widget(&api, "a")).await.is(201);
    let json = get(&api, &path, TYPED).await.is(200);
    assert_eq!((json.header("content-type"), json.at("/spec/size")), (Some(JSON), json!(3)));
    get(&api, &widgets, TYPED).await.is(200).json();
    for path in [&path, &widgets] {
        let refused = get(&api, path, PROTOBUF).await.is(406);
        let status = decoded(&protobuf(&refused));
        expect!["only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]
            .assert_eq(status["message"].as_str().unwrap());
    }
    let missing = get(&api, &format!("{widgets}/b"), TYPED).await.is(404);
    let expected = get(&api, &format!("{widgets}/b"), JSON).await.is(404);
    assert_same(&protobuf(&missing), &encoded(&expected.json()));
}

#[tokio::test]
async fn a_table_has_no_encoding() {
    let api = Api::start();
    let table = "as=Table;g=meta.k8s.io;v=v1";
    let reply = get(&api, "/api/v1/namespaces", &format!("{PROTOBUF};{table},{JSON};{table}")).await.is(200);
    assert_eq!(reply.at("/kind"), "Table");
    get(&api, "/api/v1/namespaces", &format!("{PROTOBUF};{table}")).await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
}

#[tokio::test]
async fn discovery_is_answered_in_protobuf() {
    let api = Api::start();
    for path in ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io/v1"] {
        let json = get(&api, path, JSON).await.is(200).json();
        let found = get(&api, path, TYPED).await.is(200);
        assert_same(&protobuf(&found), &encoded(&json));
    }
}

#[tokio::test]
async fn managed_fields_are_dropped_on_request() {
    let api = Api::start();
    if api.is_shared() {
        // The feature is off in the real server.
        return;
    }
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&maps, config_map("a")).await.is(201);
    let drop = "drop=metadata.managedFields";
    for path in [format!("{maps}/a"), format!("{maps}?fieldSelector=metadata.name=a")] {
        let json = get(&api, &path, &format!("{JSON};{drop}")).await.is(200).json();
        let found = get(&api, &path, &format!("{PROTOBUF};{drop}")).await.is(200);
        assert_same(&protobuf(&found), &encoded(&json));
    }
    let path = format!("{maps}?watch=true&fieldSelector=metadata.name=a");
    let watch = |accept: &str| api.request(Method::GET, &path).accept(&format!("{accept};{drop}")).stream();
    let event = watch(JSON).await.next().await;
    let mut encoder = ProtobufEncoder::new(Catalog::builtin());
    let expected = encoder.event("ADDED", event.object.to_string().as_bytes()).unwrap();
    assert_eq!(watch(PROTOBUF).await.next_message().await, expected);
}

#[tokio::test]
async fn a_long_list_comes_in_pieces() {
    // In process even if the other tests go over TLS: the embedded server does not compress replies for the
    // same machine.
    let api = Api::start();
    let api = if api.is_shared() { api } else { Api::embedded(&Server::builder().build().unwrap()) };
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    for number in 0..40 {
        let mut map = labelled(config_map(&format!("a{number}")), json!({"long": "list"}));
        map["data"]["long"] = "0123456789".repeat(2_000).into();
        api.post(&maps, map).await.is(201);
    }
    for query in ["labelSelector=long", "labelSelector=long&limit=30"] {
        let path = format!("{maps}?{query}");
        let json = get(&api, &path, JSON).await.is(200).json();
        let found = get(&api, &path, TYPED).await.is(200);
        // Another write to a real server meanwhile moves the revision of the list.
        if decoded(&found.body)["metadata"] == json["metadata"] {
            assert_same(&protobuf(&found), &encoded(&json));
        }
        assert_eq!(
            decoded(&found.body)["items"].as_array().unwrap().len(),
            json["items"].as_array().unwrap().len()
        );
        let request = api.request(Method::GET, &path).accept(TYPED).header("accept-encoding", "gzip");
        let zipped = request.send().await.is(200);
        assert_eq!(zipped.header("content-encoding"), Some("gzip"));
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&*zipped.body).read_to_end(&mut plain).unwrap();
        assert_eq!(decoded(&plain)["items"], decoded(&found.body)["items"]);
    }
}

#[tokio::test]
async fn a_watch_over_a_websocket_sends_binary_messages() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let path = format!("{maps}?watch=true&fieldSelector=metadata.name=a");
    api.post(&maps, config_map("a")).await.is(201);
    let mut json = api.watch(&format!("{maps}?fieldSelector=metadata.name=a")).await;
    let event = json.next().await;
    let mut encoder = ProtobufEncoder::new(Catalog::builtin());
    let expected = encoder.event("ADDED", event.object.to_string().as_bytes()).unwrap()[4..].to_vec();
    let mut watch = api.websocket_accepting(&path, PROTOBUF).await.unwrap();
    let message = tokio::time::timeout(deadline(), watch.next()).await.expect("a message in time");
    assert_eq!(message.expect("an open connection").unwrap(), Message::Binary(expected.into()));
}
