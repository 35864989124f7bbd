//! Bodies that arrive in pieces.

use bytes::Bytes;
use windlass_cache::{
    ScanOptions, Scanner,
    frame::{ListFramer, ListMeta, WatchFramer},
    scan::WatchEventType,
};

const LIMIT: usize = 1 << 20;

fn pieces(body: &str, size: usize) -> Vec<Bytes> {
    body.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect()
}

fn scanner() -> Scanner {
    let type_meta = Some(("v1".to_owned(), "Pod".to_owned()));
    Scanner::new(&ScanOptions { type_meta, ..ScanOptions::default() })
}

/// The sizes of pieces: all, or a few under Miri, which is slow.
fn sizes(body: &str) -> impl Iterator<Item = usize> {
    (1..body.len()).step_by(if cfg!(miri) { 61 } else { 1 })
}

/// Describes the events of a watch from a body in pieces of a size.
fn watch(body: &str, size: usize) -> Vec<String> {
    let (mut framer, mut scanner) = (WatchFramer::new(LIMIT), scanner());
    let mut told = Vec::new();
    for piece in pieces(body, size) {
        framer.push(piece);
        while let Some(event) = framer.next(&mut scanner) {
            told.push(match event {
                Ok(event) if event.event == WatchEventType::Error => "an error".to_owned(),
                Ok(event) => {
                    let kind = event.event;
                    let object = event.object.to_object().expect("an object");
                    format!("{kind:?} {}", String::from_utf8_lossy(&object.json()))
                }
                Err(bad) => bad.to_string(),
            });
        }
    }
    told
}

/// Describes the items of a list from a body in pieces of a size.
fn list(body: &str, size: usize) -> (Vec<String>, Option<ListMeta>) {
    let (mut framer, mut scanner) = (ListFramer::new(LIMIT), scanner());
    let mut told = Vec::new();
    for piece in pieces(body, size) {
        framer.push(piece);
        loop {
            match framer.next(&mut scanner) {
                Ok(None) => break,
                Ok(Some(Ok(object))) => {
                    let object = object.to_object().expect("an object");
                    told.push(String::from_utf8_lossy(&object.json()).into_owned());
                }
                Ok(Some(Err(bad))) => told.push(bad.to_string()),
                Err(error) => {
                    told.push(error.to_string());
                    return (told, None);
                }
            }
        }
    }
    (told, framer.finish().ok())
}

#[test]
fn a_watch_does_not_depend_on_where_pieces_end() {
    let body = concat!(
        r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[{}]}}}"#,
        "\n",
        r#" { "object" : {"metadata":{"name":"ä\"}{","uid":"1"},"spec":{"x":"\\"}} , "type" : "MODIFIED" } "#,
        "\n\n",
        r#"{"type":"DELETED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}}"#,
        "\n",
    );
    let whole = watch(body, body.len());
    assert_eq!(
        whole,
        [
            r#"Added {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#,
            r#"Modified {"apiVersion":"v1","kind":"Pod","metadata":{"name":"ä\"}{","uid":"1"},"spec":{"x":"\\"}}"#,
            r#"Deleted {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#,
        ]
    );
    for size in sizes(body) {
        assert_eq!(watch(body, size), whole, "in pieces of {size}");
    }
}

#[test]
fn a_watch_continues_after_an_invalid_event() {
    let body = concat!(
        r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"labels":{"a":1},"namespace":"n","name":"typed"}}}"#,
        "\n",
        r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"unclosed"}"#,
        "\n",
        r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"unquoted}}}"#,
        "\n",
        "garbage\n",
        r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"fine"}}}"#,
        "\n",
    );
    for size in sizes(body) {
        let told = watch(body, size);
        assert_eq!(told.len(), 5, "in pieces of {size}: {told:?}");
        assert!(
            told[0].contains("(n/typed)") && told[0].contains("a label's value is not a string"),
            "{}",
            told[0]
        );
        assert_eq!(told[4], r#"Added {"kind":"Pod","metadata":{"name":"fine"}}"#, "in pieces of {size}");
    }
}

#[test]
fn a_list_does_not_depend_on_where_pieces_end() {
    let body = concat!(
        r#"{"kind":"PodList", "apiVersion":"v1","items":[ {"metadata":{"name":"a"},"spec":{"x":[1,{}]}} ,"#,
        r#"{"metadata":{"name":7}},{"kind":"Pod","metadata":{"name":"b"}}],"metadata":{"continue":"t","#,
        r#""resourceVersion":"12"},"more":[{"a":"]"}], "last" : 1.5e3 }"#,
        "\n",
    );
    let whole = list(body, body.len());
    assert_eq!(whole.0[0], r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"x":[1,{}]}}"#);
    assert_eq!(whole.0[1], "an object could not be read: metadata.name is not a string");
    assert_eq!(whole.0[2], r#"{"kind":"Pod","metadata":{"name":"b"}}"#);
    let meta = ListMeta { resource_version: "12".to_owned(), continue_token: "t".to_owned() };
    assert_eq!(whole.1, Some(meta));
    for size in sizes(body) {
        assert_eq!(list(body, size), whole, "in pieces of {size}");
    }
}

#[test]
fn a_body_that_is_not_a_list_is_an_error() {
    for body in [
        "[]",
        r#"{"items":{}}"#,
        r#"{"items":[1 2]}"#,
        r#"{"items":[]"#,
        r#"{"items":[]}x"#,
        r#"{"items":[,]}"#,
    ] {
        for size in [1, 100] {
            assert_eq!(list(body, size).1, None, "{body}");
        }
    }
    assert!(list(r#"{"items":null,"metadata":null}"#, 3).1.is_some());
}
