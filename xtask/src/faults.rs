//! `cargo xtask faults`: runs the scenarios of an operator under seeded faults.

use std::process::Command;

use crate::{Result, project};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The number of runs, with the seeds from 0
    #[arg(long, default_value_t = 2000)]
    runs: u64,
    /// Run only this seed, and print requests and faults
    #[arg(long, conflicts_with = "runs")]
    seed: Option<u64>,
    /// The package of the operator. The test `it` of the package has a module `faults`
    #[arg(long, default_value = "custom-pod")]
    package: String,
    /// Build with optimisation
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(project::root()).args(["test", "--package", &args.package, "--test", "it"]);
    if args.release {
        command.arg("--release");
    }
    command.args(["faults::it_ends_in_the_right_state", "--", "--nocapture"]);
    match args.seed {
        Some(seed) => command.env("WINDLASS_FAULT_SEED", seed.to_string()),
        None => command.env("WINDLASS_FAULT_RUNS", args.runs.to_string()),
    };
    if command.status()?.success() { Ok(()) } else { Err("a run failed; its seed is above".into()) }
}
