//! Compares the store with a plain map under random changes and lists.

use std::collections::BTreeMap;

use proptest::{prelude::*, sample::select};
use windlass_cache::{
    Delta, IndexFn, ObjectEncoding, ObjectRef, Query, RawObject, ReflectorId, Selector, Store, StoreOptions,
    StoreTransaction, StoreWriter,
};

/// Returns the watch of a namespace.
fn source(namespace: &str) -> ReflectorId {
    ReflectorId(u16::from(namespace == "n2"))
}

fn is_in(source: ReflectorId, namespace: &str) -> bool {
    self::source(namespace) == source
}

/// An object of the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    namespace: &'static str,
    name: &'static str,
    uid: u8,
    version: u8,
    label: &'static str,
    owner: &'static str,
    color: &'static str,
}

#[derive(Clone, Debug)]
enum Step {
    Put(Thing),
    Delete(&'static str, &'static str),
    List(ReflectorId, Vec<Thing>),
    /// A list begins and does not end.
    Broken(ReflectorId, Vec<Thing>),
    /// A write panics after some changes.
    Panic(Vec<Thing>),
    AddIndex,
}

/// How far the first list of a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum First {
    Awaited,
    Coming,
    Ended,
}

type Key = (&'static str, &'static str);

impl Thing {
    fn key(&self) -> Key {
        (self.namespace, self.name)
    }

    fn json(&self) -> String {
        let Self { namespace, name, uid, version, label, owner, color } = self;
        format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","uid":"u{uid}","resourceVersion":"{version}",
            "labels":{{"app":"{label}","same":"x"}},"ownerReferences":[{{"uid":"{owner}"}}]}},
            "spec":{{"colors":["{color}","any"]}}}}"#
        )
    }

    fn read(object: &RawObject) -> String {
        String::from_utf8_lossy(&object.json()).into_owned()
    }
}

