//! Generated objects that resemble the objects of a large cluster. No object comes from a real cluster.

mod chart;
mod cluster;
mod database;
mod json;
mod pod;
mod workload;

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytes::BytesMut;
use serde_json::value::RawValue;

pub(crate) use self::cluster::Charts;
use self::cluster::Diversity;
use crate::random::Random;

/// The kind of the objects.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Custom resources of 1.3 KB, with 38 % managedFields, without owners.
    Databases,
    /// Pods of 8.5 KB, with 43 % managedFields.
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

/// The origin of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Generated objects of a few structures.
    Uniform,
    /// Generated pods of many charts.
    Diverse,
    /// A file of JSON lines: objects, and then watch events of the type `MODIFIED`.
    File(PathBuf),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(match name {
            "uniform" => Self::Uniform,
            "diverse" => Self::Diverse,
            file => Self::File(file.into()),
        })
    }
}

/// Objects, and later states of the same objects.
pub(crate) struct Corpus {
    pub(crate) objects: Objects,
    /// At most a single change of each object.
    pub(crate) changes: Objects,
    /// The diversity of generated pods.
    pub(crate) diversity: Option<Diversity>,
}

/// Objects as JSON in a single buffer, separated by commas.
#[derive(Default)]
pub(crate) struct Objects {
    text: BytesMut,
    ends: Vec<usize>,
}

const FIRST_REVISION: u64 = 100_000_000;

/// The number of pods of charts that are generated together.
const TOGETHER: usize = 20_000;

impl Corpus {
    /// Returns the objects of a source, and `changes` of the objects. A file yields all objects of the file.
    pub(crate) fn new(source: &Source, kind: Kind, count: usize, changes: usize, seed: u64) -> Self {
        match (source, kind) {
            (Source::File(file), _) => Self::read(file),
            (Source::Diverse, Kind::Pods) => {
                let mut random = Random::new(seed);
                let charts = Charts::new(&mut random);
                Self::of_charts(&mut random, &charts, count, changes)
            }
            _ => Self {
                objects: Objects::uniform(kind, count, seed),
                changes: Objects::at_revision(kind, changes.min(count), seed, 2 * FIRST_REVISION),
                diversity: None,
            },
        }
    }

    /// Returns pods of charts, and `changes` of the pods.
    pub(crate) fn of_charts(random: &mut Random, charts: &Charts, count: usize, changes: usize) -> Self {
        let mut corpus = Self {
            objects: Objects::default(),
            changes: Objects::default(),
            diversity: Some(Diversity::default()),
        };
        // Pods that are not serialized yet take much more memory.
        for start in (0..count).step_by(TOGETHER) {
            let range = start..count.min(start + TOGETHER);
            let changes = share(changes, &range, count);
            corpus.push_charts(random, charts, range, changes);
        }
        corpus
    }

    fn push_charts(&mut self, random: &mut Random, charts: &Charts, range: Range<usize>, changes: usize) {
        let (mut pods, diversity) =
            cluster::pods(random, charts, range.len(), range.start / cluster::PODS_OF_A_NAMESPACE);
        let mut order: Vec<usize> = (0..pods.len()).collect();
        (1..pods.len()).for_each(|at| order.swap(at, random.below(at as u64 + 1) as usize));
        let first = FIRST_REVISION + range.start as u64;
        for (pod, place) in pods.iter().zip(&order) {
            // The revisions have no order in a list.
            self.objects.push(pod.json(first + *place as u64).as_bytes());
        }
        for (number, &place) in order.iter().take(changes).enumerate() {
            pods[place].change(random);
            let revision = FIRST_REVISION + first + number as u64;
            self.changes.push(pods[place].json(revision).as_bytes());
        }
        let all = self.diversity.get_or_insert_default();
        all.workloads += diversity.workloads;
        all.structures += diversity.structures;
    }

    /// Reads a file.
    ///
    /// # Panics
    /// The file cannot be read, or a line is not JSON.
    fn read(file: &Path) -> Self {
        #[derive(serde::Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            object: Option<&'a RawValue>,
            #[serde(default)]
            metadata: Metadata,
        }
        #[derive(Default, serde::Deserialize)]
        struct Metadata {
            #[serde(default)]
            uid: String,
        }
        let text = std::fs::read_to_string(file).expect("the corpus can be read");
        let (mut objects, mut changes) = (Objects::default(), Objects::default());
        let mut changed = HashSet::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let parsed: Line<'_> = serde_json::from_str(line).expect("a line of the corpus is JSON");
            match parsed.object {
                None => objects.push(line.as_bytes()),
                Some(object) => {
                    let inner: Line<'_> = serde_json::from_str(object.get()).expect("an object");
                    if changed.insert(inner.metadata.uid) {
                        changes.push(object.get().as_bytes());
                    }
                }
            }
        }
        Self { objects, changes, diversity: None }
    }

    /// Returns the resource version of the list, later than every generated object and earlier than every
    /// change.
    pub(crate) fn revision() -> u64 {
        2 * FIRST_REVISION - 1
    }
}

