//! The counts and differences of a run.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program prints its results and its progress"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::definition::{Definition, Version};
use super::exchange::Replies;
use crate::compare::compare;
use crate::known::Known;
use crate::op::Op;
use crate::outcome::Outcome;

/// The folder for the requests that show differences.
const OUT: &str = "target/twin/corpus";

/// The results of a rule until now.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) satisfied: bool,
    pub(super) violated: bool,
}

impl Seen {
    pub(super) fn is_complete(self) -> bool {
        self.satisfied && self.violated
    }
}

/// The verdict of the real server on an object.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) is_accepted: bool,
    /// True if the rules were evaluated.
    pub(super) reaches_rules: bool,
    /// True if the object is valid by the schema.
    pub(super) is_valid: bool,
    pub(super) breaks_rules: bool,
    /// True if the object is the first object that satisfies a rule.
    pub(super) is_new: bool,
}

impl Verdict {
    pub(super) fn new(reply: &Outcome) -> Self {
        let is_accepted = (200..300).contains(&reply.code);
        let message = reply.body["message"].as_str().unwrap_or_default();
        let reaches_rules = is_accepted || reply.code == 422 && !message.contains(NOT_CHECKED);
        Self { is_accepted, reaches_rules, ..Self::default() }
    }
}

/// A part of the message for an object whose rules were not evaluated.
const NOT_CHECKED: &str = "some validation rules were not checked";

/// The counts of a run.
pub(super) struct Tally {
    start: Instant,
    known: Known,
    definitions: usize,
    objects: usize,
    accepted: usize,
    reached: usize,
    valid: usize,
    broken: usize,
    updates: usize,
    explained: usize,
    /// The number of requests for each difference.
    found: BTreeMap<String, usize>,
    rules: usize,
    satisfied: usize,
    violated: usize,
    /// The results of each distinct rule.
    distinct: BTreeMap<String, Seen>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            known: Known::list(),
            definitions: 0,
            objects: 0,
            accepted: 0,
            reached: 0,
            valid: 0,
            broken: 0,
            updates: 0,
            explained: 0,
            found: BTreeMap::new(),
            rules: 0,
            satisfied: 0,
            violated: 0,
            distinct: BTreeMap::new(),
        }
    }
}

impl Tally {
    pub(super) fn definition(&mut self, definition: &Definition, replies: &Replies) {
        self.definitions += usize::from(replies.are_accepted());
        let run = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.compare(definition, run, &definition.json, replies);
    }

    /// Counts an object and the replies.
    pub(super) fn object(
        &mut self,
        definition: &Definition,
        run: &str,
        object: &Value,
        replies: &Replies,
        verdict: &Verdict,
    ) {
        self.objects += 1;
        self.updates += usize::from(run.starts_with("PUT"));
        self.accepted += usize::from(verdict.is_accepted);
        self.reached += usize::from(verdict.reaches_rules);
        self.valid += usize::from(verdict.is_valid);
        self.broken += usize::from(verdict.breaks_rules);
        self.compare(definition, run, object, replies);
    }

    fn compare(&mut self, definition: &Definition, run: &str, object: &Value, replies: &Replies) {
        let op = Op { run: run.to_owned(), ..Op::default() };
        let (mut is_explained, mut new) = (false, BTreeSet::new());
        for difference in compare(&op, &replies.embedded, &replies.real) {
            if self.known.covers(&difference.signature) {
                is_explained = true;
                continue;
            }
            let count = self.found.entry(difference.signature.clone()).or_default();
            *count += 1;
            if *count == 1 {
                new.insert(format!("{}\n{difference}", difference.signature));
            }
        }
        self.explained += usize::from(is_explained);
        if !new.is_empty() {
            report(self.found.len(), definition, run, object, replies, &new);
        }
    }

    /// Counts the rules of a version.
    pub(super) fn rules(&mut self, definition: &Definition, version: &Version, seen: &[Seen]) {
        for (rule, seen) in version.rules.iter().zip(seen) {
            self.rules += 1;
            self.satisfied += usize::from(seen.satisfied);
            self.violated += usize::from(seen.violated);
            let distinct = self.distinct.entry(rule.source.clone()).or_default();
            distinct.satisfied |= seen.satisfied;
            distinct.violated |= seen.violated;
            if std::env::var_os("WINDLASS_CORPUS_RULES").is_some() && !seen.is_complete() {
                let (satisfied, violated) = (seen.satisfied, seen.violated);
                let (name, steps) = (&definition.name, &rule.steps);
                println!("{name} {steps:?} satisfied {satisfied} violated {violated}: {}", rule.source);
            }
        }
    }

    /// Prints the progress after a CRD.
    pub(super) fn progress(&self, number: usize, of: usize, definition: &Definition) {
        eprintln!(
            "{number}/{of} {}: {} objects in {:.0} s, {} differences",
            definition.name,
            self.objects,
            self.start.elapsed().as_secs_f32(),
            self.found.len()
        );
    }

    /// Prints the counts.
    pub(super) fn print(&self) {
        let share = |part: usize| part as f64 * 100.0 / self.objects.max(1) as f64;
        println!("CRDs on both servers:  {}", self.definitions);
        println!("objects:               {} in {:.0} s", self.objects, self.start.elapsed().as_secs_f32());
        println!("  updates:             {} ({:.1} %)", self.updates, share(self.updates));
        println!("  accepted:            {} ({:.1} %)", self.accepted, share(self.accepted));
        println!("  rules evaluated:     {} ({:.1} %)", self.reached, share(self.reached));
        println!("  valid by the schema: {} ({:.1} %)", self.valid, share(self.valid));
        println!("  breaking a rule:     {} ({:.1} %)", self.broken, share(self.broken));
        println!(
            "rules:                 {}, {} satisfied and {} violated at least once",
            self.rules, self.satisfied, self.violated
        );
        let count = |is: fn(&Seen) -> bool| self.distinct.values().filter(|seen| is(seen)).count();
        println!(
            "distinct rules:        {}, {} satisfied and {} violated at least once, {} both",
            self.distinct.len(),
            count(|seen| seen.satisfied),
            count(|seen| seen.violated),
            count(|seen| seen.is_complete())
        );
        println!("known differences:     {} replies", self.explained);
        println!("differences:           {}", self.found.len());
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        found.iter().for_each(|(signature, count)| println!("{count:6}  {signature}"));
    }

    /// Returns whether the servers agree.
    pub(super) fn agrees(&self) -> bool {
        self.found.is_empty()
    }
}

/// Prints the first request that shows a difference, and writes the request and the replies to a file.
fn report(
    number: usize,
    definition: &Definition,
    run: &str,
    object: &Value,
    replies: &Replies,
    differences: &BTreeSet<String>,
) {
    let file = format!("{OUT}/{number}.json");
    let content = json!({
        "definition": definition.json, "run": run, "body": object,
        "embedded": replies.embedded.body, "real": replies.real.body,
    });
    let written = fs::create_dir_all(OUT).and_then(|()| fs::write(&file, content.to_string()));
    differences.iter().for_each(|difference| println!("{difference}"));
    match written {
        Ok(()) => println!("  request:  {file}\n"),
        Err(error) => println!("  cannot write {file}: {error}\n"),
    }
}
