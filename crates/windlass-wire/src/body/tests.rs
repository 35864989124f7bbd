use serde_json::json;

use super::*;

fn decode(content_type: &str, body: &'static [u8]) -> Result<Decoded, ApiError> {
    decode_body(Some(content_type), &Bytes::from_static(body), "ConfigMap", |_| {
        Ok(json!({"from": "protobuf"}))
    })
}

fn message(content_type: &str, body: &'static [u8]) -> String {
    decode(content_type, body).expect_err("refused").to_string()
}

#[test]
fn an_unknown_type_is_415() {
    let error = decode("application/cbor", b"{}").expect_err("refused");
    assert_eq!(error.code(), 415);
    assert_eq!(
        error.to_string(),
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[test]
fn broken_bodies_are_shown_as_the_real_server_shows_them() {
    let head = "the object provided is unrecognized (must be of type ConfigMap): ";
    let cases: [(&str, &[u8], &str); 6] = [
        (
            "application/json",
            b"",
            "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
        ),
        (
            "application/json",
            b"{",
            "couldn't get version/kind; json parse error: unexpected end of JSON input ({)",
        ),
        (
            "application/json",
            b"[]",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" } (5b5d)",
        ),
        (
            "application/json; charset=utf-8",
            br#"{"kind":"ConfigMap","apiVersion":"v1"} x"#,
            "couldn't get version/kind; json parse error: invalid character 'x' after top-level value ({\"kind\":\"ConfigMap\",\"apiVersio ...)",
        ),
        (
            "application/vnd.kubernetes.protobuf",
            b"kind: ConfigMap",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6b696e643a20436f6e6669674d6170)",
        ),
        (
            "application/vnd.kubernetes.protobuf",
            b"k8s\x01aaa",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6b387301616161)",
        ),
    ];
    for (content_type, body, text) in cases {
        assert_eq!(message(content_type, body), format!("{head}{text}"));
    }
}

#[test]
fn complaints_come_in_the_order_of_the_text() {
    let body = br#"{"kind":"ConfigMap","metadata":{"name":"a","name":"b"},"dat":1,"Data":{},"data":{"a":"1","a":"2"}}"#;
    let decoded = decode("application/json", body).expect("decoded");
    assert_eq!(
        decoded.strict_complaints(&["Data".to_owned(), "dat".to_owned()], false),
        [
            "duplicate field \"metadata.name\"",
            "unknown field \"dat\"",
            "unknown field \"Data\"",
            "duplicate field \"data.a\""
        ]
    );
}

#[test]
fn each_form_is_read() {
    assert_eq!(decode("application/json", b"{\"a\":1}").expect("JSON").value, json!({"a": 1}));
    assert_eq!(decode("application/yaml", b"a: 1").expect("YAML").value, json!({"a": 1}));
    let protobuf = decode("application/vnd.kubernetes.protobuf", b"k8s\0").expect("protobuf");
    assert_eq!(protobuf.value, json!({"from": "protobuf"}));
}
