use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{difference, vector};
use crate::graph::NodeRef;
use crate::{Catalog, ProtobufEncoder, ProtobufList, Type, decode_protobuf};

fn encoder() -> ProtobufEncoder {
    ProtobufEncoder::new(Catalog::builtin())
}

fn encode(object: &Value) -> Result<Vec<u8>, String> {
    encoder().object(object.to_string().as_bytes()).map(<[u8]>::to_vec).map_err(|error| error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// A sequence of numbers that only depends on the seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.next(choices.len() as u64) as usize].clone()
    }
}

/// Returns a value of a schema without empty texts, zeros and empty lists, because protobuf does not distinguish absent
/// and empty values.
fn instance(schema: NodeRef<'_>, numbers: &mut Numbers, depth: u64) -> Value {
    let definition = schema.definition().unwrap_or_default();
    match schema.format() {
        Some("quantity") => return numbers.of(&["2500m", "4Mi", "1"]).into(),
        Some("int-or-string") => return numbers.of(&[json!(80), json!(-1), json!("http")]),
        Some("date-time") => return numbers.of(&["2026-11-21T12:00:00Z", "1970-01-01T00:00:00Z"]).into(),
        Some("micro-time") => {
            return numbers.of(&["2026-11-21T12:00:00.000007Z", "1969-01-01T00:00:00.500000Z"]).into();
        }
        Some("byte") => return "AP8=".into(),
        Some("raw" | "fields-v1" | "json") => return json!({"a": [1, "\"\n", {}], "b": null, "kind": 1.5}),
        Some("json-or") => {
            let other = match definition.rsplit_once("Or").map_or("", |(_, name)| name) {
                "Bool" => json!(true),
                "Array" => json!([{"type": "string"}, {"format": "x"}]),
                _ => json!(["b", "a"]),
            };
            let schema = json!({"type": "string", "maxLength": 7});
            return numbers.of(&[other, schema]);
        }
        _ => {}
    }
    match schema.kind() {
        Type::Boolean => true.into(),
        Type::Integer => numbers.of(&[json!(1), json!(-5), json!(70_000)]),
        Type::Number => numbers.of(&[json!(1.5), json!(-3)]),
        Type::Array => match schema.items() {
            Some(items) => (0..=numbers.next(3)).map(|_| instance(items, numbers, depth + 1)).collect(),
            None => json!([]),
        },
        Type::Object if schema.additional().is_some() => {
            let value = schema.additional().unwrap();
            let names = ["a", "b.c/d", "z\"", "é"];
            let entry =
                |name: &str, numbers: &mut Numbers| (name.to_owned(), instance(value, numbers, depth + 1));
            (0..=numbers.next(3)).map(|at| entry(names[at as usize], numbers)).collect()
        }
        Type::Object => members(schema, numbers, depth).into(),
        Type::String | Type::Any => numbers.of(&["text", "\"q\" \\ \n", "ünï\u{1f600}"]).into(),
    }
}

fn members(schema: NodeRef<'_>, numbers: &mut Numbers, depth: u64) -> Map<String, Value> {
    let is_set = |(name, _): &(&str, NodeRef<'_>), numbers: &mut Numbers| {
        // The kind of an object is in the envelope alone.
        let is_kind = ["apiVersion", "kind"].contains(name) && schema.node.properties[*name].proto.is_none();
        !is_kind && depth < 14 && numbers.next(2 + depth / 2) == 0
    };
    let mut members = Map::new();
    for property in schema.properties() {
        if is_set(&property, numbers) {
            members.insert(property.0.to_owned(), instance(property.1, numbers, depth + 1));
        }
    }
    members
}

