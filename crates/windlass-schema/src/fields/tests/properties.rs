use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Versions, ready, schema};
use crate::fields::{
    Duplicates, FieldPath, FieldSet, Managers, PathElement, Updater, compare, extract, merge, remove,
    validate_typed,
};

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c]".prop_map(|name| PathElement::field(&name)),
        (0..3i64, "[a-b]").prop_map(|(n, s)| PathElement::key([("n", n.into()), ("s", s.into())])),
        prop_oneof![(0..3i64).prop_map(Value::from), Just(json!(1.0)), Just(json!("x"))]
            .prop_map(PathElement::value),
        (0..3i64).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(element(), 1..4).prop_map(FieldPath::from_iter);
    prop::collection::vec(path, 0..8).prop_map(|paths| paths.into_iter().collect())
}

fn small() -> impl Strategy<Value = Value> {
    prop_oneof![(0..3i64).prop_map(Value::from), "[a-b]".prop_map(Value::from), Just(Value::Null)]
}

/// An object that follows the schema of these tests. Stored objects may have duplicates in lists.
fn object(duplicates: Duplicates) -> impl Strategy<Value = Value> {
    let text = || "[a-c]".prop_map(Value::from);
    let port = (0..3i64, prop::option::of(prop_oneof![Just("TCP"), Just("UDP")]), prop::option::of("[a-b]"));
    let port = port.prop_map(|(port, protocol, name)| {
        let mut out = json!({"port": port});
        protocol.into_iter().for_each(|protocol| out["protocol"] = protocol.into());
        name.into_iter().for_each(|name| out["name"] = name.into());
        out
    });
    let list = |item: BoxedStrategy<Value>| prop::collection::vec(item, 0..4).prop_map(Value::from);
    let map = || prop::collection::btree_map("[a-c]", text(), 0..3).prop_map(|map| json!(map));
    let any = prop_oneof![small(), map(), list(small().boxed())];
    let any =
        prop_oneof![any.clone(), prop::collection::btree_map("[a-c]", any, 0..3).prop_map(|map| json!(map))];
    let nested = prop::collection::btree_map("[ab]", 0..3i64, 0..3).prop_map(|map| json!(map));
    let or_null = |value: BoxedStrategy<Value>| prop_oneof![8 => value, 1 => Just(Value::Null)].boxed();
    let fields = vec![
        ("n", (0..3i64).prop_map(Value::from).boxed()),
        ("text", text().boxed()),
        ("list", or_null(list(text().boxed()).boxed())),
        ("set", or_null(list(text().boxed()).boxed())),
        ("ports", or_null(list(port.boxed()).boxed())),
        ("map", or_null(map().boxed())),
        ("atomic", map().boxed()),
        ("nested", or_null(nested.boxed())),
        ("any", any.boxed()),
    ];
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| prop::option::of(value).prop_map(move |value| (name, value)))
        .collect();
    let object = fields.prop_map(|fields| {
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(fields.collect())
    });
    object
        .prop_filter("duplicates", move |object| validate_typed(schema().root(), object, duplicates).is_ok())
}

/// Returns whether no part of a value is `null` or empty. structured-merge-diff leaves `null` after the
/// removal of all members of an object, which differs from an applied `{}`.
fn is_full(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty() && items.iter().all(is_full),
        Value::Object(members) => !members.is_empty() && members.values().all(is_full),
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_follow_the_laws(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        prop_assert_eq!(a.union(&b).len() + a.intersection(&b).len(), a.len() + b.len());
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
        prop_assert!(a.iter().all(|path| a.contains(&path)));
        prop_assert_eq!(a.iter().count(), a.len());
        prop_assert_eq!(a.iter().collect::<FieldSet>(), a.clone());
        prop_assert_eq!(a.leaves().leaves(), a.leaves());
        prop_assert!(a.leaves().difference(&a).is_empty());
    }

    #[test]
    fn sets_survive_fields_v1(a in set()) {
        prop_assert_eq!(&FieldSet::from_v1(&a.to_v1()).unwrap(), &a);
        let mut text = String::new();
        a.write_v1(&mut text);
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), a.to_v1());
    }

    #[test]
    fn a_comparison_is_mirrored(old in object(Duplicates::Allow), new in object(Duplicates::Allow)) {
        let (schema, there) = (schema(), |old: &Value, new: &Value| compare(schema().root(), old, new).unwrap());
        let (forth, back) = (there(&old, &new), there(&new, &old));
        prop_assert_eq!(&forth.added, &back.removed);
        prop_assert_eq!(&forth.modified, &back.modified);
        prop_assert!(compare(schema.root(), &old, &old).unwrap().is_same());
    }

    #[test]
    fn a_merge_has_all_of_the_configuration(live in object(Duplicates::Allow), config in object(Duplicates::Forbid)) {
        let schema = schema();
        let merged = merge(schema.root(), &live, &config).unwrap();
        let changed = compare(schema.root(), &merged, &config).unwrap();
        prop_assert!(changed.added.is_empty() && changed.modified.is_empty(), "{:?}", changed);
        prop_assert_eq!(merge(schema.root(), &merged, &config).unwrap(), merged);
    }

    #[test]
    fn removal_adds_nothing(value in object(Duplicates::Forbid), other in object(Duplicates::Allow)) {
        let schema = schema();
        let fields = FieldSet::of(schema.root(), &value).unwrap();
        let rest = remove(schema.root(), &other, &fields);
        prop_assert!(compare(schema.root(), &other, &rest).unwrap().added.is_empty());
        let found = extract(schema.root(), &other, &fields, true);
        prop_assert!(compare(schema.root(), &other, &found).unwrap().added.is_empty());
    }

    #[test]
    fn an_apply_is_idempotent(
        steps in prop::collection::vec((object(Duplicates::Forbid), 0..3usize, any::<bool>()), 1..6)
            .prop_map(|steps| steps.into_iter().filter(|(config, ..)| is_full(config)).collect::<Vec<_>>()),
        start in object(Duplicates::Allow),
    ) {
        let versions = Versions::one();
        let updater = Updater::new(&versions);
        let mut live = json!({});
        let mut managers =
            ready(updater.update(&live, &start, "v1", Managers::default(), "updater")).unwrap();
        live = start;
        for (config, manager, force) in steps {
            let name = ["one", "two", "three"][manager];
            let apply = |live: &Value, managers: &Managers, force| {
                ready(updater.apply(live, &config, "v1", managers.clone(), name, force))
            };
            let Ok((object, after)) = apply(&live, &managers, force) else {
                prop_assert!(!force);
                continue;
            };
            live = object.unwrap_or(live);
            managers = after;
            let (object, again) = apply(&live, &managers, false).unwrap();
            prop_assert_eq!(object, None);
            prop_assert_eq!(&again, &managers);
            prop_assert!(managers.0.values().all(|managed| !managed.fields.is_empty()));
        }
    }
}