/// Returns how many of the changes of `count` objects are changes of the objects in a range. The sum over all ranges is `changes`.
fn share(changes: usize, range: &Range<usize>, count: usize) -> usize {
    changes * range.end / count - changes * range.start / count
}

impl Objects {
    /// Returns the objects of a uniform corpus.
    pub(crate) fn uniform(kind: Kind, count: usize, seed: u64) -> Self {
        Self::at_revision(kind, count, seed, FIRST_REVISION)
    }

    fn at_revision(kind: Kind, count: usize, seed: u64, revision: u64) -> Self {
        let mut random = Random::new(seed);
        let mut cluster = pod::Cluster::new(&mut random);
        let mut objects = Self::default();
        for number in 0..count as u64 {
            let revision = revision + number;
            let object = match kind {
                Kind::Databases => database::database(&mut random, number, revision),
                Kind::Pods => pod::pod(&mut random, &mut cluster, revision),
            };
            objects.push(object.as_bytes());
        }
        objects
    }

    fn push(&mut self, object: &[u8]) {
        if !self.ends.is_empty() {
            self.text.extend_from_slice(b",");
        }
        self.text.extend_from_slice(object);
        self.ends.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the objects of a range, separated by commas.
    pub(crate) fn items(&self, range: Range<usize>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        &self.text[self.start(range.start)..self.ends[range.end - 1]]
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
    use super::{Corpus, Kind, Objects, Source, share};
    use serde_json::Value;

    /// Returns the average size in bytes, and the share of managedFields in percent.
    fn shape(objects: &Objects) -> (f64, f64) {
        let managed: usize = (0..objects.len())
            .map(|number| {
                let object: Value = serde_json::from_slice(objects.object(number)).expect("JSON");
                object["metadata"]["managedFields"].to_string().len()
            })
            .sum();
        let bytes = objects.bytes() + 1 - objects.len();
        (bytes as f64 / objects.len() as f64, 100.0 * managed as f64 / bytes as f64)
    }

    fn assert_near((size, managed): (f64, f64), expected: (f64, f64), tolerance: f64) {
        assert!((size / expected.0 - 1.0).abs() < tolerance, "{size} bytes instead of {}", expected.0);
        assert!((managed - expected.1).abs() < 100.0 * tolerance, "{managed} % instead of {}", expected.1);
    }

    /// Published measurements of other libraries use objects of this size.
    #[test]
    fn the_uniform_objects_have_the_published_shape() {
        assert_near(shape(&Objects::uniform(Kind::Databases, 2000, 42)), (1309.0, 38.4), 0.01);
        assert_near(shape(&Objects::uniform(Kind::Pods, 2000, 42)), (8524.0, 42.7), 0.01);
    }

    #[test]
    fn the_diverse_pods_resemble_those_of_a_cluster() {
        let corpus = Corpus::new(&Source::Diverse, Kind::Pods, 5000, 1000, 42);
        assert_eq!((corpus.objects.len(), corpus.changes.len()), (5000, 1000));
        assert_near(shape(&corpus.objects), (8800.0, 37.0), 0.1);
        let diversity = corpus.diversity.expect("generated");
        assert_eq!(diversity.workloads, 1750);
        assert!((1000..2000).contains(&diversity.structures), "{diversity:?}");
    }

    #[test]
    fn all_changes_are_generated() {
        for changes in [0, 1, 7, 150_000] {
            let ranges = (0..150_000).step_by(20_000).map(|start| start..150_000.min(start + 20_000));
            assert_eq!(ranges.map(|range| share(changes, &range, 150_000)).sum::<usize>(), changes);
        }
    }

    #[test]
    fn a_file_has_objects_and_changes() {
        let file = std::env::temp_dir().join(format!("windlass-corpus-{}.jsonl", std::process::id()));
        let lines = [
            r#"{"kind":"Pod","metadata":{"uid":"a"}}"#,
            r#"{"kind":"Pod","metadata":{"uid":"b"}}"#,
            r#"{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"uid":"b","resourceVersion":"2"}}}"#,
            r#"{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"uid":"b","resourceVersion":"3"}}}"#,
        ];
        std::fs::write(&file, lines.join("\n")).expect("written");
        let corpus = Corpus::new(&Source::File(file.clone()), Kind::Pods, 0, 0, 0);
        std::fs::remove_file(file).expect("removed");
        assert_eq!(corpus.objects.items(0..2), lines[..2].join(",").as_bytes());
        assert_eq!(corpus.changes.len(), 1);
        assert_eq!(
            corpus.changes.object(0),
            br#"{"kind":"Pod","metadata":{"uid":"b","resourceVersion":"2"}}"#
        );
    }
}