/// Returns whether the kind is in request and reply bodies. The objects of watches and the options have other codecs.
fn has_body(kind: &str) -> bool {
    kind != "WatchEvent"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn objects_of_every_kind_are_decoded_as_they_were(seed: u64) {
        let catalog = Catalog::builtin();
        let mut numbers = Numbers(seed);
        for kind in catalog.kinds().filter(|kind| has_body(&kind.kind)) {
            let schema = catalog.schema(&kind.group, &kind.version, &kind.kind).unwrap();
            let mut object = Value::Object(members(schema.root(), &mut numbers, 0));
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = (*kind.kind).into();
            let bytes = encode(&object).unwrap_or_else(|error| panic!("{error}: {object}"));
            let decoded = decode_protobuf(&catalog, &bytes).unwrap_or_else(|error| panic!("{error}: {object}"));
            if let Some(difference) = difference(&decoded, &object, &kind.kind) {
                panic!("{difference}\n{object}");
            }
            prop_assert_eq!(hex(&encode(&decoded).unwrap()), hex(&bytes), "{}", object);
        }
    }

    #[test]
    fn any_text_is_encoded_or_is_an_error(text in "[\\[\\]{}\":,a0 \\\\]{0,40}", bytes: Vec<u8>) {
        let catalog = Catalog::builtin();
        let schema = catalog.schema("", "v1", "Pod").unwrap();
        for text in [text.as_bytes(), &bytes] {
            let _ = encoder().object(text);
            let _ = encoder().message(&schema, text);
            let _ = encoder().partial_metadata(text);
        }
    }
}

/// Compares the encoding with that of Go, a pair a line (`hex<TAB>json`). Returns the number of objects.
fn compare_lines(vectors: &str) -> usize {
    let mut compared = 0;
    for line in vectors.lines() {
        let (bytes, json) = vector(line);
        match encoder().object(json.as_bytes()) {
            Ok(found) => assert_eq!(hex(found), hex(&bytes), "{json}"),
            Err(error) => {
                assert!(error.to_string().contains("cannot be encoded"), "{error}: {json}");
                continue;
            }
        }
        compared += 1;
    }
    compared
}

#[test]
fn objects_have_the_bytes_of_gos_encoder() {
    assert!(compare_lines(include_str!("../vectors.tsv")) > 10);
    // A larger set, generated when needed.
    if let Ok(path) = std::env::var("WINDLASS_PROTOBUF_VECTORS") {
        let vectors = fs::read_to_string(path).expect("the file of vectors");
        println!("{} objects compared", compare_lines(&vectors));
    }
}

/// `WINDLASS_PROTOBUF_GOLDEN` is the folder `testdata/HEAD` of the Go module `k8s.io/api` of the catalog's version.
#[test]
fn objects_have_the_bytes_of_the_golden_files() {
    let Ok(folder) = std::env::var("WINDLASS_PROTOBUF_GOLDEN") else { return };
    let catalog = Catalog::builtin();
    let mut compared = 0;
    for entry in fs::read_dir(folder).expect("the folder of golden files") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "pb") {
            continue;
        }
        let json: Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).expect("JSON")).expect("JSON");
        let version = json["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        if catalog.schema(group, version, json["kind"].as_str().unwrap_or_default()).is_none() {
            continue;
        }
        compare_golden(&catalog, &path, &json);
        compared += 1;
    }
    println!("{compared} golden files compared");
    assert!(compared > 50, "{compared}");
}

fn compare_golden(catalog: &Catalog, path: &Path, json: &Value) {
    let golden = fs::read(path).expect("a golden file");
    let name = path.display();
    let decoded = decode_protobuf(catalog, &golden).unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(difference) = difference(&decoded, json, "") {
        panic!("{name}: {difference}");
    }
    let encoded = encode(json).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(hex(&encoded), hex(&golden), "{name}");
}

#[test]
fn the_entries_of_a_map_are_sorted() {
    let sorted = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b\"": "2", "c": "3"}});
    let text = br#"{"data":{"c":"3","a":"1","b\u0022":"2"},"kind":"ConfigMap","apiVersion":"v1"}"#;
    assert_eq!(hex(encoder().object(text).unwrap()), hex(&encode(&sorted).unwrap()));
}

