//! Compares the scan with `serde_json`, on valid and on invalid JSON.

mod generate;
mod reference;

use proptest::prelude::*;
use serde_json::Value;

use self::{
    generate::{compact, object, relative, render, value},
    reference::{Seen, has_duplicates, without},
};
use super::{Annotations, FieldPath, ScanError, ScanOptions, Transform, differential};
use crate::{Dictionary, RawObject, Scanner, object::Compressor};

fn whole() -> ScanOptions {
    ScanOptions { keep_managed_fields: true, ..ScanOptions::default() }
}

fn scan(json: &[u8], options: &ScanOptions) -> Result<RawObject, ScanError> {
    Scanner::new(options).object(json)
}

/// Checks that the scan agrees with `serde_json` on any bytes, and accepts every object that `serde_json` accepts.
fn compare(json: &[u8]) -> Result<(), TestCaseError> {
    let scanned = scan(json, &whole());
    let read = serde_json::from_slice::<Value>(json);
    match (&scanned, &read) {
        (Ok(object), Ok(value)) => {
            prop_assert_eq!(Some(Seen::of(object)), Seen::read(value));
            let kept: Value = serde_json::from_slice(&object.json()).expect("the same JSON");
            prop_assert_eq!(&kept, value);
        }
        // Skipped values are not checked in full. Such an object does not decode.
        (Ok(object), Err(_)) => prop_assert!(object.decode::<Value>().is_err()),
        (Err(error), Ok(value)) => {
            // A field of the wrong type is rejected even if a later field of the same name has the right type.
            let wrong = Seen::read(value).is_none() || has_duplicates(json);
            prop_assert!(wrong, "refused ({error}) what is an object: {value}");
        }
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

/// Finds the end of a container byte by byte.
fn naive_end(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'\\' => escaped = !was_escaped,
            b'"' => in_string ^= !was_escaped,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                if depth <= 1 {
                    return Some(at + 1);
                }
                depth -= 1;
            }
            _ => {}
        }
    }
    None
}

/// Several blocks of the skip; two under Miri, which is slow.
const LONGEST: usize = if cfg!(miri) { 100 } else { 400 };

