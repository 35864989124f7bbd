//! The recording of a script: a text for each of its steps.

use std::path::PathBuf;
use std::{env, fs};

/// Names a kubeconfig: the scripts run on its server.
pub(super) const KUBECONFIG: &str = "WINDLASS_TEST_KUBECONFIG";
/// Set to any value, together with [`KUBECONFIG`], it makes the script write its recording anew.
const RECORD: &str = "WINDLASS_TEST_RECORD";
/// Begins the title of a step.
const TITLE: &str = "## ";

/// The steps of a script: what they must show, or what is being recorded.
pub(super) struct Recording {
    path: PathBuf,
    expected: Vec<(String, String)>,
    recorded: String,
    next: usize,
    pub(super) records: bool,
}

impl Recording {
    /// Reads the recording of `script`.
    pub(super) fn open(script: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/scripts/recorded");
        let path = PathBuf::from(folder).join(format!("{script}.txt"));
        let records = env::var_os(KUBECONFIG).is_some() && env::var_os(RECORD).is_some();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let steps = text.split(TITLE).skip(1).map(|step| step.split_once('\n').unwrap_or((step, "")));
        let expected = steps.map(|(title, shown)| (title.to_owned(), shown.to_owned())).collect();
        Self { path, expected, recorded: String::new(), next: 0, records }
    }

    /// Returns what the next step must show.
    pub(super) fn expect(&mut self, title: &str) -> String {
        let at = self.next;
        self.next += 1;
        match self.expected.get(at) {
            Some((recorded, shown)) if recorded == title => shown.clone(),
            other => panic!("step {at} is {title:?}, but the recording has {:?}", other.map(|step| &step.0)),
        }
    }

    /// Adds what a step shows.
    pub(super) fn add(&mut self, title: &str, shown: &str) {
        self.recorded.extend([TITLE, title, "\n", shown]);
    }

    /// Writes the recording, if the script is being recorded.
    pub(super) fn close(&self) {
        if self.records {
            fs::write(&self.path, &self.recorded).unwrap();
        }
    }
}
