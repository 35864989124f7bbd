//! Hostile objects.

use http::Method;
use serde_json::{Value, json};

use super::{ANYTHINGS, Attack, MAPS, NAMESPACE, PODS, PROTOBUF, YAML, copies, keys, one, post, times};
use crate::client::Call;

const PATTERNS: &str = "/apis/siege.test/v1/namespaces/siege/patterns";

pub(super) fn attacks() -> Vec<Attack> {
    let mut attacks = json_objects();
    attacks.extend(builtin_kinds());
    attacks.extend(other_formats());
    attacks.extend([
        times("json pod with 100,000 empty containers, 8 times", 8, json_pod(100_000)),
        times("custom object with 414,000 maps, 8 times", 8, anything(&list("{\"\":0}", 414_000))),
        times("slow pattern on 1.2 MB, 8 times", 8, slow_pattern()),
    ]);
    attacks
}

fn json_objects() -> Vec<Attack> {
    vec![
        one("custom object with 414,000 maps", anything(&list("{\"\":0}", 414_000))),
        one("custom object with 40,000 maps", anything(&list("{\"\":0}", 40_000))),
        one("custom object with 700,000 lists", anything(&list("[]", 700_000))),
        one("custom object with 1,400,000 numbers", anything(&list("0", 1_400_000))),
        one("custom object with 250,000 keys", anything(&json!(keys(250_000, &json!(0))).to_string())),
        one(
            "custom object with 90,000 equal keys",
            anything(&format!("{{{}}}", copies("\"a\":{\"a\":0}", 90_000))),
        ),
        one("custom object with 100 levels of 1,000 keys", anything(&levels(100, 1_000))),
        one("slow pattern on 1.2 MB", slow_pattern()),
        one("slow pattern on 5,000 texts", slow_patterns(5_000)),
        one("list of 2.9 MB of text", anything(&format!("\"{}\"", "x".repeat(2_900_000)))),
        one("text of 480,000 escapes", anything(&format!("\"{}\"", "\\u00e9".repeat(480_000)))),
        one("deep nesting", anything(&format!("{}{}", "[".repeat(1_400_000), "]".repeat(1_400_000)))),
        one(
            "nesting of 9,000 levels",
            anything(&format!("{}0{}", "{\"a\":".repeat(9_000), "}".repeat(9_000))),
        ),
        one("number of 2.9 MB", anything(&"9".repeat(2_900_000))),
        one("100,000 numbers of 25 digits", anything(&list("1234567890123456789012345", 100_000))),
        one("150,000 numbers with large exponents", anything(&list("1e308", 150_000))),
    ]
}