/// Bytes that matter to the skip, and some that do not.
fn structural() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => Just(b'x'), 4 => Just(b'\\'), 3 => Just(b'"'), 2 => Just(b'{'), 2 => Just(b'['),
        2 => Just(b'}'), 1 => Just(b']'), 1 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..LONGEST).prop_map(|mut bytes| {
        bytes.insert(0, b'{');
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 512 }, failure_persistence: None, ..Default::default() })]

    #[test]
    fn implementations_agree(bytes in structural(), mut cuts in prop::collection::vec(0..LONGEST, 0..8)) {
        cuts.sort_unstable();
        for cuts in [&[][..], &cuts] {
            prop_assert_eq!(differential::compare(&bytes, cuts), naive_end(&bytes));
        }
    }

    #[test]
    fn objects_are_read_as_serde_reads_them((object, seed) in (object(), any::<u64>())) {
        compare(render(&object, seed).as_bytes())?;
    }

    #[test]
    fn any_value_is_read_or_refused_as_serde_does((value, seed) in (value(), any::<u64>())) {
        compare(render(&value, seed).as_bytes())?;
    }

    #[test]
    fn broken_objects_are_refused(
        (object, seed) in (object(), any::<u64>()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..4),
    ) {
        let mut json = render(&object, seed).into_bytes();
        for (place, byte, edit) in edits {
            let at = place.index(json.len());
            match edit {
                0 => json[at] = byte,
                1 => json[at] = *b"{}[],:\"\\ 0nt".get(usize::from(byte) % 12).expect("one of them"),
                2 => json.truncate(at.max(1)),
                _ => { json.remove(at); }
            }
            if json.is_empty() {
                json.push(b'{');
            }
        }
        compare(&json)?;
    }

    #[test]
    fn what_is_left_out_is_left_out(
        (object, seed) in (object(), any::<u64>()),
        paths in prop::collection::vec(prop::sample::select(vec![
            "spec.a", "spec.*", "spec.a.b", "spec.*.b", "status", "spec[*].a", "metadata.annotations", "metadata.labels",
            "metadata.annotations['a']", "spec.a[*].*", "metadata.finalizers", "a[*][*].b", "metadata.managedFields",
        ]), 0..5),
    ) {
        let json = render(&object, seed);
        let paths: Vec<FieldPath> = paths.iter().map(|path| path.parse().expect("a path")).collect();
        let transform = Some(Transform::drop_fields(paths.clone()).expect("droppable"));
        let Ok(scanned) = scan(json.as_bytes(), &ScanOptions { transform, ..whole() }) else { return Ok(()) };
        let Ok(mut expected) = serde_json::from_str::<Value>(&json) else { return Ok(()) };
        for path in &paths {
            without(&mut expected, path.segments());
        }
        let kept: Value = serde_json::from_slice(&scanned.json())
            .map_err(|error| TestCaseError::fail(format!("{error}: {}", String::from_utf8_lossy(&scanned.json()))))?;
        prop_assert_eq!(&kept, &expected);
        prop_assert_eq!(Some(Seen::of(&scanned)), Seen::read(&expected));
    }

    #[test]
    fn objects_of_one_kind_say_the_same(
        kinds in prop::collection::vec((object(), prop::collection::vec(any::<u64>(), 1..6)), 1..4),
        paths in prop::collection::vec(prop::sample::select(vec![
            "spec.a", "spec.*.b", "status", "spec[*].a", "metadata.annotations", "metadata.labels", "metadata.x",
            "metadata.annotations['a']", "metadata.finalizers", "metadata.ownerReferences",
        ]), 0..3),
    ) {
        let paths: Vec<FieldPath> = paths.iter().map(|path| path.parse().expect("a path")).collect();
        let options = ScanOptions {
            transform: Some(Transform::drop_fields(paths).expect("droppable")),
            type_meta: Some(("v1".to_owned(), "Thing".to_owned())),
            ..ScanOptions::default()
        };
        let mut together = Scanner::new(&ScanOptions { one_kind: true, ..options.clone() });
        let relatives = kinds.iter().flat_map(|(object, seeds)| {
            let relatives = seeds.iter().map(|&seed| compact(&relative(object, seed)));
            [compact(object), compact(object)].into_iter().chain(relatives).chain([render(object, seeds[0])])
        });
        let mut old = None;
        for json in relatives {
            let alone = scan(json.as_bytes(), &options);
            let with_others = together.object(json.as_bytes());
            let (Ok(alone), Ok(with_others)) = (&alone, &with_others) else {
                prop_assert_eq!(alone.err(), with_others.err(), "{}", json);
                continue;
            };
            let successor = together.scan(json.as_bytes()).and_then(|new| new.into_successor(old.as_ref()));
            let successor = successor.expect("read before");
            let read = |object: &RawObject| String::from_utf8_lossy(&object.json()).into_owned();
            for shared in [with_others, &successor] {
                prop_assert_eq!(read(shared), read(alone));
                prop_assert_eq!(shared.json_length(), alone.json_length());
                prop_assert_eq!(Seen::of(shared), Seen::of(alone));
                prop_assert_eq!(shared.annotations(), alone.annotations());
            }
            old = Some(successor);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "zstd is C")]
    fn compressed_objects_say_the_same((object, seeds) in (object(), prop::collection::vec(any::<u64>(), 1..4))) {
        let dictionary = Dictionary::from_bytes(b"{\"metadata\":{\"name\":\"labels").expect("a dictionary");
        let compressor = Compressor::new(dictionary);
        let mut together = Scanner::new(&ScanOptions { one_kind: true, ..whole() });
        let relatives = seeds.iter().map(|&seed| compact(&relative(&object, seed)));
        for json in [compact(&object), render(&object, seeds[0])].into_iter().chain(relatives) {
            for raw in [scan(json.as_bytes(), &whole()), together.object(json.as_bytes())] {
                let Ok(raw) = raw else { continue };
                let compressed = compressor.compress(&raw).expect("compresses");
                prop_assert!(compressed.is_compressed());
                prop_assert_eq!(compressed.has_base(), raw.has_base());
                prop_assert_eq!(compressed.json(), raw.json());
                prop_assert_eq!(Seen::of(&compressed), Seen::of(&raw));
                prop_assert_eq!(compressed.annotations(), raw.annotations());
            }
        }
    }
}

