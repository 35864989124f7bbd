//! Targets for the parsers of the cache. The parsers are compared with serde_json and with each other.

use bytes::Bytes;
use serde_json::Value;
use windlass_cache::frame::{ListFramer, WatchFramer};
use windlass_cache::scan::differential;
use windlass_cache::{RawObject, ScanOptions, Scanner};

const LIMIT: usize = 1 << 20;

/// The scanned object equals the object that serde_json reads, without `managedFields`.
pub(crate) fn scan(data: &[u8]) {
    let Ok(mut expected) = serde_json::from_slice::<Value>(data) else {
        // Malformed JSON may be reported now or by the decoder, but must not panic.
        let _ = RawObject::from_json(data);
        return;
    };
    let Ok(object) = RawObject::from_json(data) else {
        assert!(!is_plain_object(&expected), "the scan rejects a valid object");
        return;
    };
    let read: Value = serde_json::from_slice(&object.json()).expect("the kept bytes are JSON");
    if let Some(metadata) = expected.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    assert_eq!(read, expected, "the kept object differs from the input");
    let metadata = &expected["metadata"];
    assert_eq!(Some(object.name()), metadata["name"].as_str());
    assert_eq!(object.namespace(), metadata["namespace"].as_str().filter(|namespace| !namespace.is_empty()));
    for (key, value) in object.labels() {
        assert_eq!(metadata["labels"][key].as_str(), Some(value));
    }
}

/// Objects (a line each) that share a scanner equal objects that are scanned alone.
pub(crate) fn bases(data: &[u8]) {
    let mut together = Scanner::new(&ScanOptions { one_kind: true, ..ScanOptions::default() });
    // In the second round, every object resembles an earlier one.
    for _ in 0..2 {
        for line in data.split(|byte| *byte == b'\n') {
            let (alone, with_others) = (RawObject::from_json(line), together.object(line));
            let (Ok(alone), Ok(with_others)) = (&alone, &with_others) else {
                assert_eq!(alone.err(), with_others.err());
                continue;
            };
            assert_eq!(alone.json(), with_others.json());
            assert_eq!(alone.key(), with_others.key());
            assert_eq!(alone.uid(), with_others.uid());
            assert_eq!(alone.resource_version(), with_others.resource_version());
            assert_eq!(alone.creation_timestamp(), with_others.creation_timestamp());
            assert_eq!(alone.deletion_timestamp(), with_others.deletion_timestamp());
            assert_eq!(alone.generation(), with_others.generation());
            assert!(alone.labels().eq(with_others.labels()));
            assert!(alone.owner_references().eq(with_others.owner_references()));
            assert!(alone.finalizers().eq(with_others.finalizers()));
            assert_eq!(alone.annotations(), with_others.annotations());
        }
    }
}

/// Returns whether the metadata has only known fields of the right types. The scan must accept such an
/// object.
fn is_plain_object(value: &Value) -> bool {
    let Some(metadata) = value.get("metadata").and_then(Value::as_object) else { return false };
    let known = ["name", "uid", "resourceVersion"];
    known
        .iter()
        .all(|field| metadata.get(*field).is_some_and(|value| value.as_str().is_some_and(|s| !s.is_empty())))
        && metadata.keys().all(|field| known.contains(&field.as_str()))
}

/// The SIMD scan and the portable scan agree, for input in one piece and in many pieces.
pub(crate) fn scan_twins(data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else { return };
    let cuts: Vec<usize> = (0..bytes.len()).step_by(usize::from(*size).max(1)).collect();
    let whole = differential::compare(bytes, &[]);
    assert_eq!(differential::compare(bytes, &cuts), whole);
}

/// The events of a watch do not depend on the split of the bytes.
pub(crate) fn watch_frames(data: &[u8]) {
    let Some((cut, body)) = data.split_first() else { return };
    let whole = watched(body, body.len().max(1));
    let pieces = watched(body, usize::from(*cut).max(1));
    assert_eq!(whole, pieces);
}

fn watched(body: &[u8], piece: usize) -> Vec<String> {
    let mut framer = WatchFramer::new(LIMIT);
    let mut scanner = Scanner::new(&ScanOptions::default());
    let mut seen = Vec::new();
    for piece in body.chunks(piece) {
        framer.push(Bytes::copy_from_slice(piece));
        while let Some(event) = framer.next(&mut scanner) {
            seen.push(match event {
                Ok(event) => format!("{:?} {:?}", event.event, event.object.name()),
                Err(_) => "bad".to_owned(),
            });
        }
    }
    seen
}

/// The items of a list do not depend on the split of the bytes.
pub(crate) fn list_frames(data: &[u8]) {
    let Some((cut, body)) = data.split_first() else { return };
    let whole = listed(body, body.len().max(1));
    let pieces = listed(body, usize::from(*cut).max(1));
    assert_eq!(whole, pieces);
}

/// Returns the items and the metadata of a list, or `None` if any part is malformed: then the reflector lists again.
fn listed(body: &[u8], piece: usize) -> Option<Vec<String>> {
    let mut framer = ListFramer::new(LIMIT);
    let mut scanner = Scanner::new(&ScanOptions::default());
    let mut seen = Vec::new();
    for piece in body.chunks(piece) {
        framer.push(Bytes::copy_from_slice(piece));
        while let Some(item) = framer.next(&mut scanner).ok()? {
            seen.push(match item {
                Ok(item) => format!("{:?}", item.name()),
                Err(_) => "bad".to_owned(),
            });
        }
    }
    seen.push(format!("{:?}", framer.finish().ok()?));
    Some(seen)
}
