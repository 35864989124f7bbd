//! `cargo xtask smd --random`: random operations with the module and with the copy that asks windlass-schema.
//!
//! The copy is renamed: one Go program can then use both modules.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::suite::STRUCTURED_MERGE;
use crate::Result;

pub(super) struct Plan<'p> {
    pub(super) version: &'p str,
    pub(super) sequences: u32,
    pub(super) seed: u32,
}

const MODULE: &str = STRUCTURED_MERGE.module;
/// The path of the copy.
const OURS: &str = "windlass.test/ours";

const MAIN: &str = include_str!("random/main.go");
const OPERATION: &str = include_str!("random/operation.go");
const WORLD: &str = include_str!("random/world.go");

/// Runs the program; `folder` has the copy of the module in `module/`.
pub(super) fn run(plan: &Plan<'_>, folder: &Path, server: &Path) -> Result {
    rename(&folder.join("module"))?;
    let program = folder.join("random");
    let as_package = |name: &str| WORLD.replacen("package world", &format!("package {name}"), 1);
    let manifest = format!(
        "module windlass.test/random\n\ngo 1.23\n\nrequire {MODULE} {}\n\nrequire {OURS} v0.0.0\n\nreplace {OURS} => ../module\n",
        plan.version
    );
    let files = [
        ("go.mod", manifest),
        ("main.go", MAIN.to_owned()),
        ("operation/operation.go", OPERATION.to_owned()),
        ("original/world.go", as_package("original")),
        ("ours/world.go", as_package("ours").replace(MODULE, OURS)),
    ];
    for (name, text) in files {
        let path = program.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&program))?;
        fs::write(path, text)?;
    }
    let status = Command::new("go")
        .args(["run", ".", "-count", &plan.sequences.to_string(), "-seed", &plan.seed.to_string()])
        .current_dir(&program)
        .env("WINDLASS_SMD_SERVER", server)
        .env("GOFLAGS", "-mod=mod")
        .status()
        .map_err(|error| format!("cannot run go: {error}"))?;
    if status.success() { Ok(()) } else { Err("the implementations differ, or were not compared".into()) }
}

/// Gives the module in a folder the path of the copy.
fn rename(folder: &Path) -> Result {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rename(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "go") || path.ends_with("go.mod") {
            fs::write(&path, fs::read_to_string(&path)?.replace(MODULE, OURS))?;
        }
    }
    Ok(())
}