#[test]
fn hostile_input_is_rejected() {
    let deep =
        format!(r#"{{"metadata":{{"name":"a"}},"spec":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let object = scan(deep.as_bytes(), &whole()).expect("deep, and skipped");
    assert!(object.decode::<Value>().is_err(), "too deep to decode, and says so");

    let huge = format!(r#"{{"metadata":{{"name":"a","generation":1{}}}}}"#, "0".repeat(400));
    assert_eq!(
        scan(huge.as_bytes(), &whole()).unwrap_err().to_string(),
        "metadata.generation is not a 64-bit integer"
    );
    for (json, expected) in [
        ("", "the JSON ends before the object does"),
        ("{", "the JSON ends before the object does"),
        ("[]", "the object is not an object"),
        ("null", "the object is not an object"),
        (r#"{"metadata":{"name":"a"}}x"#, "not JSON: expected the end at byte 25"),
        (r#"{"metadata":{"name":"a",}}"#, "not JSON: expected a member name at byte 24"),
        (r#"{"metadata":{"name":""}}"#, "metadata.name is not set"),
        (
            r#"{"metadata":{"name":"a\x"}}"#,
            r#"not JSON: expected one of \" \\ \/ \b \f \n \r \t \uXXXX at byte 22"#,
        ),
        (r#"{"metadata":{"name":"\ud800"}}"#, "not JSON: expected a pair of surrogates at byte 21"),
        (
            "{\"metadata\":{\"name\":\"a\nb\"}}",
            "not JSON: expected no control character in a string at byte 22",
        ),
        (r#"{"metadata":{"labels":{"a":{}},"name":"a"}}"#, "a label's value is not a string"),
    ] {
        assert_eq!(scan(json.as_bytes(), &whole()).unwrap_err().to_string(), expected, "{json}");
    }
    let not_text = b"{\"metadata\":{\"name\":\"a\"},\"spec\":\"\xFF\"}";
    assert!(matches!(scan(not_text, &whole()), Err(ScanError::Utf8 { offset: 33 })));
    let small = ScanOptions { max_object_size: 20, ..whole() };
    let too_large = scan(br#"{"metadata":{"name":"long enough"}}"#, &small).unwrap_err();
    assert_eq!(too_large, ScanError::TooLarge { limit: 20 });
}

#[test]
fn the_last_of_duplicate_keys_wins() {
    let json = br#"{"metadata":{"name":"a","labels":{"x":"1"}},"metadata":{"name":"b","n\u0061me":"c","labels":{"y":"1","y":"2"}}}"#;
    let object = scan(json, &whole()).expect("an object");
    assert_eq!(object.name(), "c");
    assert_eq!(object.labels().collect::<Vec<_>>(), [("y", "2")]);
}

#[test]
fn the_last_of_duplicate_annotations_wins() {
    for (json, expected) in [
        (r#"{"metadata":{"name":"a","annotations":{"x":"1"}},"metadata":{"name":"b"}}"#, None),
        (
            r#"{"metadata":{"name":"a","annotations":{"x":"1"}},"metadata":{"name":"b","annotations":{"x":"2"}}}"#,
            Some("2"),
        ),
        (r#"{"metadata":{"name":"a","annotations":{"x":"1"},"annotations":{"x":"2"}}}"#, Some("2")),
        (r#"{"metadata":{"name":"a","annotations":{"x":"1"},"annotations":null}}"#, None),
        (r#"{"metadata":{"name":"a","annotations":{"x":"1","\u0078":"2","x":3}}}"#, Some("2")),
    ] {
        let object = scan(json.as_bytes(), &whole()).expect("an object");
        assert_eq!(object.annotation("x").as_deref(), expected, "{json}");
        let all = object.annotations();
        assert_eq!(all.last().map(|(_, value)| value.as_str()), expected, "{json}");
    }
}

/// A reconcile reads several annotations, and the rest of the object may be large.
#[test]
fn a_read_of_an_annotation_ends_with_the_annotations() {
    let object = Annotations { json: br#"{"metadata":{"annotations":{"x":"1"}"#, are_repeated: false };
    assert_eq!(object.value("x").as_deref(), Some("1"));
    assert_eq!(object.all(), [("x".to_owned(), "1".to_owned())]);
}

/// An index has a narrow and a wide form. The values here are on both sides of each limit of the narrow form.
#[test]
fn an_index_has_room_for_every_number() {
    let object = |generation: i64, key: usize, finalizers: usize, before: usize| {
        let (key, before) = ("k".repeat(key), "b".repeat(before));
        let finalizers: Vec<String> = (0..finalizers).map(|number| format!("f/{number}")).collect();
        let json = serde_json::json!({"a": before, "metadata": {
            "annotations": {"note": "n"}, "finalizers": finalizers, "generation": generation, "labels": {key: "v"},
            "name": "a", "ownerReferences": [{"uid": "o", "controller": true}],
        }});
        json.to_string()
    };
    let mut together = Scanner::new(&ScanOptions { one_kind: true, ..whole() });
    for (generation, key, finalizers, before) in [
        (1, 10, 2, 10),
        (i64::from(u32::MAX), 10, 2, 10),
        (i64::from(u32::MAX) + 1, 10, 2, 10),
        (-1, 10, 2, 10),
        (1, 255, 2, 10),
        (1, 256, 2, 10),
        (1, 10, 255, 10),
        (1, 10, 256, 10),
        (1, 10, 2, 32_000),
        (1, 10, 2, 33_000),
        (1, 10, 2, 66_000),
    ] {
        let json = object(generation, key, finalizers, before);
        for raw in [scan(json.as_bytes(), &whole()), together.object(json.as_bytes())] {
            let raw = raw.expect("an object");
            assert_eq!((raw.generation(), raw.name()), (generation, "a"));
            assert_eq!(raw.json_length(), json.len());
            assert_eq!(raw.json(), json.as_bytes());
            assert_eq!(raw.label(&"k".repeat(key)), Some("v"));
            assert_eq!(raw.finalizers().count(), finalizers);
            assert_eq!(raw.finalizers().last(), Some(format!("f/{}", finalizers - 1).as_str()));
            assert_eq!(raw.controller_owner().map(|owner| owner.uid), Some("o"));
            assert_eq!(raw.annotation("note").as_deref(), Some("n"));
        }
    }
}

/// Most changes of an object move only the resource version and the managed fields.
#[test]
fn a_successor_with_the_same_places_keeps_the_base() {
    let pod = |name: &str, version: u64, phase: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}","uid":"uid-{name}","resourceVersion":"{version}"}},"spec":{{"containers":[{{"image":"registry.example.com/web:1","name":"app"}}]}},"status":{{"phase":"{phase}","reason":""}}}}"#
        )
    };
    let mut scanner = Scanner::new(&ScanOptions { one_kind: true, ..whole() });
    scanner.object(pod("web-0", 100, "Running").as_bytes()).expect("a pod");
    let mut old = scanner.object(pod("web-1", 101, "Running").as_bytes()).expect("a pod");
    for (version, phase) in [(102, "Running"), (103, "Pending"), (104, "Failed"), (1000, "Failed")] {
        let json = pod("web-1", version, phase);
        let new =
            scanner.scan(json.as_bytes()).and_then(|new| new.into_successor(Some(&old))).expect("a pod");
        assert_eq!(new.json(), json.as_bytes());
        assert_eq!(new.resource_version(), version.to_string());
        assert!(new.has_base() && new.memory() < json.len(), "{} of {} bytes", new.memory(), json.len());
        old = new;
    }
}

#[test]
fn objects_of_one_kind_keep_their_own_values() {
    let pod = |name: &str, version: u64, node: &str| {
        format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"default","uid":"uid-{name}","resourceVersion":"{version}","generation":{version},"labels":{{"app":"web","node":"{node}"}},"annotations":{{"note":"of {name}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"owner-of-{name}","controller":true}}],"managedFields":[{{"manager":"{name}"}}],"finalizers":["a/b"]}},"spec":{{"nodeName":"{node}","containers":[{{"name":"app","image":"registry.example.com/web:1","ports":[{{"containerPort":80}}]}}]}},"status":{{"phase":"Running","ready":true}}}}"#
        )
    };
    let options = ScanOptions { one_kind: true, ..ScanOptions::default() };
    let mut scanner = Scanner::new(&options);
    let first = scanner.object(pod("web-0", 1, "n0").as_bytes()).expect("a pod");
    let second = scanner.object(pod("web-1", 2, "n1").as_bytes()).expect("a pod");
    assert!(first.has_base() && second.has_base());
    let alone = scan(pod("web-1", 2, "n1").as_bytes(), &ScanOptions::default()).expect("a pod");
    assert!(second.memory() * 2 < alone.memory(), "{} of {} bytes", second.memory(), alone.memory());
    assert_eq!(
        second.json(),
        scan(pod("web-1", 2, "n1").as_bytes(), &ScanOptions::default()).expect("a pod").json()
    );
    assert_eq!(second.label("node"), Some("n1"));
    assert_eq!(second.generation(), 2);
    assert_eq!(second.annotation("note").as_deref(), Some("of web-1"));
    let owner = second.controller_owner().expect("an owner");
    assert_eq!((owner.kind, owner.name, owner.uid), ("ReplicaSet", "web", "owner-of-web-1"));
    assert_eq!(second.finalizers().collect::<Vec<_>>(), ["a/b"]);
}

/// Returns an object of 2 KB that resembles no other.
fn different(number: u64) -> String {
    with_members(&format!("n{number}"), number, 64)
}

/// Returns an object with as many members as given, which are different for each number.
fn with_members(name: &str, number: u64, count: usize) -> String {
    let mut state = number + 1;
    let members: Vec<String> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(number | 1);
            format!("\"{:x}\":\"{:x}\"", state >> 8, state.rotate_left(17) >> 8)
        })
        .collect();
    format!(r#"{{"metadata":{{"name":"{name}","uid":"u"}},"data":{{{}}}}}"#, members.join(","))
}

/// The index and the metadata of a small object are as large as the rest: an object that shares nothing with the last base is no "good"
/// difference from this base.
#[test]
fn a_small_object_that_resembles_no_base_becomes_a_base() {
    let mut scanner = Scanner::new(&ScanOptions { one_kind: true, ..ScanOptions::default() });
    for number in 0..3 {
        let json = ["a", "b"].map(|name| with_members(name, number, 8));
        assert!((256..400).contains(&json[0].len()), "{} bytes", json[0].len());
        let [_, second] = json.each_ref().map(|json| scanner.object(json.as_bytes()).expect("an object"));
        let alone = scan(json[1].as_bytes(), &ScanOptions::default()).expect("an object");
        assert!(second.has_base());
        assert!(second.memory() + 200 < alone.memory(), "{} of {} bytes", second.memory(), alone.memory());
    }
}

/// The comparison with the last base ends early. The base that the object resembles most is compared up to the end.
#[test]
fn objects_that_differ_only_at_the_start_share_a_base() {
    let rest = different(7);
    let mut scanner = Scanner::new(&ScanOptions { one_kind: true, ..ScanOptions::default() });
    let mut shared = Vec::new();
    for number in 0..20 {
        let members = with_members("", number, 24);
        let (_, annotations) = members.trim_end_matches('}').split_once("data\":{").expect("members");
        let json = format!(
            r#"{{"metadata":{{"annotations":{{{annotations}}},"name":"n{number}","uid":"u"}},"spec":{rest}}}"#
        );
        let object = scanner.object(json.as_bytes()).expect("an object");
        assert!(object.has_base() && object.memory() < rest.len() / 2, "{} bytes", object.memory());
        assert_eq!(object.json(), json.as_bytes());
        shared.push(scanner.shared_memory());
    }
    assert_eq!(shared.first(), shared.last(), "no further base: {shared:?}");
}

#[test]
fn objects_that_all_look_different_are_stored_as_json() {
    let options = ScanOptions { one_kind: true, ..ScanOptions::default() };
    let mut scanner = Scanner::new(&options);
    let mut object = |number| scanner.object(different(number).as_bytes()).expect("an object");
    let count = if cfg!(miri) { 200 } else { 2000 };
    let objects: Vec<RawObject> = (0..count).map(&mut object).collect();
    assert!(objects[0].has_base(), "the first ones become bases");
    let based = objects.iter().filter(|object| object.has_base()).count();
    assert!(based < objects.len() / 2, "then there are no more: {based}");
    assert!(object(0).has_base(), "the first ones are remembered");
}

#[test]
#[cfg_attr(miri, ignore = "many objects")]
fn bases_are_forgotten_with_their_objects() {
    let mut scanner = Scanner::new(&ScanOptions { one_kind: true, ..ScanOptions::default() });
    let mut scan = |number| {
        let object = scanner.object(different(number).as_bytes()).expect("an object");
        (object, scanner.shared_memory())
    };
    let (old, one) = scan(1);
    let last = (0..20_000).map(|_| scan(2).1).last().expect("the memory");
    assert!(last > one && last < 3 * one, "{last} after {one}");
    drop(old);
    let last = (0..20_000).map(|_| scan(2).1).last().expect("the memory");
    assert!(last > 0 && last < one * 3 / 2, "{last} after {one}");
}

#[test]
fn a_secret_is_no_base() {
    let mut scanner = Scanner::new(&ScanOptions {
        one_kind: true,
        type_meta: Some(("v1".into(), "Secret".into())),
        ..ScanOptions::default()
    });
    for _ in 0..10 {
        assert!(!scanner.object(different(1).as_bytes()).expect("an object").has_base());
    }
    assert_eq!(scanner.shared_memory(), 0);
}

#[test]
fn a_repeated_key_does_not_affect_others() {
    let options = ScanOptions { type_meta: Some(("v1".into(), "Thing".into())), ..ScanOptions::default() };
    let mut scanner = Scanner::new(&ScanOptions { one_kind: true, ..options.clone() });
    let name = |name: &str| format!(r#"{{"metadata":{{"name":"{name}","uid":"u"}}"#);
    let repeated = format!(r#"{},"metadata":{{"name":"b"}}}}"#, name("a"));
    let typed = format!(r#"{},"kind":"Other"}}"#, name("a"));
    for json in [
        &repeated,
        &repeated,
        &typed,
        &typed,
        &(name("a") + "}"),
        &(name(r"a\u0062") + "}"),
        &(name("a") + "}"),
    ] {
        let alone = scan(json.as_bytes(), &options).expect("an object");
        let with_others = scanner.object(json.as_bytes()).expect("an object");
        assert_eq!(Seen::of(&with_others), Seen::of(&alone), "{json}");
        assert_eq!(with_others.json(), alone.json());
    }
}

#[test]
fn an_object_has_at_most_4096_labels() {
    let with_labels = |count: usize| {
        let labels: Vec<String> = (0..count).map(|number| format!(r#""l{number}":"v""#)).collect();
        let json = format!(r#"{{"metadata":{{"name":"a","labels":{{{}}}}}}}"#, labels.join(","));
        scan(json.as_bytes(), &whole()).map(|object| object.label("l0").map(str::len))
    };
    assert_eq!(with_labels(4_096).expect("a cached object"), Some(1));
    let error = with_labels(4_097).expect_err("too many labels").to_string();
    assert!(error.contains("metadata.labels"), "{error}");
}
