//! The search for objects that satisfy and violate the rules of a version.

use fastrand::Rng;
use futures::future::join_all;
use serde_json::Value;

use super::definition::{Definition, Version};
use super::exchange::{Exchange, Replies};
use super::generator::Generator;
use super::mutation::{Change, mutate};
use super::rule::{Rule, Step};
use super::tally::{Seen, Tally, Verdict};

/// The number of requests at the same time.
const ROUND: usize = 32;
/// The number of accepted objects that the search changes further.
const POOL: usize = 60;
/// The number of objects on the servers.
const STORED: usize = 8;

/// A search.
pub(super) struct Search<'a> {
    definition: &'a Definition,
    version: &'a Version,
    exchange: &'a Exchange,
    rng: Rng,
    /// Accepted objects.
    pool: Vec<Value>,
    stored: Vec<Stored>,
    /// The results of each rule.
    seen: Vec<Seen>,
}

/// An object on both servers.
struct Stored {
    name: String,
    object: Value,
    versions: [Value; 2],
}

/// A request to both servers.
struct Attempt {
    place: Place,
    object: Value,
    /// True if the servers store the object.
    is_kept: bool,
}

/// The place of a request: a new object, or the number of a stored object.
#[derive(Clone, Copy)]
enum Place {
    New,
    Object(usize),
    Status(usize),
}

impl<'a> Search<'a> {
    pub(super) fn new(
        definition: &'a Definition,
        version: &'a Version,
        exchange: &'a Exchange,
        seed: u64,
    ) -> Self {
        let seen = vec![Seen::default(); version.rules.len()];
        let rng = Rng::with_seed(seed);
        Self { definition, version, exchange, rng, pool: Vec::new(), stored: Vec::new(), seen }
    }

    /// Sends `count` objects.
    pub(super) async fn run(mut self, count: usize, tally: &mut Tally) {
        let mut sent = 0;
        while sent < count {
            let attempts: Vec<Attempt> = (0..ROUND.min(count - sent)).map(|_| self.attempt()).collect();
            let replies = join_all(attempts.iter().map(|attempt| self.send(attempt))).await;
            sent += attempts.len();
            for (attempt, replies) in attempts.into_iter().zip(replies) {
                self.learn(attempt, &replies, tally);
            }
            for attempt in self.writes() {
                let replies = self.send(&attempt).await;
                sent += 1;
                self.store(&attempt, &replies);
                self.learn(attempt, &replies, tally);
            }
        }
        for stored in &self.stored {
            let path = format!("{}/{}", self.definition.path(self.version), stored.name);
            self.exchange.same("DELETE", &path, &Value::Null).await;
        }
        tally.rules(self.definition, self.version, &self.seen);
    }

    async fn send(&self, attempt: &Attempt) -> Replies {
        let (method, path) = self.request(attempt);
        let [ours, theirs] = self.bodies(attempt);
        self.exchange.send(method, &path, [&ours, &theirs]).await
    }

    /// Returns the method and the path of a request.
    fn request(&self, attempt: &Attempt) -> (&'static str, String) {
        let path = self.definition.path(self.version);
        let dry = if attempt.is_kept { "" } else { "?dryRun=All" };
        let name = |index: usize| &self.stored[index].name;
        match attempt.place {
            Place::New => ("POST", format!("{path}{dry}")),
            Place::Object(index) => ("PUT", format!("{path}/{}{dry}", name(index))),
            Place::Status(index) => ("PUT", format!("{path}/{}/status{dry}", name(index))),
        }
    }

    /// Returns the bodies of a request for each server, with the resource versions of the server.
    fn bodies(&self, attempt: &Attempt) -> [Value; 2] {
        let (Place::Object(index) | Place::Status(index)) = attempt.place else {
            return [attempt.object.clone(), attempt.object.clone()];
        };
        self.stored[index].versions.clone().map(|version| {
            let mut object = attempt.object.clone();
            object["metadata"]["resourceVersion"] = version;
            object
        })
    }

    /// Makes an object for a rule that no object has satisfied or violated yet, or for any rule.
    fn attempt(&mut self) -> Attempt {
        let rules = &self.version.rules;
        let open: Vec<usize> = (0..rules.len()).filter(|index| !self.seen[*index].is_complete()).collect();
        let aim = match self.rng.u8(..10) {
            0..6 => self.rng.choice(&open).copied().or_else(|| self.rng.choice(0..rules.len())),
            6..8 => self.rng.choice(0..rules.len()),
            _ => None,
        };
        let aim = aim.map(|index| &rules[index]);
        let place = self.place(aim);
        let words = self.words(aim);
        let mut generator = Generator::new(self.rng.fork(), &words);
        let steps = aim.map_or(&[][..], |rule| &rule.steps[..]);
        let schema = &self.version.schema;
        let change = if self.rng.u8(..5) == 0 { Change::Any } else { Change::Valid };
        let mut changes = self.rng.usize(1..=3);
        let mut object = match place {
            Place::New if self.pool.is_empty() || self.rng.u8(..6) == 0 => {
                changes = if change == Change::Valid { 0 } else { changes };
                let size = self.rng.usize(1..40);
                generator.value(schema, size, steps)
            }
            Place::New => self.start(aim),
            Place::Object(index) | Place::Status(index) => self.stored[index].object.clone(),
        };
        let status = [Step::Property("status".to_owned())];
        let steps = if matches!(place, Place::Status(_)) && steps.is_empty() { &status[..] } else { steps };
        for _ in 0..changes {
            mutate(&mut object, schema, steps, &mut generator, change);
        }
        let name = match place {
            Place::New => self.name(),
            Place::Object(index) | Place::Status(index) => self.stored[index].name.clone(),
        };
        let object = self.definition.complete(self.version, object, &name);
        Attempt { place, object, is_kept: false }
    }