fn thing() -> impl Strategy<Value = Thing> {
    let namespace = select(vec!["", "n1", "n2"]);
    let name = select(vec!["a", "b", "c", "d"]);
    let color = select(vec!["red", "blue"]);
    (namespace, name, 0..2_u8, 0..9_u8, color).prop_map(|(namespace, name, uid, version, color)| {
        // The server may serve a version with several colors.
        let number = usize::from(uid) + usize::from(version);
        let (label, owner) = (["l1", "l2"][number % 2], ["o1", "o2"][number / 2 % 2]);
        Thing { namespace, name, uid, version, label, owner, color }
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let list = || (0..2_u16, prop::collection::vec(thing(), 0..8));
    let of = |(source, mut things): (u16, Vec<Thing>)| {
        things.retain(|thing| is_in(ReflectorId(source), thing.namespace));
        (ReflectorId(source), things)
    };
    let step = prop_oneof![
        8 => thing().prop_map(Step::Put),
        4 => (select(vec!["", "n1", "n2"]), select(vec!["a", "b", "c", "d"]))
            .prop_map(|(namespace, name)| Step::Delete(namespace, name)),
        2 => list().prop_map(move |list| { let (source, things) = of(list); Step::List(source, things) }),
        1 => list().prop_map(move |list| { let (source, things) = of(list); Step::Broken(source, things) }),
        1 => prop::collection::vec(thing(), 0..4).prop_map(Step::Panic),
        1 => Just(Step::AddIndex),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 60 })
}

fn colors() -> IndexFn {
    IndexFn::field("spec.colors[*]".parse().expect("a path"))
}

/// The store, the model, and a map that follows the deltas.
struct Bench {
    store: Store,
    writer: StoreWriter,
    model: BTreeMap<Key, Thing>,
    /// The part of the model that readers see: a first list is invisible until the end.
    shown: BTreeMap<Key, Thing>,
    /// How far the first list of each source is.
    first: [First; 2],
    told: BTreeMap<(String, String), RawObject>,
}

impl Bench {
    fn new(encoding: ObjectEncoding) -> Self {
        let (store, writer) = Store::new(StoreOptions { encoding, ..StoreOptions::default() });
        let (model, shown, told) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { store, writer, model, shown, told, first: [First::Awaited; 2] }
    }

    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        if let Step::List(source, _) | Step::Broken(source, _) = step {
            let first = &mut self.first[usize::from(source.0)];
            *first = (*first).max(First::Coming);
        }
        if let Step::Panic(things) = step {
            self.panic(things);
            return Ok(());
        }
        let model = &mut self.model;
        let (loaded, deltas) = self.writer.write(|transaction| {
            match step {
                Step::Put(thing) => put(transaction, model, thing),
                Step::Delete(namespace, name) => {
                    let in_namespace = Some(namespace).filter(|text| !text.is_empty()).copied();
                    transaction.remove(source(namespace), in_namespace, name, None);
                    model.remove(&(*namespace, *name));
                }
                Step::List(source, things) => {
                    transaction.begin_list(*source);
                    things.iter().for_each(|thing| put(transaction, model, thing));
                    transaction.sweep(*source);
                    model.retain(|key, _| {
                        !is_in(*source, key.0) || things.iter().any(|thing| thing.key() == *key)
                    });
                }
                Step::Broken(source, things) => {
                    transaction.begin_list(*source);
                    things.iter().for_each(|thing| put(transaction, model, thing));
                }
                Step::Panic(_) | Step::AddIndex => {}
            }
            (transaction.take_loaded(), transaction.take_deltas())
        });
        if let Step::List(source, _) = step {
            self.first[usize::from(source.0)] = First::Ended;
        }
        if matches!(step, Step::AddIndex) {
            self.writer.add_index("color", colors());
        }
        let first = self.first;
        let is_shown = |key: &Key| first[usize::from(source(key.0).0)] != First::Coming;
        self.shown.retain(|key, _| !is_shown(key));
        let shown = self.model.iter().filter(|(key, _)| is_shown(key));
        self.shown.extend(shown.map(|(key, thing)| (*key, thing.clone())));
        let loaded = loaded.into_iter().flatten().map(|object| Delta::Added { object, initial: true });
        loaded.chain(deltas).try_for_each(|delta| self.tell(delta))
    }

    /// A write that panics changes nothing. The first list of a source must be repeated afterwards.
    fn panic(&mut self, things: &[Thing]) {
        self.first[0] = self.first[0].max(First::Coming);
        let mut ignored = self.model.clone();
        let panic = std::panic::AssertUnwindSafe(|| {
            self.writer.write(|transaction| {
                things.iter().for_each(|thing| put(transaction, &mut ignored, thing));
                transaction.sweep(ReflectorId(0));
                std::panic::resume_unwind(Box::new("in a write"));
            });
        });
        std::panic::catch_unwind(panic).expect_err("it panics");
        for source in [ReflectorId(0), ReflectorId(1)] {
            if self.first[usize::from(source.0)] == First::Coming {
                self.model.retain(|key, _| !is_in(source, key.0));
                self.model.extend(
                    self.shown
                        .iter()
                        .filter(|(key, _)| is_in(source, key.0))
                        .map(|(key, thing)| (*key, thing.clone())),
                );
            }
        }
    }

    /// Applies a delta, which must agree with the previous deltas.
    fn tell(&mut self, delta: Delta) -> Result<(), TestCaseError> {
        let object = delta.object();
        let key = (object.namespace().unwrap_or_default().to_owned(), object.name().to_owned());
        match delta {
            Delta::Added { object, .. } => prop_assert!(self.told.insert(key, object).is_none()),
            Delta::Updated { old, new } => {
                prop_assert_eq!(old.uid(), new.uid());
                prop_assert_ne!(Thing::read(&old), Thing::read(&new));
                let before = self.told.insert(key, new).expect("it was there");
                prop_assert_eq!(Thing::read(&before), Thing::read(&old));
            }
            Delta::Deleted { last, .. } => {
                let before = self.told.remove(&key).expect("it was there");
                prop_assert_eq!(Thing::read(&before), Thing::read(&last));
            }
        }
        Ok(())
    }

    fn compare(&self, index: bool) -> Result<(), TestCaseError> {
        let sorted = |objects: Vec<RawObject>| {
            let mut jsons: Vec<_> = objects.iter().map(Thing::read).collect();
            jsons.sort();
            jsons
        };
        let expected = |wanted: &dyn Fn(&Thing) -> bool| {
            let mut jsons: Vec<_> =
                self.shown.values().filter(|thing| wanted(thing)).map(Thing::json).collect();
            jsons.sort();
            jsons
        };
        prop_assert_eq!(self.store.len(), self.shown.len());
        prop_assert_eq!(sorted(self.store.list()), expected(&|_| true));
        prop_assert_eq!(sorted(self.told.values().cloned().collect()), expected(&|_| true));
        prop_assert_eq!(sorted(self.store.namespace("n1")), expected(&|thing| thing.namespace == "n1"));
        prop_assert_eq!(sorted(self.store.owned_by("o2")), expected(&|thing| thing.owner == "o2"));
        let selector: Selector = "app in (l1),same".parse().expect("a selector");
        let selected = self.store.query(&Query::new().selector(&selector));
        prop_assert_eq!(sorted(selected.expect("no named index")), expected(&|thing| thing.label == "l1"));
        if index {
            prop_assert_eq!(
                sorted(self.store.by_index("color", "red").expect("an index")),
                expected(&|thing| thing.color == "red")
            );
            let query = Query::new().namespace("n2").selector(&selector).owner("o1").index("color", "blue");
            prop_assert_eq!(
                sorted(self.store.query(&query).expect("an index")),
                expected(&|thing| {
                    (thing.namespace, thing.label, thing.owner, thing.color) == ("n2", "l1", "o1", "blue")
                })
            );
        }
        if !self.first.contains(&First::Coming) {
            let memory: usize = self.store.list().iter().map(RawObject::memory).sum();
            prop_assert_eq!(self.store.memory().objects, memory);
        }
        Ok(())
    }
}

