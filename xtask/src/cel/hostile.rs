//! Runs the example of windlass-cel that measures expressions made to take much time or memory.

use std::process::Command;

use crate::{Result, project};

/// Measures `expressions` expressions in a release build.
pub(super) fn run(expressions: usize, seed: u64) -> Result {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "windlass-cel", "--example", "hostile", "--"])
        .args([expressions.to_string(), seed.to_string()])
        .current_dir(project::root())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("an expression breaks a limit, or the example does not build".into())
    }
}
