//! The result of `go test -json`.

use std::collections::BTreeMap;

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

/// The result of a test run.
#[derive(Default)]
pub(super) struct Report {
    packages: BTreeMap<String, Counts>,
    /// What failed, with its output. Of a test that has subtests, only the subtests.
    failures: BTreeMap<String, String>,
    output: BTreeMap<String, String>,
}

impl Report {
    /// Reads the events of a run; lines of another form are ignored.
    pub(super) fn read(text: &str) -> Self {
        let mut report = Self::default();
        for event in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            report.add(event);
        }
        let parents: Vec<String> = report
            .failures
            .keys()
            .filter(|name| report.failures.keys().any(|other| other.starts_with(&format!("{name}/"))))
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

    pub(super) fn print(&self, verbose: bool) {
        for (name, output) in &self.failures {
            println!("failed: {name}");
            if verbose {
                println!("{output}");
            }
        }
        let mut all = Counts::default();
        for (package, counts) in self.packages.iter().filter(|(_, counts)| counts.passed + counts.failed > 0)
        {
            println!(
                "{:>5} passed {:>4} failed {:>3} skipped  {package}",
                counts.passed, counts.failed, counts.skipped
            );
            all.passed += counts.passed;
            all.failed += counts.failed;
            all.skipped += counts.skipped;
        }
        println!(
            "{:>5} passed {:>4} failed {:>3} skipped  (subtests counted)",
            all.passed, all.failed, all.skipped
        );
    }

    pub(super) fn is_success(&self) -> bool {
        self.failures.is_empty() && !self.packages.is_empty()
    }
}
