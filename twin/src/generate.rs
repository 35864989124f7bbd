//! Makes scripts: every step is a function of the seed and of what the steps before should have made.

mod crd;
mod query;
mod values;

use std::sync::Arc;

use fastrand::Rng;
use serde_json::{Value, json};

use self::crd::Definition;
use self::query::Query;
use crate::kind::{self, Kind};
use crate::op::{self, JSON_PATCH, MERGE_PATCH, Op, STRATEGIC_PATCH};

/// The steps of a script, at least. A script begins with fresh namespaces, so it is short enough to be shrunk.
const STEPS: usize = 80;
/// The namespaces in which objects live.
const NAMESPACES: [&str; 2] = ["twin00-a", "twin00-b"];
/// The watches that are open at the same time.
const WATCHES: usize = 3;

/// Returns a script of a seed.
pub fn script(seed: u64, number: usize) -> Vec<Op> {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number as u64);
    let mut episode = Episode::new(Rng::with_seed(seed));
    episode.begin();
    while episode.ops.len() < STEPS {
        episode.step();
    }
    episode.push("DRAIN");
    episode.ops
}

/// A random element.
fn pick<'a, T>(random: &mut Rng, items: &'a [T]) -> &'a T {
    &items[random.usize(..items.len())]
}

/// An object that should exist.
#[derive(Clone)]
struct Known {
    kind: Arc<Kind>,
    namespace: &'static str,
    name: String,
    /// The last step whose reply should be the object.
    seen: u32,
}

impl Known {
    fn path(&self) -> String {
        format!("{}/{}", self.kind.collection(self.namespace), self.name)
    }
}

/// A script in the making, and the model of what it has made.
struct Episode {
    random: Rng,
    ops: Vec<Op>,
    /// The kinds of this script: few, so that its steps meet.
    kinds: Vec<Arc<Kind>>,
    objects: Vec<Known>,
    definitions: Vec<Definition>,
    watches: usize,
}

impl Episode {
    fn new(mut random: Rng) -> Self {
        let all = kind::builtin();
        let total: u32 = all.iter().map(|kind| kind.weight).sum();
        let mut kinds: Vec<Arc<Kind>> = Vec::new();
        for _ in 0..random.usize(2..5) {
            let mut left = random.u32(..total);
            let chosen = all.iter().find(|kind| {
                let found = left < kind.weight;
                left = left.saturating_sub(kind.weight);
                found
            });
            kinds.extend(chosen.cloned());
        }
        Episode { random, ops: Vec::new(), kinds, objects: Vec::new(), definitions: Vec::new(), watches: 0 }
    }

