//! The program behind `cargo xtask twin`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program prints its results")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use windlass_twin::{Backend, Difference, Known, Twin, corpus, op, script, shrink, transcript};

/// Compares the embedded API server with a real API server, by random traffic.
#[derive(Parser)]
#[command(name = "cargo xtask twin")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Number of operations for each seed
    #[arg(long, default_value_t = 1000)]
    ops: usize,
    /// Kubeconfig of the real server
    #[arg(long, env = "WINDLASS_TEST_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Compare the embedded server with a second embedded server
    #[arg(long)]
    itself: bool,
    /// Play the script in this file instead
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Write the scripts of differences unchanged, without making the scripts shorter
    #[arg(long)]
    no_shrink: bool,
    /// Play the scripts on the real server alone, and write the replies to this file
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = TRANSCRIPT)]
    record: Option<PathBuf>,
    /// Compare random objects of the CRDs in this file, a CRD on each line, as `cargo xtask cel --corpus` does
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// With --corpus: the number of objects
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// Folder for the scripts of differences
    #[arg(long, default_value = "target/twin")]
    out: PathBuf,
}

/// The transcript that `cargo test` replays.
const TRANSCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcript.jsonl.gz");

const START: &str = "cargo xtask control-plane start --no-controllers";

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<bool> {
    let real = match &args.kubeconfig {
        _ if args.itself => Backend::Embedded,
        Some(path) => Backend::Real(path.clone()),
        None => {
            return Err(
                format!("no real server: start one with `{START}`, or name it with --kubeconfig").into()
            );
        }
    };
    if real.has_controllers().await? {
        return Err(format!(
            "the controllers of the real server would change its objects; start it with `{START}`"
        )
        .into());
    }
    if let Some(file) = &args.corpus {
        return corpus::run(&real, file, args.objects, args.seed).await;
    }
    if let Some(file) = &args.record {
        return record(&real, &args, file).await;
    }
    let twin = Twin { embedded: Backend::Embedded, real };
    if let Some(file) = &args.replay {
        let ops = op::read(&fs::read_to_string(file)?)?;
        let run = twin.play(&ops).await?;
        run.differences.iter().for_each(|difference| println!("{}\n{difference}\n", difference.signature));
        return Ok(run.differences.is_empty());
    }
    let known = Known::list();
    let mut search = Search { known, twin, args, found: BTreeMap::new(), ops: 0, reports: 0 };
    for seed in search.args.seed..search.args.seed + search.args.seeds {
        search.seed(seed).await?;
    }
    let mut found: Vec<_> = search.found.iter().collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    found.iter().for_each(|(signature, count)| println!("{count:6}  {signature}"));
    Ok(found.is_empty())
}

async fn record(real: &Backend, args: &Args, file: &Path) -> Result<bool> {
    let (mut recordings, mut steps, mut left_out) = (Vec::new(), 0, 0);
    for number in 0.. {
        if steps >= args.ops {
            break;
        }
        match transcript::record(real, &script(args.seed, number)).await? {
            Some(recording) => {
                steps += recording.len();
                recordings.push(recording);
            }
            None => left_out += 1,
        }
    }
    transcript::write(file, &recordings)?;
    println!(
        "{}: {} scripts, {steps} steps; left out {left_out} that went differently twice",
        file.display(),
        recordings.len()
    );
    Ok(true)
}

/// A search for differences.
struct Search {
    known: Known,
    twin: Twin,
    args: Args,
    /// How often each difference was seen, by signature.
    found: BTreeMap<String, usize>,
    ops: usize,
    reports: usize,
}

impl Search {
    async fn seed(&mut self, seed: u64) -> Result {
        let start = Instant::now();
        let (mut played, mut number) = (0, 0);
        while played < self.args.ops {
            let ops = script(seed, number);
            let run = self.twin.play(&ops).await?;
            played += run.real.len();
            let mut new: BTreeMap<u32, Vec<Difference>> = BTreeMap::new();
            for difference in run.differences {
                if self.known.covers(&difference.signature) {
                    continue;
                }
                let count = self.found.entry(difference.signature.clone()).or_default();
                *count += 1;
                if *count == 1 {
                    new.entry(difference.op).or_default().push(difference);
                }
            }
            for differences in new.into_values() {
                self.report(seed, number, &ops, &differences).await?;
            }
            number += 1;
        }
        self.ops += played;
        eprintln!(
            "seed {seed}: {played} operations in {:.1} s; {} differences so far, after {} operations",
            start.elapsed().as_secs_f32(),
            self.found.len(),
            self.ops
        );
        Ok(())
    }

    /// Prints the differences of a step and writes a script that shows the first difference.
    async fn report(
        &mut self,
        seed: u64,
        number: usize,
        ops: &[op::Op],
        differences: &[Difference],
    ) -> Result {
        let Some(first) = differences.first() else { return Ok(()) };
        let mut note = "";
        let short = if self.args.no_shrink {
            let end = ops.iter().position(|op| op.id == first.op).unwrap_or(ops.len() - 1);
            ops[..=end].to_vec()
        } else if let Some(short) = shrink(&self.twin, ops, &first.signature).await? {
            short
        } else {
            note = "not seen again";
            ops.to_vec()
        };
        self.reports += 1;
        let file = self.args.out.join(format!("{seed}-{number}-{}.jsonl", self.reports));
        fs::create_dir_all(&self.args.out)?;
        let lines = differences.iter().map(|difference| format!("{}\n{difference}\n", difference.signature));
        let text: String = lines.collect();
        let comment = text.lines().flat_map(|line| ["# ", line, "\n"]).collect::<String>();
        fs::write(&file, comment + &op::write(&short))?;
        println!("{text}  script:   {} ({} steps) {note}\n", file.display(), short.len());
        Ok(())
    }
}