/// Upserts an object in the store and in the model.
fn put(transaction: &mut StoreTransaction<'_>, model: &mut BTreeMap<Key, Thing>, thing: &Thing) {
    let object = RawObject::from_json(thing.json().as_bytes()).expect("an object");
    let seen = ObjectRef::of(source(thing.namespace), &object);
    transaction.upsert(seen, false, |_| Ok(object.clone())).expect("an object");
    model.insert(thing.key(), thing.clone());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 128 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_the_map(steps in steps()) {
        let mut bench = Bench::new(ObjectEncoding::Raw);
        let mut index = false;
        for step in &steps {
            bench.play(step)?;
            index |= matches!(step, Step::AddIndex);
            bench.compare(index)?;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "zstd is C")]
fn the_compressed_tier_takes_less_memory() {
    let (mut raw, mut compressed) = (Bench::new(ObjectEncoding::Raw), Bench::new(ObjectEncoding::Compressed));
    for bench in [&mut raw, &mut compressed] {
        for number in 0..3000 {
            let (namespace, name) = (format!("namespace-{}", number % 7), format!("object-{number}"));
            let spec = format!("the quick brown fox number {number} jumps over the lazy dog ").repeat(8);
            let json = format!(
                r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","uid":"{number}","resourceVersion":"{number}",
                "labels":{{"app":"web"}}}},"spec":{{"text":"{spec}"}}}}"#
            );
            let object = RawObject::from_json(json.as_bytes()).expect("an object");
            bench.writer.write(|transaction| {
                let seen = ObjectRef::of(ReflectorId(0), &object);
                transaction.upsert(seen, true, |_| Ok(object.clone())).expect("an object");
            });
        }
    }
    let read = |bench: &Bench| bench.store.list().iter().map(Thing::read).collect::<Vec<_>>();
    assert_eq!(read(&raw), read(&compressed));
    assert!(compressed.store.list().iter().all(RawObject::is_compressed));
    assert_eq!(raw.store.memory().dictionaries, 0);
    assert!(compressed.store.memory().dictionaries > 10_000, "{:?}", compressed.store.memory());
    let (full, less) = (raw.store.memory().objects, compressed.store.memory().objects);
    assert!(less * 2 < full, "{less} of {full} bytes");
    assert_eq!(less, compressed.store.list().iter().map(RawObject::memory).sum::<usize>());
}
