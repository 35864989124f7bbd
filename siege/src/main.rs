//! The program behind `cargo xtask siege`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program prints results")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use windlass_siege::{Result, Target, concurrency, crowd, fuzz, hostile, serve};

// The allocator of the program windlass.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts an API server under siege.
#[derive(Parser)]
#[command(name = "cargo xtask siege")]
struct Cli {
    /// The program windlass, in a release build; by default, this program has the server
    #[arg(long, global = true)]
    program: Option<PathBuf>,
    #[command(subcommand)]
    test: Test,
}

#[derive(Subcommand)]
enum Test {
    /// Serve until standard input closes
    #[command(hide = true)]
    Serve { kubeconfig: PathBuf },
    /// Send hostile requests one by one, and measure the memory and the processor time of the server
    Hostile {
        /// Send only the attacks with this text in the name
        #[arg(default_value = "")]
        name: String,
    },
    /// Let many hostile clients loose on the server, and measure the latency of the administrator
    Crowd {
        /// Number of hostile clients
        #[arg(long, default_value_t = 1_000)]
        clients: usize,
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Send random requests to all resources, made from the server's own schemas
    Fuzz {
        #[arg(long, default_value_t = 1)]
        minutes: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Let many clients write, watch and lose connections, and compare the objects that each client has seen
    Concurrency {
        #[arg(long, default_value_t = 1)]
        minutes: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> ExitCode {
    windlass_apiserver::allocator_is_mimalloc();
    // As many threads as `windlass cluster` has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(Cli::parse())));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<bool> {
    if let Test::Serve { kubeconfig } = &cli.test {
        return serve(kubeconfig).await.map(|()| true);
    }
    let target = Target::start(cli.program.as_deref()).await?;
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let outcome = match cli.test {
        Test::Serve { .. } => Ok(true),
        Test::Hostile { name } => hostile::run(&target, &name).await,
        Test::Crowd { clients, seconds } => crowd::run(&target, clients, Duration::from_secs(seconds)).await,
        Test::Fuzz { minutes: time, seed } => {
            fuzz::run(&target, seed, minutes(time)).await.map(|found| found.is_empty())
        }
        Test::Concurrency { minutes: time, seed } => {
            concurrency::run(&target, seed, minutes(time)).await.map(|report| {
                println!("{report}");
                report.is_right()
            })
        }
    };
    target.stop().await;
    outcome
}
