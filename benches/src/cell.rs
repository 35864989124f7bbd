//! The results of a run: a line of JSON on standard output. The peers print the same format.

use std::collections::BTreeMap;

/// Named numbers. `rate` is per second, `seconds` is a duration, `peak` and `steady` are bytes of the whole process.
#[derive(Default, serde::Serialize)]
pub(crate) struct Cell(BTreeMap<&'static str, f64>);

impl Cell {
    pub(crate) fn rate(per_second: f64) -> Self {
        Self::default().with("rate", per_second)
    }

    pub(crate) fn with(mut self, name: &'static str, value: f64) -> Self {
        self.0.insert(name, value);
        self
    }

    /// Prints the line. Adds the peak memory of the process if the run has not set the peak.
    pub(crate) fn print(mut self) {
        self.0.entry("peak").or_insert_with(|| crate::process::peak() as f64);
        println!("{}", serde_json::to_string(&self.0).expect("numbers are JSON"));
    }
}
