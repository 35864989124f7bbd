mod encode;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::decode_protobuf;
use crate::{Catalog, default};

/// Encodes a field of wire type 2: key, length, payload.
fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, payload.len() as u8];
    out.extend(payload);
    out
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat()
}

fn decode(bytes: &[u8]) -> Result<Value, String> {
    decode_protobuf(&Catalog::builtin(), bytes).map_err(|error| error.to_string())
}

#[test]
fn a_config_map_is_read() {
    let meta = [field(1, b"a"), field(3, b""), vec![8 << 3 | 2, 0]].concat();
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    let binary = [field(1, b"raw"), field(2, &[0, 255])].concat();
    let raw = [field(1, &meta), field(2, &entry), field(3, &binary), vec![4 << 3, 1]].concat();
    let object = decode(&body("v1", "ConfigMap", &raw)).unwrap();
    assert_eq!(
        object,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {"key": "value"},
            "binaryData": {"raw": "AP8="},
            "immutable": true,
        })
    );
}

#[test]
fn malformed_bodies_are_errors() {
    assert_eq!(
        decode(b"{}").unwrap_err(),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    let unknown = decode_protobuf(&Catalog::builtin(), &body("g/v1", "Thing", b"")).unwrap_err();
    assert!(unknown.is_unknown_kind());
    assert!(decode(&body("v1", "ConfigMap", &[0x0a, 0x05, 1])).unwrap_err().contains("EOF"));
    assert!(decode(&body("v1", "ConfigMap", &[0x0b])).unwrap_err().contains("wireType"));
}

#[test]
fn options_of_any_group_are_read() {
    let policy = field(4, b"Foreground");
    let object = decode(&body("example.com/v1", "DeleteOptions", &policy)).unwrap();
    assert_eq!(object["propagationPolicy"], "Foreground");
}

#[test]
fn deep_messages_are_refused() {
    let mut deep = Vec::new();
    for _ in 0..400 {
        // The key of field 28 (`not`) takes two bytes.
        let mut next = vec![0xe2, 0x01];
        let mut length = deep.len();
        while length >= 0x80 {
            next.push(length as u8 | 0x80);
            length >>= 7;
        }
        next.push(length as u8);
        next.extend(&deep);
        deep = next;
    }
    let catalog = Catalog::builtin();
    let schema =
        catalog.definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    let mut members = serde_json::Map::new();
    let place = super::Place { depth: 0, left: &std::cell::Cell::new(1_000) };
    let error = super::message(&deep, schema.unwrap().root(), [0; 2], &mut members, place).unwrap_err();
    assert_eq!(error.to_string(), "exceeded max depth");
}

/// Returns the first difference. Empty and absent values are equal, because protobuf does not distinguish them.
fn difference(found: &Value, expected: &Value, path: &str) -> Option<String> {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).find_map(|key| {
            let none = Value::Null;
            difference(a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none), &format!("{path}.{key}"))
        }),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => (a.iter().zip(b).enumerate())
            .find_map(|(index, (a, b))| difference(a, b, &format!("{path}[{index}]"))),
        _ if is_empty(found) && is_empty(expected) => None,
        _ => (found != expected).then(|| format!("{path}: found {found}, expected {expected}")),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().all(is_empty),
        Value::Array(items) => items.iter().all(is_empty),
        other => ["null", "\"\"", "0", "\"0\"", "false"].contains(&other.to_string().as_str()),
    }
}

/// Returns the bytes and the JSON of a line `hex<TAB>json`.
fn vector(line: &str) -> (Vec<u8>, &str) {
    let (hex, json) = line.split_once('\t').expect("hex, tab, JSON");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    ((0..hex.len()).step_by(2).map(byte).collect(), json)
}

/// Compares decoded bytes with JSON. Both were written by Go's serialisers, a pair a line (`hex<TAB>json`).
fn compare(vectors: &str) -> usize {
    let catalog = Catalog::builtin();
    let mut compared = 0;
    for line in vectors.lines() {
        let (bytes, json) = vector(line);
        let mut expected: Value = serde_json::from_str(json).expect("JSON");
        let mut found = match decode_protobuf(&catalog, &bytes) {
            Err(error) if error.is_unknown_kind() => continue,
            found => found.unwrap_or_else(|error| panic!("{error}: {json}")),
        };
        let text = |name: &str| expected[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let Some(schema) = catalog.schema(group, version, &kind) else { continue };
        default(&schema, &mut found);
        default(&schema, &mut expected);
        if let Some(difference) = difference(&found, &expected, &kind) {
            panic!("{difference}");
        }
        compared += 1;
    }
    compared
}

#[test]
fn messages_of_go_clients_are_read_as_their_json() {
    assert!(compare(include_str!("vectors.tsv")) > 10);
    // A larger set, generated when needed.
    if let Ok(path) = std::env::var("WINDLASS_PROTOBUF_VECTORS") {
        let vectors = std::fs::read_to_string(path).expect("the file of vectors");
        println!("{} compared", compare(&vectors));
    }
}

proptest! {
    #[test]
    fn hostile_bytes_do_not_panic(raw in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..4_usize) {
        let (api_version, kind) = [
            ("v1", "Pod"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("apps/v1", "Deployment"),
            ("authentication.k8s.io/v1", "TokenReview"),
        ][kind];
        let mut bytes = body(api_version, kind, b"");
        bytes.truncate(bytes.len() - 6);
        bytes.push(0x12);
        bytes.push(raw.len().min(127) as u8);
        bytes.extend(&raw[..raw.len().min(127)]);
        let _ = decode(&bytes);
        let _ = decode(&raw);
    }
}

#[test]
fn a_small_body_with_many_messages_is_refused() {
    let catalog = Catalog::builtin();
    // A pod with 100,000 empty containers, in 200 KB.
    let spec = [0x12, 0].repeat(100_000);
    let mut pod = vec![0x12, 0xc0, 0x9a, 0x0c];
    pod.extend_from_slice(&spec);
    let mut body = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\xc4\x9a\x0c".to_vec();
    body.extend_from_slice(&pod);
    let error = decode_protobuf(&catalog, &body).unwrap_err();
    assert!(error.to_string().contains("more than 50000 messages"), "{error}");
}
