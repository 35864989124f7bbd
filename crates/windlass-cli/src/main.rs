//! The `windlass` command.
//!
//! `verb/` has one file with the arguments of each subcommand. What a subcommand does is in a module beside it, or in the libraries.
#![forbid(unsafe_code)]

mod demo;
mod dev;
mod error;
mod generate;
mod logging;
mod manifests;
mod output;
mod personality;
mod project;
mod signals;
mod user_kubeconfig;
mod verb;
mod webhooks;

use std::process::ExitCode;

use clap::Parser;

use crate::output::Output;
use crate::personality::Personality;
use crate::verb::Verb;

// Requests allocate small objects on all threads: a fifth of the time of a write with the allocator of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Makes Kubernetes operators: from an empty folder to one that runs, on a control plane that is in this program.
///
/// Nothing else has to be installed but Rust: no container engine, no kube-apiserver and no etcd.
#[derive(Parser)]
#[command(name = "windlass", version, after_help = FIRST_STEPS)]
struct Command {
    /// Log more, to stderr: -v for info, -vv for debug, -vvv for trace. RUST_LOG overrides it.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    verb: Verb,
}

const FIRST_STEPS: &str = "\
First steps:
  windlass init --domain example.com
  windlass create api --group apps --version v1 --kind Website
  windlass dev             run the operator on a control plane of its own; it is built again on each save
  windlass install && windlass run      the same on the cluster of a kubeconfig

The control plane alone:
  windlass demo            run an example operator on a control plane of its own, and see what it does
  windlass demo --tour     the same without a second terminal: scales up and down, deletes, and ends
  windlass cluster         run a control plane for kubectl and for your own operator
  windlass assets DIR      write kube-apiserver and etcd for the tests of other projects (KUBEBUILDER_ASSETS)
  windlass kubeconfig      print a kubeconfig of a service account, to run your operator with its own rights

Output goes to stdout, logs and errors to stderr.
Exit codes: 0 success, 1 failure (the reason is on stderr), 2 invalid arguments.";

fn main() -> ExitCode {
    if let Some(personality) = std::env::args_os().next().and_then(|program| Personality::of(&program)) {
        return personality.main();
    }
    let command = Command::parse();
    logging::start(command.verbose);
    match command.verb.run(&mut Output::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Output::stderr().line(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
