use serde_json::Value;

use super::decode_error;
use crate::Catalog;

/// Objects, and the errors of a real API server.
#[test]
fn errors_read_as_on_a_real_server() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    assert!(cases.len() > 80);
    for case in cases {
        let object = &case["object"];
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let schema = Catalog::builtin().schema(group, version, &kind).unwrap();
        let error = decode_error(&schema, &kind, object);
        assert_eq!(error.as_deref(), case["error"].as_str(), "{object}");
    }
}
