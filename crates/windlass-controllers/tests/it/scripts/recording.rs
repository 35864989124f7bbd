//! The recording of a script: a text for each step.

use std::path::PathBuf;
use std::{env, fs};

/// Names a kubeconfig: the scripts run on the server of the kubeconfig.
pub(super) const KUBECONFIG: &str = "WINDLASS_TEST_KUBECONFIG";
/// Any value, together with [`KUBECONFIG`], makes the script write a new recording.
const RECORD: &str = "WINDLASS_TEST_RECORD";
/// Begins the title of a step.
const TITLE: &str = "## ";

/// The steps of a script: the expected text, or the text of a new recording.
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

    /// Returns the expected text of the next step.
    pub(super) fn expect(&mut self, title: &str) -> String {
        let at = self.next;
        self.next += 1;
        match self.expected.get(at) {
            Some((recorded, shown)) if recorded == title => shown.clone(),
            other => panic!("step {at} is {title:?}, but the recording has {:?}", other.map(|step| &step.0)),
        }
    }

    /// Adds the text of a step.
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
