//! Generated objects that resemble those of a large cluster; none comes from a real one.

mod database;
mod pod;

use crate::random::Random;
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// The kind of the objects.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Custom resources of 1.3 KB, 38 % of which are managedFields, without owners.
    Databases,
    /// Pods of 8.5 KB, 43 % of which are managedFields.
    Pods,
}

impl Kind {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Databases => "db.example.com/v1",
            Self::Pods => "v1",
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Databases => "Database",
            Self::Pods => "Pod",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Databases => "/apis/db.example.com/v1/databases",
            Self::Pods => "/api/v1/pods",
        }
    }
}

/// Objects as JSON in a single buffer, separated by commas.
pub(crate) struct Corpus {
    pub(crate) kind: Kind,
    text: Bytes,
    ends: Vec<usize>,
}

const FIRST_REVISION: u64 = 100_000_000;

impl Corpus {
    pub(crate) fn new(kind: Kind, count: usize, seed: u64) -> Self {
        Self::at_revision(kind, count, seed, FIRST_REVISION)
    }

    /// Returns the same objects at later resource versions.
    pub(crate) fn changed(kind: Kind, count: usize, seed: u64) -> Self {
        Self::at_revision(kind, count, seed, 2 * FIRST_REVISION)
    }

    /// Returns the resource version of the list, which is later than every object and earlier than every change.
    pub(crate) fn revision() -> u64 {
        2 * FIRST_REVISION - 1
    }

    fn at_revision(kind: Kind, count: usize, seed: u64, revision: u64) -> Self {
        let mut random = Random::new(seed);
        let mut cluster = pod::Cluster::new(&mut random);
        let mut text = BytesMut::new();
        let ends = (0..count as u64)
            .map(|number| {
                if number > 0 {
                    text.extend_from_slice(b",");
                }
                let revision = revision + number;
                let object = match kind {
                    Kind::Databases => database::database(&mut random, number, revision),
                    Kind::Pods => pod::pod(&mut random, &mut cluster, revision),
                };
                text.extend_from_slice(object.as_bytes());
                text.len()
            })
            .collect();
        Self { kind, text: text.freeze(), ends }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the objects of a range, separated by commas.
    pub(crate) fn items(&self, range: Range<usize>) -> Bytes {
        if range.is_empty() {
            return Bytes::new();
        }
        self.text.slice(self.start(range.start)..self.ends[range.end - 1])
    }

    pub(crate) fn object(&self, number: usize) -> &[u8] {
        &self.text[self.start(number)..self.ends[number]]
    }

    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before] + 1)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }
}

const NAMES: [&str; 10] = [
    "payments",
    "orders",
    "catalog",
    "search",
    "auth",
    "billing",
    "inventory",
    "shipping",
    "reco",
    "gateway",
];
const PARTS: [&str; 6] = ["api", "worker", "cron", "web", "cache", "consumer"];

fn app(random: &mut Random) -> String {
    format!("{}-{}", random.pick(&NAMES), random.pick(&PARTS))
}

fn namespace(random: &mut Random) -> String {
    format!("team-{:02}-{}", random.below(25), random.pick(&["prod", "staging"]))
}

#[cfg(test)]
mod tests {
    use super::{Corpus, Kind};
    use serde_json::Value;

    /// Returns the average size in bytes, and the share of managedFields in percent.
    fn shape(kind: Kind) -> (f64, f64) {
        let corpus = Corpus::new(kind, 2000, 42);
        let managed: usize = (0..corpus.len())
            .map(|number| {
                let object: Value = serde_json::from_slice(corpus.object(number)).expect("JSON");
                object["metadata"]["managedFields"].to_string().len()
            })
            .sum();
        let bytes = corpus.bytes() + 1 - corpus.len();
        (bytes as f64 / corpus.len() as f64, 100.0 * managed as f64 / bytes as f64)
    }

    /// Published measurements of other libraries use objects of this size.
    #[test]
    fn the_objects_have_the_published_shape() {
        let near = |(size, managed): (f64, f64), expected: (f64, f64)| {
            assert!((size / expected.0 - 1.0).abs() < 0.01, "{size} bytes instead of {}", expected.0);
            assert!((managed - expected.1).abs() < 0.5, "{managed} % instead of {}", expected.1);
        };
        near(shape(Kind::Databases), (1309.0, 38.4));
        near(shape(Kind::Pods), (8524.0, 42.7));
    }
}