    fn begin(&mut self) {
        for name in NAMESPACES {
            let op = self.push("POST /api/v1/namespaces");
            op.body = Some(json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"run": "twin00"}}
            }));
        }
        if self.random.u32(..5) < 2 {
            self.define();
        }
    }

    /// Appends a step.
    fn push(&mut self, run: impl Into<String>) -> &mut Op {
        let id = self.ops.last().map_or(1, |last| last.id + 1);
        self.ops.push(Op { id, run: run.into(), ..Op::default() });
        let last = self.ops.len() - 1;
        &mut self.ops[last]
    }

    fn step(&mut self) {
        match self.random.u32(..100) {
            0..20 => self.create(),
            20..26 => self.get(),
            26..37 => self.list(),
            37..40 => self.pages(),
            40..48 => self.update(),
            48..55 => self.merge_patch(),
            55..60 => self.strategic_patch(),
            60..66 => self.json_patch(),
            66..71 => self.status(),
            71..74 => self.scale(),
            74..81 => self.delete(),
            81..83 => self.delete_collection(),
            83..87 => self.watch(),
            87..91 => self.drain(),
            91..93 => self.special(),
            93..96 => self.bad_request(),
            96..98 => self.namespace_life(),
            _ => self.change_definitions(),
        }
    }

    fn kind(&mut self) -> Arc<Kind> {
        pick(&mut self.random, &self.kinds).clone()
    }

    fn namespace(&mut self) -> &'static str {
        if self.random.u32(..4) > 0 { NAMESPACES[0] } else { NAMESPACES[1] }
    }

    /// An object that should exist, or now and then one that should not.
    fn object(&mut self) -> Option<Known> {
        if self.objects.is_empty() || self.random.u32(..25) == 0 {
            let kind = self.kind();
            let (namespace, name) = (self.namespace(), self.name(&kind));
            let seen = self.ops.last().map_or(0, |last| last.id);
            return Some(Known { kind, namespace, name, seen });
        }
        Some(pick(&mut self.random, &self.objects).clone())
    }

    fn name(&mut self, kind: &Kind) -> String {
        let name = *pick(&mut self.random, &["x", "y", "z", "w"]);
        if kind.namespaced { name.to_owned() } else { format!("twin00-{name}") }
    }

    fn metadata(&mut self, kind: &Kind, name: &str) -> Value {
        let random = &mut self.random;
        let mut metadata = json!({"name": name, "labels": {"run": "twin00"}});
        if random.bool() {
            metadata["labels"]["app"] = (*pick(random, &["a", "b"])).into();
        }
        if random.u32(..3) == 0 {
            metadata["labels"]["tier"] = (*pick(random, &["x", "y"])).into();
        }
        match random.u32(..30) {
            0 => metadata["finalizers"] = json!(["example.com/f"]),
            1 => metadata["annotations"] = json!({"a": "b"}),
            2 => metadata["generateName"] = "unused-".into(),
            3 => metadata["uid"] = "11111111-1111-4111-8111-111111111111".into(),
            4 => metadata["resourceVersion"] = "5".into(),
            5 => metadata["creationTimestamp"] = "2001-01-01T00:00:00Z".into(),
            6 => metadata["generation"] = 7.into(),
            7 => metadata["selfLink"] = "/x".into(),
            8 => metadata["deletionTimestamp"] = "2001-01-01T00:00:00Z".into(),
            9 => metadata["ownerReferences"] = owner(random),
            10 => metadata["labels"]["bad key!"] = "x".into(),
            11 => metadata["labels"]["app"] = "bad value!".into(),
            12 => metadata["annotations"] = json!({"Bad Key": "x"}),
            13 => metadata["finalizers"] = json!(["nodomain"]),
            14 if kind.namespaced => metadata["namespace"] = "twin00-b".into(),
            15 => {
                metadata["name"] =
                    (*pick(random, &["Bad_Name", "", "-x", "a.b", "twin00.y", "x/y", "."])).into()
            }
            16 => metadata["managedFields"] = json!([]),
            17 => metadata["finalizers"] = json!(["orphan", "foregroundDeletion"]),
            _ => {}
        }
        metadata
    }

    /// A new object: valid, or with something wrong.
    fn body(&mut self, kind: &Kind, name: &str) -> Value {
        let metadata = self.metadata(kind, name);
        let mut object = kind.example(metadata);
        for _ in 0..self.random.usize(..3) {
            let knob = pick(&mut self.random, &kind.knobs).clone();
            crate::player::merge(&mut object, knob);
        }
        self.vary(kind, &mut object);
        object
    }

    /// Adds a field, spoils something, or leaves the object alone.
    fn vary(&mut self, kind: &Kind, object: &mut Value) {
        if self.random.u32(..100) < 12
            && let Some(schema) = &kind.schema
        {
            values::add_field(&mut self.random, object, schema.root());
        }
        if self.random.u32(..100) < 10 {
            values::spoil(&mut self.random, object);
        }
    }

    fn create(&mut self) {
        let (kind, namespace) = (self.kind(), self.namespace());
        let name = self.name(&kind);
        let mut body = self.body(&kind, &name);
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        if self.random.u32(..20) == 0 {
            let id = self.ops.last().map_or(0, |last| last.id) + 1;
            let prefix = if kind.namespaced { format!("gen{id}-") } else { format!("twin00-gen{id}-") };
            body["metadata"]["generateName"] = prefix.into();
            if let Some(metadata) = body["metadata"].as_object_mut() {
                metadata.remove("name");
            }
        }
        let run = query.on(&format!("POST {}", kind.collection(namespace)));
        let accept = if self.random.u32(..15) == 0 { query::accept(&mut self.random, false) } else { None };
        let is_dry = run.contains("dryRun");
        let op = self.push(run);
        (op.body, op.accept) = (Some(body), accept);
        let seen = op.id;
        let exists = self.objects.iter().any(|known| {
            known.kind.plural == kind.plural && known.namespace == namespace && known.name == name
        });
        if !is_dry && !exists {
            self.objects.push(Known { kind, namespace, name, seen });
        }
    }

    fn saw(&mut self, known: &Known, id: u32) {
        let path = known.path();
        if let Some(found) = self.objects.iter_mut().find(|other| other.path() == path) {
            found.seen = id;
        }
    }

    fn get(&mut self) {
        let Some(known) = self.object() else { return };
        let mut query = Query::default();
        match self.random.u32(..20) {
            0 => query.add("resourceVersion", "0"),
            1 => query.add("resourceVersion", format!("{{{{{}/metadata/resourceVersion}}}}", known.seen)),
            2 => query.add("resourceVersion", "abc"),
            3 => query.add("pretty", "1"),
            _ => {}
        }
        let accept = query::accept(&mut self.random, false);
        let plain = accept.is_none();
        let sub = match self.random.u32(..12) {
            0 if !known.kind.status.is_empty() => "/status",
            1 if known.kind.scale => "/scale",
            2 => "/nothing",
            _ => "",
        };
        let op = self.push(query.on(&format!("GET {}{sub}", known.path())));
        op.accept = accept;
        let id = op.id;
        if plain && sub.is_empty() {
            self.saw(&known, id);
        }
    }

    /// The path of a collection, and whether it is of the whole cluster.
    fn collection(&mut self, kind: &Kind) -> (String, bool) {
        let namespace = if self.random.u32(..5) == 0 { "" } else { self.namespace() };
        (kind.collection(namespace), namespace.is_empty() || !kind.namespaced)
    }

    fn list(&mut self) {
        let kind = self.kind();
        let (path, cluster_wide) = self.collection(&kind);
        let mut query = Query::default();
        query::selectors(&mut self.random, &mut query, &kind, cluster_wide);
        let version = self.some_version();
        match self.random.u32(..40) {
            0..2 => query.add("resourceVersion", "0"),
            2..4 => query.add("resourceVersion", &version),
            4..6 => {
                query.add("resourceVersion", &version);
                query.add("resourceVersionMatch", "Exact");
            }
            6..8 => {
                query.add("resourceVersion", &version);
                query.add("resourceVersionMatch", "NotOlderThan");
            }
            8 => query.add("resourceVersionMatch", "Exact"),
            9 => query.add("resourceVersion", "x"),
            10 => query.add("limit", pick(&mut self.random, &["-1", "x", "0"])),
            11 => query.add("continue", pick(&mut self.random, &["bogus", "e30", ""])),
            12 => {
                query.add("resourceVersion", "0");
                query.add("resourceVersionMatch", "Exact");
            }
            13 => {
                query.add("resourceVersion", &version);
                query.add("resourceVersionMatch", "Nearly");
            }
            // The server waits three seconds for that version.
            14 if self.random.u32(..8) == 0 => query.add("resourceVersion", "999999999999999999"),
            15 => query.add("timeoutSeconds", "5"),
            16 if !cluster_wide => {
                query.add("includeObject", pick(&mut self.random, &["None", "Object", "Metadata", "x"]))
            }
            17 => query.add("sendInitialEvents", "true"),
            _ => {}
        }
        let accept = query::accept(&mut self.random, true);
        self.push(query.on(&format!("GET {path}"))).accept = accept;
    }

    /// A reference to a version that some object should have had.
    fn some_version(&mut self) -> String {
        let seen = if self.objects.is_empty() { 1 } else { pick(&mut self.random, &self.objects).seen };
        format!("{{{{{seen}/metadata/resourceVersion}}}}")
    }

    /// A list in pages.
    fn pages(&mut self) {
        let kind = self.kind();
        let (path, cluster_wide) = self.collection(&kind);
        let mut query = Query::default();
        if cluster_wide {
            query.add("labelSelector", "run=twin00");
        }
        let limit = *pick(&mut self.random, &["1", "1", "2", "3"]);
        query.add("limit", limit);
        let run = query.on(&format!("GET {path}"));
        let accept = query::accept(&mut self.random, true);
        for number in 0..3 {
            let last = self.ops.last().map_or(0, |last| last.id);
            let run = match number {
                0 => run.clone(),
                _ => format!("{run}&continue={{{{{last}/metadata/continue}}}}"),
            };
            self.push(run).accept = accept.clone();
            if self.random.u32(..4) == 0 {
                break;
            }
        }
    }

    fn update(&mut self) {
        let Some(known) = self.object() else { return };
        let kind = known.kind.clone();
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        let run = query.on(&format!("PUT {}", known.path()));
        if self.random.u32(..4) == 0 {
            // A whole body, without a version.
            let body = self.body(&kind, &known.name);
            let op = self.push(run);
            op.body = Some(body);
            let id = op.id;
            self.saw(&known, id);
            return;
        }
        let mut patch = self.change(&kind);
        if self.random.u32(..12) == 0 {
            values::spoil(&mut self.random, &mut patch);
        }
        // A stale base now and then.
        let base = if self.random.u32(..10) == 0 { known.seen.saturating_sub(1) } else { known.seen };
        let op = self.push(run);
        (op.base, op.body) = (Some(base), Some(patch));
        let id = op.id;
        self.saw(&known, id);
    }

    /// A merge patch for an object of a kind.
    fn change(&mut self, kind: &Kind) -> Value {
        let random = &mut self.random;
        match random.u32(..10) {
            0..6 if !kind.knobs.is_empty() => pick(random, &kind.knobs).clone(),
            6 if !kind.status.is_empty() => json!({"status": pick(random, &kind.status)}),
            _ => metadata_change(random),
        }
    }

    fn patch(&mut self, known: &Known, sub: &str, media: &str, body: Value) {
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        let is_dry = self.random.u32(..30) == 0;
        if is_dry {
            query.add("dryRun", "All");
        }
        let accept = if self.random.u32(..15) == 0 { query::accept(&mut self.random, false) } else { None };
        let op = self.push(query.on(&format!("PATCH {}{sub}", known.path())));
        (op.media, op.body, op.accept) = (Some(media.to_owned()), Some(body), accept);
        let (id, plain) = (op.id, op.accept.is_none() && !op.run.contains("dryRun"));
        if sub.is_empty() && plain {
            self.saw(known, id);
        }
    }

    fn merge_patch(&mut self) {
        let Some(known) = self.object() else { return };
        let mut patch = self.change(&known.kind);
        if self.random.u32(..10) == 0 {
            values::spoil(&mut self.random, &mut patch);
        }
        if self.random.u32(..30) == 0 {
            patch = pick(&mut self.random, &[json!([]), json!("x"), json!(null), json!({})]).clone();
        }
        self.patch(&known, "", MERGE_PATCH, patch);
    }

    fn strategic_patch(&mut self) {
        let Some(known) = self.object() else { return };
        let random = &mut self.random;
        let mut patch = match random.u32(..10) {
            0..6 if !known.kind.strategic.is_empty() => pick(random, &known.kind.strategic).clone(),
            6..8 => {
                let directives = [
                    json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/f"]}}),
                    json!({"metadata": {"$setElementOrder/finalizers": ["example.com/g", "example.com/f"], "finalizers": ["example.com/g"]}}),
                    json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "22222222-2222-4222-8222-222222222222"}]}}),
                    json!({"metadata": {"ownerReferences": owner(random)}}),
                    json!({"metadata": {"labels": {"$patch": "replace", "run": "twin00"}}}),
                    json!({"metadata": {"labels": {"$retainKeys": ["run"], "run": "twin00"}}}),
                    json!({"$patch": "delete"}),
                    json!({"$patch": "merge", "metadata": {"labels": {"m": "1"}}}),
                    json!({"metadata": {"labels": {"$patch": "wrong"}}}),
                    json!({"metadata": {"annotations": {"$patch": "delete"}}}),
                ];
                pick(random, &directives).clone()
            }
            _ => self.change(&known.kind),
        };
        if self.random.u32(..12) == 0 {
            values::spoil(&mut self.random, &mut patch);
        }
        self.patch(&known, "", STRATEGIC_PATCH, patch);
    }

    fn json_patch(&mut self) {
        let Some(known) = self.object() else { return };
        let example = known.kind.example(json!({"name": known.name, "labels": {"run": "twin00"}}));
        let places = values::pointers(&example);
        let random = &mut self.random;
        let mut operations = Vec::new();
        for _ in 0..random.usize(1..4) {
            let path = match random.u32(..10) {
                0..5 => pick(random, &places).clone(),
                5 => format!("{}/more", pick(random, &places)),
                6 => format!("{}/-", pick(random, &places)),
                7 => format!("{}/0", pick(random, &places)),
                8 => "/metadata/labels/j".to_owned(),
                _ => (*pick(
                    random,
                    &[
                        "",
                        "/",
                        "nowhere",
                        "/metadata/annotations",
                        "/metadata/finalizers/-",
                        "/a~2b",
                        "/spec",
                    ],
                ))
                .to_owned(),
            };
            let value = match random.u32(..4) {
                0 => values::odd(random),
                1 => example.pointer(&path).cloned().unwrap_or_else(|| "1".into()),
                2 => "v".into(),
                _ => json!({"k": "v"}),
            };
            let from = pick(random, &places).clone();
            operations.push(match random.u32(..12) {
                0..4 => json!({"op": "add", "path": path, "value": value}),
                4..6 => json!({"op": "replace", "path": path, "value": value}),
                6..8 => json!({"op": "remove", "path": path}),
                8 => json!({"op": "test", "path": path, "value": value}),
                9 => json!({"op": "copy", "from": from, "path": path}),
                10 => json!({"op": "move", "from": from, "path": path}),
                _ => pick(
                    random,
                    &[
                        json!({"op": "add", "path": path}),
                        json!({"op": "nop", "path": path}),
                        json!({"path": path, "value": 1}),
                        json!({"op": "add", "value": 1}),
                        json!("text"),
                        json!({"op": "add", "path": 5, "value": 1}),
                    ],
                )
                .clone(),
            });
        }
        let body = if random.u32(..30) == 0 { operations[0].clone() } else { operations.into() };
        self.patch(&known, "", JSON_PATCH, body);
    }

    fn status(&mut self) {
        let with_status: Vec<Known> =
            self.objects.iter().filter(|known| !known.kind.status.is_empty()).cloned().collect();
        if with_status.is_empty() {
            return;
        }
        let known = pick(&mut self.random, &with_status).clone();
        let status = pick(&mut self.random, &known.kind.status).clone();
        let mut body = json!({"status": status});
        match self.random.u32(..10) {
            0 => crate::player::merge(&mut body, metadata_change(&mut self.random)),
            1 => crate::player::merge(&mut body, pick(&mut self.random, &known.kind.knobs).clone()),
            2 => values::spoil(&mut self.random, &mut body),
            _ => {}
        }
        if self.random.bool() {
            let media = match self.random.u32(..3) {
                0 if !known.kind.custom => STRATEGIC_PATCH,
                _ => MERGE_PATCH,
            };
            return self.patch(&known, "/status", media, body);
        }
        let mut query = Query::default();
        query::write_options(&mut self.random, &mut query);
        let op = self.push(query.on(&format!("PUT {}/status", known.path())));
        (op.base, op.body) = (Some(known.seen), Some(body));
        let id = op.id;
        self.saw(&known, id);
    }

    fn scale(&mut self) {
        let scaled: Vec<Known> = self.objects.iter().filter(|known| known.kind.scale).cloned().collect();
        if scaled.is_empty() {
            return;
        }
        let known = pick(&mut self.random, &scaled).clone();
        let replicas =
            pick(&mut self.random, &[json!(0), json!(3), json!(-1), json!(null), json!("2")]).clone();
        if self.random.bool() {
            return self.patch(&known, "/scale", MERGE_PATCH, json!({"spec": {"replicas": replicas}}));
        }
        let read = self.push(format!("GET {}/scale", known.path())).id;
        let op = self.push(format!("PUT {}/scale", known.path()));
        (op.base, op.body) = (Some(read), Some(json!({"spec": {"replicas": replicas}})));
    }

    fn delete(&mut self) {
        let Some(known) = self.object() else { return };
        let mut query = Query::default();
        let body = self.delete_options(&mut query, Some(&known));
        let run = query.on(&format!("DELETE {}", known.path()));
        let is_dry = run.contains("dryRun") || body.as_ref().is_some_and(|body| body["dryRun"].is_array());
        self.push(run).body = body;
        if !is_dry && self.random.u32(..10) > 0 {
            let path = known.path();
            self.objects.retain(|other| other.path() != path);
        }
    }

    fn delete_options(&mut self, query: &mut Query, known: Option<&Known>) -> Option<Value> {
        let random = &mut self.random;
        match random.u32(..40) {
            0 => query.add("dryRun", "All"),
            1..4 => {
                query.add("propagationPolicy", pick(random, &["Foreground", "Orphan", "Background", "Odd"]))
            }
            4..6 => query.add("gracePeriodSeconds", pick(random, &["0", "5", "-1", "x"])),
            6 => query.add("orphanDependents", "true"),
            _ => {}
        }
        let seen = known.map_or(0, |known| known.seen);
        let reference = |field: &str| format!("{{{{{seen}/metadata/{field}}}}}");
        let options = match random.u32(..24) {
            0 => json!({"propagationPolicy": "Foreground"}),
            1 => json!({"propagationPolicy": "Orphan"}),
            2 => json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}),
            3 => json!({"preconditions": {"uid": reference("uid")}}),
            4 => json!({"preconditions": {"resourceVersion": reference("resourceVersion")}}),
            5 => json!({"preconditions": {"uid": "33333333-3333-4333-8333-333333333333"}}),
            6 => json!({"preconditions": {"resourceVersion": "1"}}),
            7 => json!({"dryRun": ["All"]}),
            8 => json!({"gracePeriodSeconds": 3}),
            9 => json!({"propagationPolicy": "Odd"}),
            10 => json!({"kind": "Pod", "apiVersion": "v1"}),
            11 => json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
            12 => json!({"kind": "DeleteOptions", "apiVersion": "v1", "unknown": 1}),
            13 => json!({"gracePeriodSeconds": -5}),
            14 => values::odd(random),
            _ => return None,
        };
        Some(options)
    }

    fn delete_collection(&mut self) {
        let kind = self.kind();
        if kind.plural == "namespaces" {
            return;
        }
        let namespace = self.namespace();
        let path = kind.collection(namespace);
        let mut query = Query::default();
        query::selectors(&mut self.random, &mut query, &kind, !kind.namespaced);
        if self.random.u32(..8) == 0 {
            query.add("limit", "1");
        }
        let body = self.delete_options(&mut query, None);
        self.push(query.on(&format!("DELETE {path}"))).body = body;
    }

    fn watch(&mut self) {
        if self.watches >= WATCHES {
            return;
        }
        self.watches += 1;
        let kind = self.kind();
        let (path, cluster_wide) = self.collection(&kind);
        let mut query = Query::default();
        query::selectors(&mut self.random, &mut query, &kind, cluster_wide);
        let version = self.some_version();
        match self.random.u32(..20) {
            0..8 => query.add("resourceVersion", &version),
            8..10 => query.add("resourceVersion", "0"),
            10..14 => {
                query.add("sendInitialEvents", "true");
                query.add("resourceVersionMatch", "NotOlderThan");
                if self.random.u32(..5) > 0 {
                    query.add("allowWatchBookmarks", "true");
                }
                if self.random.bool() {
                    query.add("resourceVersion", &version);
                }
            }
            14 => query.add("resourceVersion", "x"),
            15 => query.add("sendInitialEvents", "true"),
            16 => query.add("resourceVersionMatch", "Exact"),
            _ => {}
        }
        let accept = query::accept(&mut self.random, true).filter(|accept| !accept.contains("html"));
        self.push(query.on(&format!("WATCH {path}"))).accept = accept;
    }

    fn drain(&mut self) {
        if self.watches > 0 {
            self.push("DRAIN");
        }
    }

    /// Subresources that few kinds have.
    fn special(&mut self) {
        let Some(known) = self.object() else { return };
        let path = known.path();
        let random = &mut self.random;
        let (run, body) = match known.kind.plural.as_str() {
            "pods" => match random.u32(..5) {
                0 => (
                    format!("POST {path}/binding"),
                    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": known.name}, "target": {"kind": "Node", "name": "node-1"}}),
                ),
                1 => (
                    format!("POST {path}/eviction"),
                    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": known.name}}),
                ),
                2 => (
                    format!("PATCH {path}/ephemeralcontainers"),
                    json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}),
                ),
                3 => (
                    format!("PATCH {path}/ephemeralcontainers"),
                    json!({"metadata": {"labels": {"sneaky": "1"}}, "spec": {"nodeName": "n", "ephemeralContainers": [{"name": "main", "image": "x"}]}}),
                ),
                _ => (
                    format!("PATCH {path}/resize"),
                    json!({"spec": {"containers": [{"name": "main", "image": "other", "resources": {"requests": {"cpu": "200m"}}}]}}),
                ),
            },
            "namespaces" => (
                format!("PUT {path}/finalize"),
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": known.name}, "spec": {"finalizers": []}}),
            ),
            "serviceaccounts" => (
                format!("POST {path}/token"),
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"], "expirationSeconds": pick(random, &[600, 5, 3600])}}),
            ),
            _ => return,
        };
        let media = run.starts_with("PATCH").then(|| STRATEGIC_PATCH.to_owned());
        let op = self.push(run);
        (op.body, op.media) = (Some(body), media);
    }

    /// Requests that no client should send.
    fn bad_request(&mut self) {
        let kind = self.kind();
        let (namespace, name) = (self.namespace(), self.name(&kind));
        let collection = kind.collection(namespace);
        let good = self.body(&kind, &name).to_string();
        let random = &mut self.random;
        let item = format!("{collection}/{name}");
        let texts = [
            "{",
            "[]",
            "null",
            "\"x\"",
            "5",
            "{\"a\":}",
            "{\"kind\":\"ConfigMap\",}",
            "{}",
            "{} {}",
            "not json",
            "\u{0}",
            "{\"apiVersion\":1}",
            "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
            "{\"kind\":\"Unknown\",\"apiVersion\":\"none.example.com/v1\"}",
            "\u{feff}{}",
        ];
        match random.u32(..16) {
            0..3 => {
                let text = (*pick(random, &texts)).to_owned();
                self.push(format!("POST {collection}")).text = Some(text);
            }
            3 => {
                let text = (*pick(random, &texts)).to_owned();
                self.push(format!("PUT {item}")).text = Some(text);
            }
            4 => {
                let text = (*pick(random, &texts)).to_owned();
                let media = *pick(random, &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH]);
                let op = self.push(format!("PATCH {item}"));
                (op.text, op.media) = (Some(text), Some(media.to_owned()));
            }
            5 => {
                let media = *pick(
                    random,
                    &[
                        "text/plain",
                        "application/json; charset=utf-8",
                        "application/xml",
                        "application/json-patch+json",
                        "",
                    ],
                );
                let op = self.push(format!("POST {collection}"));
                (op.text, op.media) = (Some(good), Some(media.to_owned()));
            }
            6 => {
                let media =
                    *pick(random, &[op::JSON, "text/plain", "application/merge-patch+json; charset=utf-8"]);
                let op = self.push(format!("PATCH {item}"));
                (op.text, op.media) = (Some("{}".to_owned()), Some(media.to_owned()));
            }
            7 => {
                // JSON is YAML.
                let op = self.push(format!("POST {collection}"));
                (op.text, op.media) = (Some(good), Some("application/yaml".to_owned()));
            }
            8 => {
                let twice = good.replacen('{', "{\"metadata\":{\"name\":\"other\"},\"kind\":\"Other\",", 1);
                let strict = *pick(random, &["", "?fieldValidation=Strict", "?fieldValidation=Warn"]);
                self.push(format!("POST {collection}{strict}")).text = Some(twice);
            }
            9 => {
                let run = match random.u32(..6) {
                    0 => format!("PUT {collection}"),
                    1 => format!("POST {item}"),
                    2 => format!("PATCH {collection}"),
                    3 => format!("POST {item}/status"),
                    4 => format!("DELETE {item}/status"),
                    _ => format!("GET {item}/nothing/more"),
                };
                self.push(run).text = Some("{}".to_owned());
            }
            10 => {
                let paths = [
                    "/api/v1/nothing",
                    "/apis/none.example.com/v1/x",
                    "/apis/apps/v9/deployments",
                    "/nowhere",
                    "/api/v2",
                    "/apis/apps/v1/namespaces",
                    "/api/v1/namespaces/none/configmaps",
                    "/api/v1/namespaces/twin00-a/nodes",
                    "/api/v1/namespaces//configmaps",
                    "/api/v1/configmaps/x",
                ];
                let path = *pick(random, &paths);
                self.push(format!("GET {path}"));
            }
            11 => {
                // Kind and version do not fit the path.
                let mut object: Value = serde_json::from_str(&good).unwrap_or_default();
                match random.u32(..4) {
                    0 => object["kind"] = "Other".into(),
                    1 => object["apiVersion"] = "v9".into(),
                    2 => object["kind"] = Value::Null,
                    _ => object["apiVersion"] = "a/b/c".into(),
                }
                self.push(format!("POST {collection}")).body = Some(object);
            }
            12 => {
                self.push(format!("POST /{}/{}", kind.prefix, kind.plural)).text = Some(good);
            }
            13 => {
                self.push(format!("POST /{}/namespaces/none/{}", kind.prefix, kind.plural)).text = Some(good);
            }
            14 => {
                self.push(format!("PUT {item}")).text = Some(good.replace("twin00", "twin00-other"));
            }
            _ => {
                self.push(format!("PUT {collection}/other")).text = Some(good);
            }
        }
    }

    /// A namespace comes, is filled, and goes.
    fn namespace_life(&mut self) {
        let name = "twin00-c";
        let path = format!("/api/v1/namespaces/{name}");
        match self.random.u32(..6) {
            0 | 1 => {
                self.push("POST /api/v1/namespaces").body =
                    Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
            }
            2 => {
                self.push(format!("DELETE {path}"));
            }
            3 => {
                let kind = self.kind();
                let object = self.body(&kind, "x");
                self.push(format!("POST {}", kind.collection(name))).body = Some(object);
            }
            4 => {
                let read = self.push(format!("GET {path}")).id;
                let op = self.push(format!("PUT {path}/finalize"));
                (op.base, op.body) = (Some(read), Some(json!({"spec": {"finalizers": []}})));
            }
            _ => {
                let patch = pick(
                    &mut self.random,
                    &[
                        json!({"spec": {"finalizers": ["example.com/f"]}}),
                        json!({"metadata": {"finalizers": ["example.com/f"]}}),
                        json!({"metadata": {"finalizers": null}}),
                        json!({"status": {"phase": "Active"}}),
                    ],
                )
                .clone();
                let op = self.push(format!("PATCH {path}"));
                (op.body, op.media) = (Some(patch), Some(MERGE_PATCH.to_owned()));
            }
        }
    }

    /// Creates a definition and waits until it is served.
    fn define(&mut self) {
        let plural = *pick(&mut self.random, &["widgets", "gadgets"]);
        if self.definitions.iter().any(|known| known.name.starts_with(plural)) {
            return;
        }
        let definition = crd::definition(&mut self.random, plural);
        self.push(DEFINITIONS_POST).body = Some(definition.object.clone());
        self.serve(&definition);
        self.definitions.push(definition);
    }

    /// Waits for the kinds of a definition, and uses them from now on.
    fn serve(&mut self, definition: &Definition) {
        let kinds = crd::kinds(&mut self.random, definition);
        self.kinds.retain(|kind| !kind.custom || !definition.name.starts_with(&format!("{}.", kind.plural)));
        for kind in kinds {
            self.push(format!("AWAIT {}?limit=1&labelSelector=none", kind.collection("")));
            self.kinds.push(kind);
        }
        let path = format!("{DEFINITIONS}/{}", definition.name);
        self.push(format!("GET {path}"));
    }

    fn change_definitions(&mut self) {
        if self.definitions.is_empty() {
            if self.random.u32(..3) == 0 {
                self.bad_definition();
            }
            return;
        }
        let index = self.random.usize(..self.definitions.len());
        let old = self.definitions[index].clone();
        let path = format!("{DEFINITIONS}/{}", old.name);
        match self.random.u32(..6) {
            0..3 => {
                let new = crd::edit(&mut self.random, &old);
                let op = self.push(format!("PATCH {path}"));
                op.media = Some(MERGE_PATCH.to_owned());
                op.body = Some(json!({"spec": {"versions": new.object["spec"]["versions"]}}));
                self.serve(&new);
                self.definitions[index] = new;
            }
            3 => self.bad_definition(),
            4 => {
                let mut body = json!({"spec": old.object["spec"]});
                values::spoil(&mut self.random, &mut body);
                let op = self.push(format!("PATCH {path}?dryRun=All"));
                (op.media, op.body) = (Some(MERGE_PATCH.to_owned()), Some(body));
            }
            _ => {
                self.push(format!("DELETE {path}"));
                self.push(format!("GONE {path}"));
                self.objects.retain(|known| !known.kind.custom);
                self.kinds.retain(|kind| !kind.custom || !old.name.starts_with(&kind.plural));
                if self.kinds.is_empty() {
                    self.kinds = kind::builtin();
                }
                self.definitions.remove(index);
            }
        }
    }

    /// A definition with something wrong.
    fn bad_definition(&mut self) {
        let mut definition = crd::definition(&mut self.random, "doohickeys");
        for _ in 0..self.random.usize(1..3) {
            values::spoil(&mut self.random, &mut definition.object["spec"]);
        }
        self.push(format!("{DEFINITIONS_POST}?dryRun=All")).body = Some(definition.object);
    }
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITIONS_POST: &str = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A list with one owner.
fn owner(random: &mut Rng) -> Value {
    let mut owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "22222222-2222-4222-8222-222222222222"
    });
    match random.u32(..5) {
        0 => owner["controller"] = true.into(),
        1 => owner["blockOwnerDeletion"] = true.into(),
        2 => owner["uid"] = "".into(),
        3 => owner["kind"] = "Event".into(),
        _ => {}
    }
    json!([owner])
}

