//! Hostile requests: small requests with much work or much memory behind them.

use http::Method;
use serde_json::{Value, json};

use crate::Result;
use crate::client::{Call, Connection};

/// The namespace of the attacks.
pub(crate) const NAMESPACE: &str = "siege";
const PODS: &str = "/api/v1/namespaces/siege/pods";
const MAPS: &str = "/api/v1/namespaces/siege/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ANYTHINGS: &str = "/apis/siege.test/v1/namespaces/siege/anythings";
const PATTERNS: &str = "/apis/siege.test/v1/namespaces/siege/patterns";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const YAML: &str = "application/yaml";

/// A hostile request.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) call: Call,
    /// How often the request is sent at the same time.
    pub(crate) copies: usize,
}

/// Creates the namespace, the definitions and the objects that the attacks need.
///
/// # Errors
/// The server refuses an object.
pub(crate) async fn prepare(admin: &Connection) -> Result {
    let named = |name: &str, data: Value| json!({"metadata": {"name": name}, "data": data});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let pattern = json!({"type": "object", "properties": {"text": {
        "type": "string", "pattern": "(?:(?:x{1,30}){1,30}){1,30}y"
    }}});
    let many = (0..2_000).map(|number| (format!("key-{number}"), json!("value")));
    for call in [
        Call::post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})),
        Call::post(CRDS, &definition("Anything", schema)),
        Call::post(CRDS, &definition("Pattern", pattern)),
        Call::post(MAPS, &named("one", json!({"a": "b"}))),
        Call::post(MAPS, &named("many", many.collect())),
        Call::post("/apis/apps/v1/namespaces/siege/deployments", &deployment()),
    ] {
        let path = call.path.clone();
        let reply = admin.send(call).await?;
        if reply.code != 201 && reply.code != 409 {
            return Err(format!("{path}: {} {}", reply.code, String::from_utf8_lossy(&reply.body)).into());
        }
    }
    for path in [ANYTHINGS, PATTERNS] {
        while admin.send(Call::get(path)).await?.code != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

fn definition(kind: &str, schema: Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.siege.test")},
        "spec": {
            "group": "siege.test", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]
        }
    })
}

fn deployment() -> Value {
    let labels = json!({"app": "a"});
    json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    }})
}

