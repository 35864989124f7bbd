//! A single run of a benchmark. `cargo xtask bench` starts this program and the peers.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "standard output is the result")]

// From the surface down: a module uses only modules further down.
mod api_server;
mod count;
mod creates;
mod drift;
mod idle;
mod queue;
mod reconcile;
mod scan;
mod shards;
mod soak;

mod server;

mod informer;

mod reads;

mod cell;
mod corpus;
mod tls;

mod process;
mod random;

use clap::{Parser, Subcommand};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    run: Run,
}

#[derive(Subcommand)]
enum Run {
    /// Serves prepared bytes until killed
    Serve(server::Args),
    /// Measures the embedded API server
    ApiServer {
        #[arg(long, value_enum)]
        of: api_server::Scenario,
    },
    /// Repeats a path, for callgrind
    Count {
        #[arg(long, value_enum)]
        path: count::Path,
        #[arg(long)]
        times: usize,
    },
    /// Creates objects one after the other
    Creates(creates::Args),
    /// Feeds changes through cache and queue, and fails if memory grows
    Soak(soak::Args),
    /// Feeds a virtual day of changes through a cache, and fails if the memory is not that of a fresh list
    Drift(drift::Args),
    /// Scans pods in memory
    Scan(scan::Args),
    /// Measures an informer that is fed by the byte server
    Informer(informer::Args),
    /// Runs an idle manager of twenty controllers
    Idle(idle::Args),
    /// Runs an operator on an API server
    Reconcile(reconcile::Args),
    /// Splits the keys of a controller among one, two and four replicas
    Shards {
        #[arg(long)]
        objects: usize,
    },
    /// Adds keys to the work queue and processes them
    Queue {
        #[arg(long, value_enum)]
        load: queue::Load,
        #[arg(long)]
        adds: usize,
    },
}

/// Creates a runtime with a thread for each core, like the runtimes of the peers.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("tokio starts")
}

fn main() {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The manager's log explains a benchmark that does not end.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let cell = match Cli::parse().run {
        Run::Serve(args) => return server::run(&args),
        Run::ApiServer { of } => api_server::run(of),
        Run::Count { path, times } => return count::run(path, times),
        Run::Creates(args) => creates::run(&args),
        Run::Soak(args) => soak::run(&args),
        Run::Drift(args) => drift::run(&args),
        Run::Scan(args) => scan::run(&args),
        Run::Informer(args) => informer::run(&args),
        Run::Idle(args) => idle::run(&args),
        Run::Reconcile(args) => reconcile::run(&args),
        Run::Shards { objects } => shards::run(objects),
        Run::Queue { load, adds } => queue::run(load, adds),
    };
    cell.print();
}