    fn place(&mut self, aim: Option<&Rule>) -> Place {
        let Some(index) = self.rng.choice(0..self.stored.len()) else { return Place::New };
        let is_of_status =
            aim.is_some_and(|rule| rule.steps.first() == Some(&Step::Property("status".to_owned())));
        if self.version.has_status && (is_of_status || self.rng.u8(..20) == 0) {
            return Place::Status(index);
        }
        let updates = if aim.is_some_and(|rule| rule.uses_old) { 8 } else { 3 };
        if self.rng.u8(..10) < updates { Place::Object(index) } else { Place::New }
    }

    /// Returns an accepted object, with a value for a rule if possible.
    fn start(&mut self, aim: Option<&Rule>) -> Value {
        let mut object = Value::Null;
        for _ in 0..6 {
            let index = self.rng.usize(..self.pool.len());
            object = self.pool[index].clone();
            if aim.is_none_or(|rule| rule.applies(&object)) {
                break;
            }
        }
        object
    }

    /// Returns the words of the rules at a schema, above, and below.
    fn words(&self, aim: Option<&Rule>) -> Vec<String> {
        let rules = self.version.rules.iter();
        let near = rules.filter(|rule| {
            aim.is_none_or(|aim| aim.steps.starts_with(&rule.steps) || rule.steps.starts_with(&aim.steps))
        });
        near.flat_map(|rule| rule.words.iter().cloned()).collect()
    }

    /// Returns the name of a new object. Some rules permit only some names.
    fn name(&mut self) -> String {
        let mut rules = self.version.rules.iter();
        let of_names = rules.find(|rule| rule.steps.is_empty() && rule.source.contains("metadata.name"));
        match of_names.and_then(|rule| self.rng.choice(&rule.words)) {
            Some(word) if self.rng.u8(..4) > 0 => word.clone(),
            _ => "object".to_owned(),
        }
    }

    /// Counts the replies, and remembers accepted objects.
    fn learn(&mut self, attempt: Attempt, replies: &Replies, tally: &mut Tally) {
        let (method, path) = self.request(&attempt);
        let verdict = self.verdict(&attempt, replies);
        tally.object(self.definition, &format!("{method} {path}"), &attempt.object, replies, &verdict);
        if replies.are_accepted() && matches!(attempt.place, Place::New) {
            if self.pool.len() >= POOL {
                let index = self.rng.usize(..self.pool.len());
                if !verdict.is_new && self.rng.u8(..4) > 0 {
                    return;
                }
                self.pool.swap_remove(index);
            }
            self.pool.push(attempt.object);
        }
    }

    /// Judges which rules an object has satisfied and violated.
    fn verdict(&mut self, attempt: &Attempt, replies: &Replies) -> Verdict {
        let old = match attempt.place {
            Place::New => None,
            Place::Object(index) | Place::Status(index) => Some(&self.stored[index].object),
        };
        let real = &replies.real;
        let causes = real.body["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
        let mut verdict = Verdict::new(real);
        let mut of_rules = 0;
        for (rule, seen) in self.version.rules.iter().zip(&mut self.seen) {
            if verdict.is_accepted {
                let has_old = || old.is_some_and(|old| rule.applies(old));
                let satisfied = rule.applies(&real.body) && (!rule.uses_old || has_old());
                verdict.is_new |= satisfied && !seen.satisfied;
                seen.satisfied |= satisfied;
            } else {
                let violations =
                    causes.iter().filter(|cause| rule.is_violated(&attempt.object, cause)).count();
                of_rules += violations;
                seen.violated |= violations > 0;
            }
        }
        verdict.breaks_rules = of_rules > 0;
        verdict.is_valid = verdict.is_accepted || real.code == 422 && of_rules >= causes.len();
        verdict
    }

    /// Returns the writes after a round: a new object, or the change of a stored object.
    fn writes(&mut self) -> Vec<Attempt> {
        let open = self.version.rules.iter().zip(&self.seen);
        let open = open.filter(|(rule, seen)| rule.uses_old && !seen.is_complete()).map(|(rule, _)| rule);
        let aim = self.rng.choice(open.collect::<Vec<_>>());
        if self.pool.is_empty() {
            return Vec::new();
        }
        let mut object = self.start(aim);
        let count = self.stored.len();
        let (place, name) = if count < STORED {
            (Place::New, format!("stored-{count}"))
        } else {
            let index = self.rng.usize(..count);
            let stored = &self.stored[index];
            let is_of_status =
                self.version.has_status && aim.map_or(self.rng.u8(..4) == 0, Rule::is_of_status);
            if is_of_status {
                let status = object["status"].take();
                object = stored.object.clone();
                object["status"] = status;
            }
            let place = if is_of_status { Place::Status(index) } else { Place::Object(index) };
            (place, stored.name.clone())
        };
        let object = self.definition.complete(self.version, object, &name);
        vec![Attempt { place, object, is_kept: true }]
    }

    /// Remembers a stored object.
    fn store(&mut self, attempt: &Attempt, replies: &Replies) {
        if !replies.are_accepted() {
            return;
        }
        let name = attempt.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let stored = Stored { name, object: replies.real.body.clone(), versions: replies.versions.clone() };
        match attempt.place {
            Place::New => self.stored.push(stored),
            Place::Object(index) | Place::Status(index) => self.stored[index] = stored,
        }
    }
}
