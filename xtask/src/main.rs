//! Tasks of the repository: `cargo xtask --help` lists them, one module each.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to the person who runs it")]

mod bench;
mod catalog;
mod codegen;
mod control_plane;
mod project;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a task returns: nothing, or why it failed, in words.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the repository", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure our work and the same work of others, and print one table
    Bench(bench::Args),
    /// Collect the facts about built-in kinds from a real API server into catalog/
    Catalog(catalog::Args),
    /// Pack catalog/ into the blob that windlass-schema includes
    Codegen(codegen::Args),
    /// A real etcd, kube-apiserver and kube-controller-manager, to compare ours with
    ControlPlane(control_plane::Args),
    /// Check what the compiler does not: crate edges, unsafe, module docs, names in ARCHITECTURE.md, code in the book
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Bench(args) => bench::run(args),
        Task::Catalog(args) => catalog::run(args),
        Task::Codegen(args) => codegen::run(args),
        Task::ControlPlane(args) => control_plane::run(args),
        Task::Tidy(args) => tidy::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
