//! Generates scripts. Each step depends only on the seed and on a model of the objects that earlier steps created.

mod crd;
mod query;
mod samples;
mod values;

mod applies;
mod definitions;
mod deletes;
mod forms;
mod hostile;
mod mistakes;
mod objects;
mod policies;
mod reads;
mod users;
mod webhooks;
mod writes;

use std::sync::Arc;

use fastrand::Rng;
use serde_json::json;

use self::crd::Definition;
use crate::kind::{self, Kind};
use crate::op::Op;

/// The minimum number of steps of a script. Scripts are independent of each other and short enough to be shrunk.
const STEPS: usize = 80;
/// The namespaces of the objects.
const NAMESPACES: [&str; 2] = ["twin00-a", "twin00-b"];
/// The maximum number of open watches.
const WATCHES: usize = 3;

/// Returns a script of a seed. The same seed and number always give the same script.
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

/// Returns a random element.
fn pick<'a, T>(random: &mut Rng, items: &'a [T]) -> &'a T {
    &items[random.usize(..items.len())]
}

/// An object that should exist.
#[derive(Clone)]
struct Known {
    kind: Arc<Kind>,
    namespace: &'static str,
    name: String,
    /// The last step with the object in the reply.
    seen: u32,
}

impl Known {
    fn path(&self) -> String {
        format!("{}/{}", self.kind.collection(self.namespace), self.name)
    }
}

/// A script under construction, and a model of the objects that it has created.
struct Episode {
    random: Rng,
    ops: Vec<Op>,
    /// The kinds of this script. There are few kinds, so that many steps refer to the same objects.
    kinds: Vec<Arc<Kind>>,
    objects: Vec<Known>,
    definitions: Vec<Definition>,
    watches: usize,
    /// The paths of the configurations of webhooks.
    webhooks: Vec<String>,
    /// The admission policies: `true` for a mutating policy.
    policies: Vec<bool>,
    /// True if some steps run as a user with few rights.
    has_user: bool,
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
        Episode {
            random,
            ops: Vec::new(),
            kinds,
            objects: Vec::new(),
            definitions: Vec::new(),
            watches: 0,
            webhooks: Vec::new(),
            policies: Vec::new(),
            has_user: false,
        }
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
        if self.random.u32(..4) == 0 {
            self.grant();
        }
        if self.random.u32(..4) == 0 {
            self.register();
        }
        if self.random.u32(..8) == 0 {
            self.change_policies();
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
        let start = self.ops.len();
        self.any_step();
        self.impersonate(start);
    }

    fn any_step(&mut self) {
        match self.random.u32(..128) {
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
            100..109 => self.apply(),
            109 if self.has_user => self.ask(),
            110 if !self.policies.is_empty() => self.change_policies(),
            110..112 => self.change_webhooks(),
            112..121 => self.any_form(),
            121..128 => self.hostile(),
            _ => self.change_definitions(),
        }
    }

    fn kind(&mut self) -> Arc<Kind> {
        pick(&mut self.random, &self.kinds).clone()
    }

    fn namespace(&mut self) -> &'static str {
        if self.random.u32(..4) > 0 { NAMESPACES[0] } else { NAMESPACES[1] }
    }

    /// Returns an object that should exist, or rarely an object that should not exist.
    fn object(&mut self) -> Known {
        if self.objects.is_empty() || self.random.u32(..25) == 0 {
            let kind = self.kind();
            let (namespace, name) = (self.namespace(), self.name(&kind));
            let seen = self.ops.last().map_or(0, |last| last.id);
            return Known { kind, namespace, name, seen };
        }
        pick(&mut self.random, &self.objects).clone()
    }

    fn name(&mut self, kind: &Kind) -> String {
        let name = *pick(&mut self.random, &["x", "y", "z", "w"]);
        if kind.namespaced { name.to_owned() } else { format!("twin00-{name}") }
    }

    fn saw(&mut self, known: &Known, id: u32) {
        let path = known.path();
        if let Some(found) = self.objects.iter_mut().find(|other| other.path() == path) {
            found.seen = id;
        }
    }
}