/// Returns all attacks.
pub(crate) fn all() -> Vec<Attack> {
    let one = |name, call| Attack { name, call, copies: 1 };
    let mut attacks = vec![
        one("json pod with 100,000 empty containers", json_pod(100_000)),
        one("protobuf pod with 350,000 empty containers", protobuf_pod(350_000)),
        one("protobuf pod with 1,400,000 empty containers", protobuf_pod(1_400_000)),
        one("custom object with 414,000 maps", anything(&format!("[{}{{\"\":0}}]", "{\"\":0},".repeat(413_999)))),
        one("custom object with 40,000 maps", anything(&format!("[{}{{\"\":0}}]", "{\"\":0},".repeat(39_999)))),
        one("custom object with 700,000 lists", anything(&format!("[{}[]]", "[],".repeat(699_999)))),
        one("custom object with 1,400,000 numbers", anything(&format!("[{}0]", "0,".repeat(1_399_999)))),
        one("custom object with 250,000 keys", anything(&keys(250_000))),
        one("slow pattern on 1.2 MB", slow_pattern()),
        one("list of 2.9 MB of text", anything(&format!("\"{}\"", "x".repeat(2_900_000)))),
        one("deep nesting", anything(&format!("{}{}", "[".repeat(1_400_000), "]".repeat(1_400_000)))),
        one("number of 2.9 MB", anything(&"9".repeat(2_900_000))),
        one("config map with 200,000 keys", Call::new(Method::POST, MAPS).with("application/json", format!(
            "{{\"metadata\":{{\"name\":\"x\"}},\"data\":{}}}", keys(200_000).replace(":0", ":\"\"")
        ))),
        one("config map with 100,000 labels", Call::new(Method::POST, MAPS).with("application/json", format!(
            "{{\"metadata\":{{\"name\":\"x\",\"labels\":{}}}}}", keys(100_000).replace(":0", ":\"\"")
        ))),
        one("config map with 100,000 owners", Call::new(Method::POST, MAPS).with("application/json", format!(
            "{{\"metadata\":{{\"name\":\"x\",\"ownerReferences\":[{}{{}}]}}}}", "{},".repeat(99_999)
        ))),
        one("config map with 100,000 managers", Call::new(Method::POST, MAPS).with("application/json", format!(
            "{{\"metadata\":{{\"name\":\"x\",\"managedFields\":[{}{{}}]}}}}", "{},".repeat(99_999)
        ))),
        one("YAML aliases", Call::new(Method::POST, MAPS).with(YAML, yaml_aliases())),
        one("YAML with 1,000,000 nested flows", Call::new(Method::POST, MAPS).with(YAML, "[".repeat(1_000_000))),
        one("YAML with 200,000 anchors", Call::new(Method::POST, MAPS).with(YAML, yaml_anchors(200_000))),
        one("YAML with 500,000 documents", Call::new(Method::POST, MAPS).with(YAML, "---\n{}\n".repeat(400_000))),
        one("apply of 60,000 fields", apply(60_000)),
        one("strategic merge of 8,000 variables", strategic_merge(8_000)),
        one("JSON patch with 9,999 tests of the root", json_patch(9_999)),
        one("JSON patch with 9,999 copies", json_patch_copies(9_999)),
        one("definition with 20,000 properties", wide_definition(20_000)),
        one("selector with 28,000 values", Call::get(format!("{MAPS}?labelSelector=a%20in%20({})", "b,".repeat(28_000)))),
        one("field selector with 3,000 parts", Call::get(format!("{MAPS}?fieldSelector={}", "metadata.name!%3Da,".repeat(3_000)))),
        one("access review with 50,000 groups", Call::new(Method::POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews").with(
            "application/json",
            format!("{{\"spec\":{{\"user\":\"a\",\"groups\":[{}\"b\"],\"resourceAttributes\":{{\"verb\":\"get\"}}}}}}", "\"a\",".repeat(49_999)),
        )),
        one("role with 200,000 rules", Call::new(Method::POST, "/apis/rbac.authorization.k8s.io/v1/clusterroles").with(
            "application/json",
            format!("{{\"metadata\":{{\"name\":\"x\"}},\"rules\":[{}{{}}]}}", "{},".repeat(199_999)),
        )),
        one("network policy with 300,000 rules", Call::new(Method::POST, "/apis/networking.k8s.io/v1/namespaces/siege/networkpolicies").with(
            "application/json",
            format!("{{\"metadata\":{{\"name\":\"x\"}},\"spec\":{{\"podSelector\":{{}},\"ingress\":[{}{{}}]}}}}", "{},".repeat(299_999)),
        )),
        one("service with 100,000 ports", Call::new(Method::POST, "/api/v1/namespaces/siege/services").with(
            "application/json",
            format!("{{\"metadata\":{{\"name\":\"x\"}},\"spec\":{{\"ports\":[{}{{}}]}}}}", "{},".repeat(99_999)),
        )),
        one("endpoint slice with 200,000 endpoints", Call::new(Method::POST, "/apis/discovery.k8s.io/v1/namespaces/siege/endpointslices").with(
            "application/json",
            format!("{{\"metadata\":{{\"name\":\"x\"}},\"addressType\":\"IPv4\",\"endpoints\":[{}{{}}]}}", "{},".repeat(199_999)),
        )),
        one("15 KB pod with 5,000 empty containers", json_pod(5_000)),
    ];
    for (name, call) in [
        ("json pod with 100,000 empty containers, 8 times", json_pod(100_000)),
        (
            "custom object with 414,000 maps, 8 times",
            anything(&format!("[{}{{\"\":0}}]", "{\"\":0},".repeat(413_999))),
        ),
        ("slow pattern on 1.2 MB, 8 times", slow_pattern()),
    ] {
        attacks.push(Attack { name, call, copies: 8 });
    }
    attacks
}

