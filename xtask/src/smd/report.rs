//! The result of `go test -json`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// An event of `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    output: String,
}

/// The tests of a package, with subtests.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5} passed {:>4} failed {:>3} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The result of a test run.
#[derive(Default)]
pub(crate) struct Report {
    packages: BTreeMap<String, Counts>,
    /// The failures, with output. A package or a test with failed subtests is left out.
    failures: BTreeMap<String, String>,
    output: BTreeMap<String, String>,
}

impl Report {
    /// Reads the events of a run; lines of another form are ignored.
    pub(crate) fn read(text: &str) -> Self {
        let mut report = Self::default();
        for event in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            report.add(event);
        }
        let parents: Vec<String> = report
            .failures
            .keys()
            .filter(|name| {
                let is_below = |other: &String| {
                    other.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['/', ' ']))
                };
                report.failures.keys().any(is_below)
            })
            .cloned()
            .collect();
        parents.iter().for_each(|name| _ = report.failures.remove(name));
        report
    }

    fn add(&mut self, event: Event) {
        let name = match &event.test {
            Some(test) => format!("{} {test}", event.package),
            None => event.package.clone(),
        };
        let counts = self.packages.entry(event.package).or_default();
        let is_test = usize::from(event.test.is_some());
        match event.action.as_str() {
            "pass" => counts.passed += is_test,
            "skip" => counts.skipped += is_test,
            "fail" => {
                counts.failed += is_test;
                let output = self.output.remove(&name).unwrap_or_default();
                self.failures.insert(name, output);
            }
            "output" => self.output.entry(name).or_default().push_str(&event.output),
            "build-output" => self.failures.entry(name).or_default().push_str(&event.output),
            _ => {}
        }
    }

    /// Prints the failures and the counts. Returns the number of failed tests and packages without an
    /// `expected` name at the end.
    pub(crate) fn print(&self, expected: &[&str], verbose: bool) -> usize {
        let mut unexpected = 0;
        for (name, output) in &self.failures {
            if expected.iter().any(|expected| name.ends_with(expected)) {
                println!("failed, as expected: {name}");
                continue;
            }
            unexpected += 1;
            println!("failed: {name}");
            if verbose {
                println!("{output}");
            }
        }
        let mut all = Counts::default();
        for (package, counts) in &self.packages {
            if counts.passed + counts.failed > 0 {
                println!("{counts}  {package}");
            }
            all.passed += counts.passed;
            all.failed += counts.failed;
            all.skipped += counts.skipped;
        }
        println!("{all}  all, with tests of which a subtest failed");
        // A run without tests is no success.
        unexpected + usize::from(all.passed == 0)
    }
}
