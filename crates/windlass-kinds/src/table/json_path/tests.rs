use proptest::prelude::*;
use serde_json::json;

use super::*;

fn find(path: &str) -> Value {
    let root = json!({
        "spec": {"replicas": 3, "names": ["a", "b", "c"], "x.y": {"z": 1}},
        "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 2},
            {"type": "Synced", "status": "False", "n": 5},
        ]},
    });
    JsonPath::parse(path).expect(path).find(&root).into_iter().cloned().collect()
}

#[test]
fn paths_of_printer_columns_lead_where_they_should() {
    assert_eq!(find(".spec.replicas"), json!([3]));
    assert_eq!(find("{.spec.replicas}"), json!([3]));
    assert_eq!(find("$.spec.replicas"), json!([3]));
    assert_eq!(find(".spec.names[0]"), json!(["a"]));
    assert_eq!(find(".spec.names[-1]"), json!(["c"]));
    assert_eq!(find(".spec.names[0:2]"), json!(["a", "b"]));
    assert_eq!(find(".spec.names[*]"), json!(["a", "b", "c"]));
    assert_eq!(find(r".spec['x.y'].z"), json!([1]));
    assert_eq!(find(r".spec.x\.y.z"), json!([1]));
    assert_eq!(find(r".metadata.labels.app\.kubernetes\.io/name"), json!(["web"]));
    assert_eq!(find(r#".status.conditions[?(@.type=="Ready")].status"#), json!(["True"]));
    assert_eq!(find(".status.conditions[?(@.type == 'Synced')].status"), json!(["False"]));
    assert_eq!(find(".status.conditions[?(@.n>2)].type"), json!(["Synced"]));
    assert_eq!(find(".status.conditions[?(@.type!=\"Ready\")].type"), json!(["Synced"]));
    assert_eq!(find(".status.conditions[?(@.n)].n"), json!([2, 5]));
    assert_eq!(find("..type"), json!(["Ready", "Synced"]));
    assert_eq!(find(".nothing.here"), json!([]));
}

#[test]
fn broken_paths_are_refused() {
    for path in [".spec[", ".spec[x]", ".a[?(@.b==]", ".a[?(b)]", "..", ".a['b]", ".a[0:1:0]"] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in r#"[.\[\]?@()='"a0*:<>! \\$-]{0,40}|.{0,40}"#) {
        if let Ok(path) = JsonPath::parse(&text) {
            let _ = path.find(&json!({"a": [1, {"a": 2}, [3]]}));
        }
    }
}