fn json_pod(containers: usize) -> Call {
    let list = "{},".repeat(containers - 1);
    let body = format!("{{\"metadata\":{{\"name\":\"p\"}},\"spec\":{{\"containers\":[{list}{{}}]}}}}");
    Call::new(Method::POST, PODS).with("application/json", body)
}

fn protobuf_pod(containers: usize) -> Call {
    // metadata.name = "p"; an empty container takes two bytes.
    let metadata = [0x0a, 3, 0x0a, 1, b'p'];
    let spec = [0x12, 0].repeat(containers);
    let mut pod = metadata.to_vec();
    push_field(&mut pod, 0x12, &spec);
    let mut message = Vec::new();
    push_field(&mut message, 0x0a, &[0x0a, 2, b'v', b'1', 0x12, 3, b'P', b'o', b'd']);
    push_field(&mut message, 0x12, &pod);
    Call::new(Method::POST, PODS).with(PROTOBUF, [b"k8s\0".as_slice(), &message].concat())
}

/// Appends a field of bytes to a protobuf message.
fn push_field(message: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    message.push(tag);
    let mut length = bytes.len();
    while length >= 0x80 {
        message.push((length % 0x80) as u8 | 0x80);
        length /= 0x80;
    }
    message.push(length as u8);
    message.extend_from_slice(bytes);
}

/// Creates a custom object with a value in JSON.
fn anything(value: &str) -> Call {
    let head = r#""apiVersion":"siege.test/v1","kind":"Anything","metadata":{"name":"x"}"#;
    Call::new(Method::POST, ANYTHINGS).with("application/json", format!("{{{head},\"value\":{value}}}"))
}

fn keys(count: usize) -> String {
    let keys: Vec<String> = (0..count).map(|number| format!("\"{number:x}\":0")).collect();
    format!("{{{}}}", keys.join(","))
}

fn slow_pattern() -> Call {
    let object = json!({
        "apiVersion": "siege.test/v1", "kind": "Pattern", "metadata": {"name": "x"}, "text": "x".repeat(1_200_000)
    });
    Call::post(PATTERNS, &object)
}

fn yaml_aliases() -> String {
    let level = |level: usize| {
        let before = level.checked_sub(1).map_or("x".to_owned(), |before| format!("*a{before}"));
        format!("a{level}: &a{level} [{}]", vec![before; 9].join(","))
    };
    (0..12).map(level).collect::<Vec<_>>().join("\n")
}

fn yaml_anchors(count: usize) -> String {
    (0..count).map(|number| format!("- &a{number} b")).collect::<Vec<_>>().join("\n")
}

fn apply(fields: usize) -> Call {
    let data: serde_json::Map<String, Value> =
        (0..fields).map(|number| (format!("key-{number}"), json!(""))).collect();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data});
    Call::new(Method::PATCH, format!("{MAPS}/applied?fieldManager=siege")).with(APPLY, object.to_string())
}

fn strategic_merge(variables: usize) -> Call {
    let variables: Vec<Value> = (0..variables).map(|number| json!({"name": format!("v{number}")})).collect();
    let containers = json!([{"name": "a", "env": variables}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let path = "/apis/apps/v1/namespaces/siege/deployments/web?dryRun=All";
    Call::new(Method::PATCH, path).with("application/strategic-merge-patch+json", patch.to_string())
}

fn json_patch(tests: usize) -> Call {
    let patch = json!(vec![json!({"op": "test", "path": "", "value": {}}); tests]);
    Call::new(Method::PATCH, format!("{MAPS}/many")).with("application/json-patch+json", patch.to_string())
}

fn json_patch_copies(copies: usize) -> Call {
    let copy = |number| json!({"op": "copy", "from": "/data", "path": format!("/data/c{number}")});
    let patch: Value = (0..copies).map(copy).collect();
    Call::new(Method::PATCH, format!("{MAPS}/many")).with("application/json-patch+json", patch.to_string())
}

fn wide_definition(properties: usize) -> Call {
    let property =
        |number| (format!("p{number}"), json!({"type": "string", "default": "d", "pattern": "^[a-z]+$"}));
    let properties: serde_json::Map<String, Value> = (0..properties).map(property).collect();
    Call::post(CRDS, &definition("Wide", json!({"type": "object", "properties": properties})))
}
