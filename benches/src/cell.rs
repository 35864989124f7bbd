//! What one run of one contender has measured: a line of JSON on standard output, the same for every peer.

use std::collections::BTreeMap;

/// Named numbers. `rate` is per second, `seconds` a time, `peak` and `steady` bytes of the whole process.
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

    /// Prints the line, with the process's peak memory so far unless the run has said another.
    pub(crate) fn print(mut self) {
        self.0.entry("peak").or_insert_with(|| crate::process::peak() as f64);
        println!("{}", serde_json::to_string(&self.0).expect("numbers are JSON"));
    }
}
