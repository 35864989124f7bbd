//! Instruction counts of the hot paths, which do not depend on how busy the machine is.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::contender::{Contenders, Who};
use crate::{Result, project};

/// A count may differ from its budget by so much.
const TOLERANCE: f64 = 0.01;

/// A path, and how often it is done in one run.
const PATHS: &[(&str, u32)] = &[("scan-pod", 200), ("store-insert", 500), ("queue-add-get-done", 20_000)];

/// Counts every path and holds it against benches/budgets.toml, or makes it the budget.
pub(crate) fn check(bless: bool) -> Result {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err(
            "instruction counts need valgrind, and there is none: install it, or leave --budgets out".into(),
        );
    }
    let contenders = Contenders::counted()?;
    let program = contenders.program(Who::Ours).ok_or("ours has not been built")?;
    let file = project::root().join("benches/budgets.toml");
    let budgets = read(&file)?;
    let mut counted = BTreeMap::new();
    let mut over = Vec::new();
    for &(path, times) in PATHS {
        // The run with no repeats is what is not the path: subtracted.
        let (with, without) = (instructions(program, path, times)?, instructions(program, path, 0)?);
        let count = with.saturating_sub(without) / u64::from(times);
        counted.insert(path, count);
        let budget = budgets.get(path).copied();
        let change = budget.map(|budget| count as f64 / budget as f64 - 1.0);
        let verdict = match change {
            None => "no budget yet".to_owned(),
            Some(change) if change > TOLERANCE => {
                over.push(path);
                format!("{:+.1} %: over", 100.0 * change)
            }
            Some(change) => format!("{:+.1} %", 100.0 * change),
        };
        println!("{path:<20}{count:>10} instructions   {verdict}");
    }
    if bless {
        fs::write(&file, write(&counted)?)?;
        return Ok(());
    }
    if over.is_empty() {
        Ok(())
    } else {
        Err(format!("over budget: {}; if that is meant, --bless makes it the budget", over.join(", ")).into())
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
    total.ok_or_else(|| format!("callgrind has counted nothing:\n{said}").into())
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
            let (name, count) = line.split_once('=').ok_or_else(|| format!("not a budget: {line}"))?;
            Ok((name.trim().to_owned(), count.trim().parse()?))
        })
        .collect()
}

fn write(counted: &BTreeMap<&str, u64>) -> Result<String> {
    let mut out = String::from(
        "# Instructions of each path, by callgrind. `cargo xtask bench --budgets` fails when one takes 1 % more.\n",
    );
    for (path, count) in counted {
        writeln!(out, "{path} = {count}")?;
    }
    Ok(out)
}
