//! Tasks of the repository, one module each. `cargo xtask --help` lists the tasks.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tasks print their results")]

// From the surface down: a module uses only modules further down.
mod bench;
mod catalog;
mod cel;
mod codegen;
mod contrib;
mod controller_gen;
mod crd_types;
mod envtest;
mod faults;
mod keystone;
mod own_crate;
mod package;
mod protobuf;
mod siege;
mod smd;
mod tidy;
mod tutorials;
mod twin;

mod go_module;
mod neutron;
mod project;

mod control_plane;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The result of a task. The message of an error is printed.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the repository", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run our benchmarks and the benchmarks of other libraries, and print one table
    Bench(bench::Args),
    /// Collect facts about the built-in kinds from a real API server into catalog/
    Catalog(catalog::Args),
    /// Run test suites of the Common Expression Language, of the specification and of Kubernetes, with windlass-cel
    Cel(cel::Args),
    /// Pack catalog/ into the blob that windlass-schema includes
    Codegen(codegen::Args),
    /// Run the tests of contrib/ (parts with missing tools are skipped)
    Contrib(contrib::Args),
    /// Build and run a real etcd, kube-apiserver and kube-controller-manager as a reference
    ControlPlane(control_plane::Args),
    /// Generate Rust types from the CRDs of well-known projects, and send the projects' samples through the
    /// types (needs Go)
    CrdTypes(crd_types::Args),
    /// Compare CRDs with controller-gen's CRDs of the same types in Go
    ControllerGen(controller_gen::Args),
    /// Run the test suites of controller-runtime on windlass's API server
    Envtest(envtest::Args),
    /// Run the scenarios of an operator under seeded faults, many times
    Faults(faults::Args),
    /// Check that the crate of docs/your-own-crate.md compiles outside of this workspace
    OwnCrate,
    /// Pack all crates for a release; with --project, build a scaffolded project from the packages
    Package(package::Args),
    /// Install and run a real OpenStack Keystone, for the client of the example `network`
    Keystone(keystone::Args),
    /// Install and run a real OpenStack Neutron, for the example network
    Neutron(neutron::Args),
    /// Put a release build of the API server under siege: hostile requests, a crowd of clients, random requests, concurrent writers
    Siege(siege::Args),
    /// Compare replies in protobuf with Go's golden files, and with a typed client of client-go (needs Go)
    Protobuf(protobuf::Args),
    /// Run the Go tests of structured-merge-diff, or of strategic merge patches, with windlass-schema
    Smd(smd::Args),
    /// Check crate dependencies, unsafe code, module docs, names in ARCHITECTURE.md, code in the book and plain English
    Tidy(tidy::Args),
    /// Run the tutorials of the book like a reader, on the embedded cluster
    Tutorials(tutorials::Args),
    /// Compare the embedded API server with a real API server, by random traffic
    Twin(twin::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Bench(args) => bench::run(args),
        Task::Catalog(args) => catalog::run(args),
        Task::Cel(args) => cel::run(&args),
        Task::Codegen(args) => codegen::run(args),
        Task::Contrib(args) => contrib::run(args),
        Task::ControlPlane(args) => control_plane::run(args),
        Task::CrdTypes(args) => crd_types::run(&args),
        Task::ControllerGen(args) => controller_gen::run(&args),
        Task::Envtest(args) => envtest::run(&args),
        Task::Faults(args) => faults::run(&args),
        Task::OwnCrate => own_crate::run(),
        Task::Package(args) => package::run(&args),
        Task::Keystone(args) => keystone::run(args),
        Task::Neutron(args) => neutron::run(args),
        Task::Siege(args) => siege::run(args),
        Task::Protobuf(args) => protobuf::run(&args),
        Task::Smd(args) => smd::run(args),
        Task::Tidy(args) => tidy::run(args),
        Task::Tutorials(args) => tutorials::run(args),
        Task::Twin(args) => twin::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
