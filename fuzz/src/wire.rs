//! Targets for the parsers of requests.

use std::str;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use windlass_cache::Selector;
use windlass_kinds::table::{IncludeObject, TableKind, TableOptions};
use windlass_schema::{Catalog, decode_protobuf};
use windlass_wire::selector::{FieldSelector, LabelSelector};
use windlass_wire::{TableVersion, Target, continue_token, decode_body, negotiate};

use crate::split;

/// The label selector parsers of the server and of the cache agree.
pub(crate) fn selectors(data: &[u8]) {
    // In the server, as in Go's lexer, a zero byte ends the text.
    let Some(text) = str::from_utf8(data).ok().filter(|text| !text.contains('\0')) else { return };
    let (server, cache) = (LabelSelector::parse(text), text.parse::<Selector>());
    assert_eq!(server.is_ok(), cache.is_ok(), "{text:?}: server: {server:?}, cache: {cache:?}");
    let (Ok(server), Ok(cache)) = (server, cache) else { return };
    for labels in samples() {
        let by_cache = cache.matches_labels(|key| labels.get(key).and_then(Value::as_str));
        assert_eq!(server.matches(Some(&labels)), by_cache, "{text:?} of {labels:?}");
    }
}

fn samples() -> impl Iterator<Item = Map<String, Value>> {
    let samples =
        [json!({}), json!({ "a": "1" }), json!({ "a": "2", "b": "" }), json!({ "app": "web", "n": "7" })];
    samples.into_iter().filter_map(|sample| match sample {
        Value::Object(labels) => Some(labels),
        _ => None,
    })
}

/// Every field selector that parses can be checked and matched.
pub(crate) fn field_selectors(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(selector) = FieldSelector::parse(text) {
        let _ = selector.check(&["metadata.name"], ToOwned::to_owned);
        let _ = selector.matches(ToOwned::to_owned);
    }
}

/// Every body, in every media type, decodes to an object or is an error.
pub(crate) fn bodies(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    for media_type in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
        let catalog = Catalog::builtin();
        let read = decode_body(Some(media_type), &body, "Pod", |message| {
            decode_protobuf(&catalog, message).map_err(|error| error.to_string())
        });
        if let Ok(decoded) = read {
            assert!(decoded.value.is_object(), "the decoded body is not an object");
        }
    }
}

/// Every continue token decodes or is an error.
pub(crate) fn continue_tokens(data: &[u8]) {
    if let Ok(token) = str::from_utf8(data) {
        let _ = continue_token::decode(token, "default/");
    }
}

/// Every `Accept` header is negotiated or is an error.
pub(crate) fn accept(data: &[u8]) {
    if let Ok(header) = str::from_utf8(data) {
        for target in [Target::Object, Target::List, Target::Watch] {
            let _ = negotiate(Some(header), target);
        }
    }
}

/// Every JSONPath of a printer column gives a cell for every object.
pub(crate) fn printer_columns(data: &[u8]) {
    let (path, object) = split(data);
    let (Ok(path), Ok(object)) = (str::from_utf8(path), serde_json::from_slice::<Value>(object)) else {
        return;
    };
    for kind in ["string", "integer", "date"] {
        let table = TableKind::custom(&[json!({ "name": "X", "type": kind, "jsonPath": path })]);
        let shown = table.table_of_one(&object, options());
        assert_eq!(shown["rows"][0]["cells"].as_array().map(Vec::len), Some(2));
    }
}

fn options() -> TableOptions {
    TableOptions {
        include: IncludeObject::Metadata,
        version: TableVersion::V1,
        headers: true,
        now: jiff::Timestamp::UNIX_EPOCH,
    }
}