fn builtin_kinds() -> Vec<Attack> {
    let rules = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let policies = "/apis/networking.k8s.io/v1/namespaces/siege/networkpolicies";
    let slices = "/apis/discovery.k8s.io/v1/namespaces/siege/endpointslices";
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let spec = |text: String| format!(r#"{{"metadata":{{"name":"x"}},"spec":{{{text}}}}}"#);
    let metadata = |text: String| post(MAPS, format!(r#"{{"metadata":{{"name":"x",{text}}}}}"#));
    let texts = |count| json!(keys(count, &json!(""))).to_string();
    vec![
        one("json pod with 100,000 empty containers", json_pod(100_000)),
        one("15 KB pod with 5,000 empty containers", json_pod(5_000)),
        one(
            "config map with 200,000 keys",
            post(MAPS, format!(r#"{{"metadata":{{"name":"x"}},"data":{}}}"#, texts(200_000))),
        ),
        one("config map with 100,000 labels", metadata(format!("\"labels\":{}", texts(100_000)))),
        one("config map with 100,000 annotations", metadata(format!("\"annotations\":{}", texts(100_000)))),
        one(
            "config map with 100,000 finalizers",
            metadata(format!("\"finalizers\":[{}]", copies("\"a.b/c\"", 100_000))),
        ),
        one(
            "config map with 100,000 owners",
            metadata(format!("\"ownerReferences\":[{}]", copies("{}", 100_000))),
        ),
        one(
            "config map with 30,000 complete owners",
            metadata(format!("\"ownerReferences\":[{}]", owners(30_000))),
        ),
        one(
            "config map with 100,000 managers",
            metadata(format!("\"managedFields\":[{}]", copies("{}", 100_000))),
        ),
        one(
            "config map with 5,000 managers of fields",
            metadata(format!("\"managedFields\":[{}]", managers(5_000, 10))),
        ),
        one(
            "config map with a manager of 60,000 fields",
            metadata(format!("\"managedFields\":[{}]", managers(1, 60_000))),
        ),
        one(
            "config map with a manager of 25,000 levels",
            metadata(format!("\"managedFields\":[{}]", deep_manager(25_000))),
        ),
        one(
            "access review with 50,000 groups",
            post(
                reviews,
                spec(format!(
                    r#""user":"a","groups":[{}],"resourceAttributes":{{"verb":"get"}}"#,
                    copies("\"a\"", 50_000)
                )),
            ),
        ),
        one(
            "role with 200,000 rules",
            post(rules, format!(r#"{{"metadata":{{"name":"x"}},"rules":[{}]}}"#, copies("{}", 200_000))),
        ),
        one(
            "network policy with 300,000 rules",
            post(policies, spec(format!(r#""podSelector":{{}},"ingress":[{}]"#, copies("{}", 300_000)))),
        ),
        one(
            "service with 100,000 ports",
            post("/api/v1/namespaces/siege/services", spec(format!("\"ports\":[{}]", copies("{}", 100_000)))),
        ),
        one(
            "endpoint slice with 200,000 endpoints",
            post(
                slices,
                format!(
                    r#"{{"metadata":{{"name":"x"}},"addressType":"IPv4","endpoints":[{}]}}"#,
                    copies("{}", 200_000)
                ),
            ),
        ),
        one(
            "pod with 20,000 variables that refer to variables",
            json_pod_of(&format!(
                r#"{{"name":"a","image":"b","env":[{}]}}"#,
                copies(r#"{"name":"A","value":"$(A)$(A)$(A)$(A)$(A)"}"#, 20_000)
            )),
        ),
        one(
            "pod with 40,000 distinct ports",
            json_pod_of(&format!(r#"{{"name":"a","image":"b","ports":[{}]}}"#, ports(40_000))),
        ),
        one(
            "quota with 50,000 resources",
            post(
                "/api/v1/namespaces/siege/resourcequotas",
                spec(format!("\"hard\":{}", json!(keys(50_000, &json!("1"))))),
            ),
        ),
    ]
}

fn other_formats() -> Vec<Attack> {
    let yaml = |text: String| Call::new(Method::POST, MAPS).with(YAML, text);
    vec![
        one("protobuf pod with 350,000 empty containers", protobuf_pod(350_000)),
        one("protobuf pod with 1,400,000 empty containers", protobuf_pod(1_400_000)),
        one("protobuf with 700,000 levels", protobuf_levels(700_000)),
        one(
            "protobuf with 2.9 MB of unknown fields",
            protobuf(b"ConfigMap", &[0xf8, 0x07, 0x00].repeat(950_000)),
        ),
        one("CBOR of 2.9 MB", Call::new(Method::POST, MAPS).with("application/cbor", vec![0x9f; 2_900_000])),
        one(
            "gzip of 2.9 MB of nothing",
            Call::new(Method::POST, MAPS).with("application/gzip", vec![0x1f; 2_900_000]),
        ),
        one("YAML aliases", yaml(yaml_aliases())),
        one("YAML with 1,000,000 nested flows", yaml("[".repeat(1_000_000))),
        one(
            "YAML with 200,000 anchors",
            yaml((0..200_000).map(|number| format!("- &a{number} b\n")).collect::<Vec<_>>().concat()),
        ),
        one("YAML with 400,000 documents", yaml("---\n{}\n".repeat(400_000))),
        one(
            "YAML with 1,500 levels of blocks",
            yaml((0..1_500).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<Vec<_>>().concat()),
        ),
        one(
            "YAML with 100,000 merge keys",
            yaml(format!("a: &a {{b: c}}\nd:\n{}", "  <<: *a\n".repeat(100_000))),
        ),
        one("YAML of 2.9 MB of one text", yaml(format!("a: |\n{}", "  x\n".repeat(700_000)))),
    ]
}

fn list(item: &str, count: usize) -> String {
    format!("[{}]", copies(item, count))
}

fn levels(levels: usize, width: usize) -> String {
    let all = json!(keys(width, &json!(0))).to_string();
    let start = all.trim_end_matches('}');
    format!("{}0{}", format!("{start},\"next\":").repeat(levels), "}".repeat(levels))
}

fn json_pod(containers: usize) -> Call {
    json_pod_of(&copies("{}", containers))
}

fn json_pod_of(containers: &str) -> Call {
    post(PODS, format!(r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{containers}]}}}}"#))
}

fn owners(count: usize) -> String {
    let owner = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": number.to_string()}).to_string()
    };
    (0..count).map(owner).collect::<Vec<_>>().join(",")
}

fn ports(count: usize) -> String {
    let port = |number: usize| json!({"name": format!("p{number}"), "containerPort": number + 1}).to_string();
    (0..count).map(port).collect::<Vec<_>>().join(",")
}

fn managers(count: usize, fields: usize) -> String {
    let data: serde_json::Map<String, Value> =
        (0..fields).map(|number| (format!("f:{number}"), json!({}))).collect();
    let manager = |number: usize| {
        json!({
            "manager": format!("m{number}"), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": data}
        })
        .to_string()
    };
    (0..count).map(manager).collect::<Vec<_>>().join(",")
}

fn deep_manager(levels: usize) -> String {
    let fields = format!("{}{{}}{}", "{\"f:a\":".repeat(levels), "}".repeat(levels));
    format!(
        r#"{{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
    )
}

fn protobuf_pod(containers: usize) -> Call {
    // metadata.name = "p"; an empty container takes two bytes.
    let mut pod = vec![0x0a, 3, 0x0a, 1, b'p'];
    push_field(&mut pod, 0x12, &[0x12, 0].repeat(containers));
    Call { path: PODS.to_owned(), ..protobuf(b"Pod", &pod) }
}

/// A message in a message in a message, as `status.conditions` is not: the decoder must not recurse.
fn protobuf_levels(levels: usize) -> Call {
    let mut message = Vec::new();
    for _ in 0..levels.min(20_000) {
        let mut outer = Vec::with_capacity(message.len() + 5);
        push_field(&mut outer, 0x0a, &message);
        message = outer;
    }
    protobuf(b"ConfigMap", &message)
}

/// Creates an object of the group `core/v1` by a protobuf message.
fn protobuf(kind: &[u8], object: &[u8]) -> Call {
    let mut kind_field = Vec::new();
    push_field(&mut kind_field, 0x12, kind);
    let mut message = Vec::new();
    push_field(&mut message, 0x0a, &[&[0x0a, 2, b'v', b'1'], &kind_field[..]].concat());
    push_field(&mut message, 0x12, object);
    Call::new(Method::POST, MAPS).with(PROTOBUF, [b"k8s\0".as_slice(), &message].concat())
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
    post(ANYTHINGS, format!("{{{head},\"value\":{value}}}"))
}

fn pattern(field: &str, value: Value) -> Call {
    let mut object = json!({"apiVersion": "siege.test/v1", "kind": "Pattern", "metadata": {"name": "x", "namespace": NAMESPACE}});
    object[field] = value;
    Call::post(PATTERNS, &object)
}

fn slow_pattern() -> Call {
    pattern("text", "x".repeat(1_200_000).into())
}

fn slow_patterns(texts: usize) -> Call {
    pattern("list", (0..texts).map(|number| format!("{}{number}", "x".repeat(500))).collect())
}

fn yaml_aliases() -> String {
    let level = |level: usize| {
        let before = level.checked_sub(1).map_or("x".to_owned(), |before| format!("*a{before}"));
        format!("a{level}: &a{level} [{}]", vec![before; 9].join(","))
    };
    (0..12).map(level).collect::<Vec<_>>().join("\n")
}
