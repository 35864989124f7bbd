//! `cargo xtask envtest`: runs the test suites of controller-runtime on windlass's API server. The suites
//! start the server as `kube-apiserver` and `etcd`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, control_plane, go_module, project};

const MODULE: &str = "sigs.k8s.io/controller-runtime";
/// The tests of this package download older releases of kube-apiserver.
const NEEDS_DOWNLOADS: &str = "pkg/client/apiutil";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Version of controller-runtime
    #[arg(long, default_value = "v0.25.2")]
    version: String,
    /// Run the suites of this package only, such as ./pkg/client
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Use the kube-apiserver and etcd of this folder instead, such as the programs of `cargo xtask
    /// control-plane build`
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
}

/// How the specs of a package ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Specs {
    passed: u32,
    failed: u32,
}

pub(crate) fn run(args: &Args) -> Result {
    let folder = control_plane::cache_folder()?.join(format!("envtest-{}", args.version));
    let module = folder.join("module");
    go_module::copy(&format!("{MODULE}@{}", args.version), &module)?;
    let assets = match &args.assets {
        Some(assets) => fs::canonicalize(assets)?,
        None => write_assets(&folder)?,
    };
    let packages = if args.packages.is_empty() { suites(&module)? } else { args.packages.clone() };
    let mut all = Specs::default();
    let mut broken = Vec::new();
    for package in &packages {
        println!("{package} …");
        let output = Command::new("go")
            .args(["test", "-count=1", "-v", package])
            .current_dir(&module)
            .env("KUBEBUILDER_ASSETS", &assets)
            .env("GOFLAGS", "-mod=mod")
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run go: {error}"))?;
        let text = plain(&String::from_utf8_lossy(&output.stdout));
        let specs = count(&text);
        println!("  {} specs passed, {} failed", specs.passed, specs.failed);
        all = Specs { passed: all.passed + specs.passed, failed: all.failed + specs.failed };
        if !output.status.success() {
            text.lines()
                .filter(|line| line.contains("[FAIL]") || line.starts_with("--- FAIL"))
                .for_each(|line| println!("  {line}"));
            broken.push(package.clone());
        }
    }
    println!("{} specs passed, {} failed, in {} packages", all.passed, all.failed, packages.len());
    if broken.is_empty() { Ok(()) } else { Err(format!("failed: {}", broken.join(", ")).into()) }
}

/// Builds the command, and writes the programs with the command.
fn write_assets(folder: &Path) -> Result<PathBuf> {
    let assets = folder.join("assets");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--package", "windlass-cli", "--", "assets"])
        .arg(&assets)
        .current_dir(project::root())
        .status()?;
    if status.success() { Ok(assets) } else { Err("the programs could not be written".into()) }
}

/// Returns the packages that have tests.
fn suites(module: &Path) -> Result<Vec<String>> {
    let output = Command::new("go")
        .args(["list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./pkg/..."])
        .current_dir(module)
        .env("GOFLAGS", "-mod=mod")
        .output()
        .map_err(|error| format!("cannot run go: {error}"))?;
    let root = fs::canonicalize(module)?;
    let folders = String::from_utf8_lossy(&output.stdout).into_owned();
    let relative = folders.lines().filter_map(|folder| Path::new(folder).strip_prefix(&root).ok());
    let packages = relative.filter(|path| *path != Path::new(NEEDS_DOWNLOADS));
    Ok(packages.map(|path| format!("./{}", path.display())).collect())
}

/// Adds up the summaries of the suites of a package: `… 12 Passed | 0 Failed | …`. Plain Go tests count as specs where
/// there is no suite.
fn count(text: &str) -> Specs {
    let number_before = |line: &str, word: &str| -> Option<u32> {
        line.split(" | ")
            .find_map(|part| part.trim().strip_suffix(word)?.trim().rsplit(' ').next()?.parse().ok())
    };
    let mut specs = Specs::default();
    for line in text.lines().filter(|line| line.contains(" Passed | ")) {
        specs.passed += number_before(line, "Passed").unwrap_or(0);
        specs.failed += number_before(line, "Failed").unwrap_or(0);
    }
    if specs == Specs::default() {
        let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
        for line in text.lines() {
            let end = ["--- PASS", "--- FAIL"].into_iter().find(|end| line.trim_start().starts_with(end));
            *ends.entry(end.unwrap_or_default()).or_default() += 1;
        }
        let of = |end| ends.get(end).copied().unwrap_or(0);
        specs = Specs { passed: of("--- PASS"), failed: of("--- FAIL") };
    }
    specs
}

/// Removes the colours.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split('\u{1b}');
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_and_plain_tests_are_counted() {
        let suite = "Ran 28 of 28 Specs in 3.662 seconds\nFAIL! -- 27 Passed | 1 Failed | 0 Pending | 0 Skipped\n--- FAIL: TestSource (3.66s)\n";
        assert_eq!(count(suite), Specs { passed: 27, failed: 1 });
        let coloured = "\u{1b}[1mSUCCESS!\u{1b}[0m -- \u{1b}[1m3 Passed\u{1b}[0m | \u{1b}[1m0 Failed\u{1b}[0m | 0 Pending";
        assert_eq!(count(&plain(coloured)), Specs { passed: 3, failed: 0 });
        assert_eq!(
            count("--- PASS: TestA (0.00s)\n    --- PASS: TestA/b (0.00s)\n"),
            Specs { passed: 2, failed: 0 }
        );
    }
}
