//! The `windlass` command.
//!
//! One file per verb holds its arguments; what a verb does lies beside it, or in the libraries.
#![forbid(unsafe_code)]

mod control_plane;
mod demo;
mod error;
mod kubeconfig_file;
mod logging;
mod signals;
mod verb;
mod voice;

use std::process::ExitCode;

use clap::Parser;

use crate::verb::Verb;
use crate::voice::Voice;

/// Kubernetes operators in Rust, with a Kubernetes control plane in the box.
///
/// Nothing else has to be installed: no container engine, no downloaded kube-apiserver or etcd.
#[derive(Parser)]
#[command(name = "windlass", version, after_help = FIRST_STEPS)]
struct Command {
    /// Say more on stderr: -v what happens, -vv how (RUST_LOG has the last word).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    verb: Verb,
}

const FIRST_STEPS: &str = "\
First steps:
  windlass demo            an operator at work: a control plane, a CRD, and the pods it keeps
  windlass demo --tour     the same, driven by itself: 1 pod, 3 pods, 1 pod; ends when all was seen
  windlass cluster         a control plane for kubectl and for your own operator

Exit codes: 0 all went well, 1 it did not (the reason is on stderr), 2 the arguments make no sense.";

fn main() -> ExitCode {
    let command = Command::parse();
    logging::start(command.verbose);
    let mut voice = Voice::stdout();
    match command.verb.run(&mut voice) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Voice::stderr().line(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
