//! Instruction counts of the hot paths, which do not depend on the load of the machine.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::contender::{Contender, Programs};
use crate::{Result, project};

/// The relative amount by which a count may exceed the budget.
const TOLERANCE: f64 = 0.01;

/// The paths, and the number of repeats of each path in a run.
const PATHS: &[(&str, u32)] = &[("scan-pod", 200), ("store-insert", 500), ("queue-add-get-done", 20_000)];

/// Counts the instructions of every path and compares them with benches/budgets.toml. With `bless`, writes the counts
/// there instead.
pub(crate) fn check(bless: bool) -> Result {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err("--budgets needs valgrind; install it or omit the option".into());
    }
    let programs = Programs::counted()?;
    let program = programs.program(Contender::Ours).ok_or("our benchmark program has not been built")?;
    let file = project::root().join("benches/budgets.toml");
    let budgets = read(&file)?;
    let mut counted = BTreeMap::new();
    let mut over = Vec::new();
    for &(path, times) in PATHS {
        // A run without repeats measures the set-up. The set-up is subtracted.
        let (with, without) = (instructions(program, path, times)?, instructions(program, path, 0)?);
        let count = with.saturating_sub(without) / u64::from(times);
        counted.insert(path, count);
        let budget = budgets.get(path).copied();
        let change = budget.map(|budget| count as f64 / budget as f64 - 1.0);
        let change_text = match change {
            None => "no budget yet".to_owned(),
            Some(change) if change > TOLERANCE => {
                over.push(path);
                format!("{:+.1} %: over", 100.0 * change)
            }
            Some(change) => format!("{:+.1} %", 100.0 * change),
        };
        println!("{path:<20}{count:>10} instructions   {change_text}");
    }
    if bless {
        fs::write(&file, write(&counted)?)?;
        return Ok(());
    }
    if over.is_empty() {
        Ok(())
    } else {
        Err(format!("over budget: {}; if that is intended, run again with --bless", over.join(", ")).into())
    }
}

fn instructions(program: &Path, path: &str, times: u32) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["count", "--path", path, "--times", &times.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // ==123== Collected : 4567
    let total = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    total.ok_or_else(|| format!("callgrind printed no count:\n{said}").into())
}

fn read(file: &Path) -> Result<BTreeMap<String, u64>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, count) = line
                .split_once('=')
                .ok_or_else(|| format!("{}: expected `path = count`, found `{line}`", file.display()))?;
            Ok((name.trim().to_owned(), count.trim().parse()?))
        })
        .collect()
}

fn write(counted: &BTreeMap<&str, u64>) -> Result<String> {
    let mut out = String::from(
        "# Instructions of each path, by callgrind. `cargo xtask bench --budgets` fails if a count grows by more than 1 %.\n",
    );
    for (path, count) in counted {
        writeln!(out, "{path} = {count}")?;
    }
    Ok(out)
}
