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

#[test]
fn a_filter_inside_of_a_filter_is_refused() {
    assert!(JsonPath::parse(".a[?(@.b[?(@.c)])]").is_err());
    assert!(JsonPath::parse(".a[?(@.b==@.c[?(@.d)])]").is_err());
    assert!(JsonPath::parse(".a[?(@.b)][?(@.c)]").is_ok());
    // The depth of the stack does not depend on the path.
    assert!(JsonPath::parse(&format!(".{}", "[?(@".repeat(50_000))).is_err());
}

#[test]
fn a_search_that_visits_too_many_values_finds_nothing() {
    let items: Vec<Value> = (0..1000).map(|number| json!({"n": [number]})).collect();
    let root = json!({"items": items});
    assert_eq!(JsonPath::parse("..n").unwrap().find(&root).len(), 1000);
    assert_eq!(JsonPath::parse(".items[?(@..n)]").unwrap().find(&root).len(), 1000);
    // Each item costs a hundred thousand visits.
    let expensive = format!(".items[?(@.n==@{})]", ".n['a','b','c','d','e','f','g','h']..x".repeat(8));
    assert_eq!(JsonPath::parse(&expensive).unwrap().find(&root), Vec::<&Value>::new());
    let deep = format!("{}x", "..*".repeat(12));
    assert_eq!(JsonPath::parse(&deep).unwrap().find(&root), Vec::<&Value>::new());
    let filters = ".items[?(@..n)]".to_owned() + &"..[?(@..n)]".repeat(8);
    assert_eq!(JsonPath::parse(&filters).unwrap().find(&root), Vec::<&Value>::new());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in r#"[.\[\]?@()='"a0*:<>! \\$-]{0,40}|.{0,40}"#) {
        if let Ok(path) = JsonPath::parse(&text) {
            let _ = path.find(&json!({"a": [1, {"a": 2}, [3]]}));
        }
    }
}