#[test]
fn fields_are_found_in_any_order() {
    let text = br#"{"kind":"ConfigMap","metadata":{"uid":"u","name":"n","x":{"name":1},"labels":null},"apiVersion":"v1"}"#;
    let same = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "uid": "u"}});
    assert_eq!(hex(encoder().object(text).unwrap()), hex(&encode(&same).unwrap()));
}

#[test]
fn a_list_in_pieces_is_the_list() {
    let item = |name: &str| json!({"metadata": {"name": name}, "data": {"key": "x".repeat(200)}});
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "7", "continue": "c", "remainingItemCount": 2},
        "items": [item("a"), item("b")],
    });
    let catalog = Catalog::builtin();
    let schema = catalog.schema("", "v1", "ConfigMap").unwrap();
    let mut encoder = encoder();
    let metadata = list["metadata"].to_string();
    let parts =
        ProtobufList::new(&mut encoder, &catalog, "v1", "ConfigMapList", metadata.as_bytes()).unwrap();
    let messages =
        ["a", "b"].map(|name| encoder.message(&schema, item(name).to_string().as_bytes()).unwrap().to_vec());
    let size = messages.iter().map(|message| ProtobufList::size_of_item(message.len())).sum();
    let mut out = Vec::new();
    parts.write_head(size, &mut out);
    messages.iter().for_each(|message| parts.write_item(message, &mut out));
    parts.write_end(&mut out);
    assert_eq!(hex(&out), hex(&encode(&list).unwrap()));
}

#[test]
fn an_event_has_its_length_and_the_object() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let inner = encode(&object).unwrap();
    let event = encoder().event("ADDED", object.to_string().as_bytes()).unwrap().to_vec();
    let (length, message) = event.split_first_chunk().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
    let raw = inner.len() as u8;
    let expected = [b"\x0a\x05ADDED\x12".as_slice(), &[raw + 2, 0x0a, raw], &inner].concat();
    assert_eq!(hex(message), hex(&expected));
}

#[test]
fn the_metadata_of_any_kind_is_encoded() {
    let metadata = json!({"name": "a", "labels": {"b": "c"}});
    let object =
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    let bytes = encode(&object).unwrap();
    let mut encoder = encoder();
    let message = encoder.partial_metadata(metadata.to_string().as_bytes()).unwrap();
    let head = b"k8s\0\x0a\x27\x0a\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x12";
    let expected = [head.as_slice(), &[message.len() as u8], message, b"\x1a\0\"\0"].concat();
    assert_eq!(hex(&bytes), hex(&expected));
    assert_eq!(message[0], 0x0a, "the metadata has field 1");
}

#[test]
fn values_of_other_types_are_errors() {
    let error = |object: Value| encode(&object).unwrap_err();
    let config_map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
    assert_eq!(error(config_map(json!({"a": 1}))), "cannot encode number as a string");
    assert_eq!(
        error(json!({"apiVersion": "example.com/v1", "kind": "Thing"})),
        "the kind Thing of version \"example.com/v1\" cannot be encoded to a protobuf message"
    );
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
    assert_eq!(error(pod(json!("x"))), "cannot encode string as a message");
    assert_eq!(error(pod(json!({"priority": "x"}))), "cannot encode string as a number");
    assert_eq!(error(pod(json!({"priority": 1.5}))), "cannot encode number as an integer");
    assert!(encoder().object(b"{\"kind\"").is_err());
    assert!(encoder().object(b"").is_err());
}

#[test]
fn deep_schemas_are_refused() {
    let mut schema = json!({"type": "string"});
    for _ in 0..600 {
        schema = json!({"not": schema});
    }
    let catalog = Catalog::builtin();
    let definition = catalog
        .definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
        .unwrap();
    let error = encoder().message(&definition, schema.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "exceeded max depth");
}