/// A change of metadata: most are allowed.
fn metadata_change(random: &mut Rng) -> Value {
    let changes = [
        json!({"labels": {"app": "a"}}),
        json!({"labels": {"app": "b"}}),
        json!({"labels": {"tier": "x"}}),
        json!({"labels": {"app": null}}),
        json!({"annotations": {"n": "1"}}),
        json!({"annotations": {"n": null}}),
        json!({"annotations": null}),
        json!({"labels": {"app": ""}}),
        json!({"finalizers": ["example.com/f"]}),
        json!({"finalizers": null}),
        json!({"finalizers": ["example.com/f", "example.com/g"]}),
        json!({"finalizers": []}),
        json!({"ownerReferences": owner(random)}),
        json!({"ownerReferences": null}),
        json!({"name": "renamed"}),
        json!({"namespace": "other"}),
        json!({"uid": "44444444-4444-4444-8444-444444444444"}),
        json!({"uid": null}),
        json!({"resourceVersion": "1"}),
        json!({"resourceVersion": null}),
        json!({"resourceVersion": "x"}),
        json!({"generation": 99}),
        json!({"creationTimestamp": "2001-01-01T00:00:00Z"}),
        json!({"creationTimestamp": null}),
        json!({"deletionTimestamp": "2001-01-01T00:00:00Z"}),
        json!({"deletionGracePeriodSeconds": 3}),
        json!({"generateName": "g-"}),
        json!({"selfLink": "/x"}),
        json!({"managedFields": []}),
        json!({"labels": {"bad key!": "x"}}),
        json!({"labels": {"app": 1}}),
        json!({"finalizers": ["nodomain"]}),
        json!({"labels": "x"}),
    ];
    // The first, allowed ones more often.
    let end = if random.u32(..3) > 0 { 14 } else { changes.len() };
    json!({"metadata": pick(random, &changes[..end])})
}
