//! `cargo xtask bench`: runs our benchmarks and the same work with client-go, controller-runtime, kube-rs and
//! kube-apiserver, in turn, and prints one table.

mod backend;
mod budgets;
mod build;
mod contender;
mod feed;
mod groups;
mod measure;
mod rows;
mod server_groups;
mod table;

use std::fs;
use std::path::PathBuf;

use self::contender::Programs;
use self::groups::GROUPS;
use self::rows::{Group, Row};
use self::server_groups::SERVER_GROUPS;
use self::table::MeasuredRow;
use crate::Result;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only the groups that have rows with one of these prefixes: queue, scan, sync, events, relist, large,
    /// reads, reconcile, reconcile-shards, libc (musl and glibc), server, server-objects, server-watch,
    /// server-crds, server-updates. The name build, alone: compile times of an operator outside of the
    /// workspace, and the size of an operator for an image
    names: Vec<String>,
    /// Seed of the generated objects
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Use the Pods of this file in the groups of pods: JSON lines of objects, and then of watch events of the type
    /// MODIFIED, of which the first for each object is used
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Write the rows to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Number of runs of each contender; the contenders alternate. Default: 5, and 1 against kube-apiserver
    #[arg(long)]
    repeats: Option<usize>,
    /// Number of updates in server-updates; with 1000000, memory has a goal
    #[arg(long, default_value_t = 100_000)]
    updates: usize,
    /// Fraction of the objects to use, for a quick look; the goals apply to 1
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Use the programs of the last build
    #[arg(long)]
    no_build: bool,
    /// Check instruction counts against benches/budgets.toml instead of measuring time
    #[arg(long)]
    budgets: bool,
    /// With --budgets: write the counts as the new budgets
    #[arg(long, requires = "budgets")]
    bless: bool,
}

pub(crate) fn run(args: Args) -> Result {
    if args.budgets {
        return budgets::check(args.bless);
    }
    if args.names == ["build"] {
        return build::measure(args.repeats.unwrap_or(3));
    }
    let wanted = |row: &Row| {
        args.names.is_empty() || args.names.iter().any(|name| row.name.starts_with(name.as_str()))
    };
    let reads_file =
        |group: &Group| args.corpus.is_none() || group.feed.is_some_and(|feed| feed.kind == "pods");
    let groups = GROUPS.iter().chain(SERVER_GROUPS).filter(|group| reads_file(group));
    let groups: Vec<_> = groups.filter(|group| group.rows.iter().any(wanted)).collect();
    if groups.is_empty() {
        return Err(format!("no benchmark named {}", args.names.join(", ")).into());
    }
    let needed =
        |contender| groups.iter().any(|group| group.runs.iter().any(|run| run.contender == contender));
    let programs = if args.no_build { Programs::built() } else { Programs::build(needed)? };
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let data = data(group, &args);
        eprintln!("\n[{}/{}] {}: {}{data}", number + 1, groups.len(), group.name, group.about);
        let mut measured = measure::group(group, &programs, &args);
        failures.append(&mut measured.failures);
        let rows = group.rows.iter().filter(|row| wanted(row));
        let of_group: Vec<MeasuredRow> =
            rows.filter_map(|row| table::line(row, &measured.values, &data)).collect();
        eprint!("{}", table::render(&of_group));
        lines.extend(of_group);
        // Written after every group: an interrupted run keeps results.
        if let Some(file) = &args.json {
            fs::write(file, serde_json::to_string_pretty(&lines)? + "\n")?;
        }
    }
    eprintln!();
    print!("{}", table::render(&lines));
    failures.iter().for_each(|failure| println!("failed: {failure}"));
    if lines.is_empty() { Err("no benchmark succeeded".into()) } else { Ok(()) }
}

/// Describes the objects of a group: corpus and seed.
fn data(group: &Group, args: &Args) -> String {
    match (&group.feed, &args.corpus) {
        (Some(_), Some(file)) => format!("; corpus {}", file.display()),
        (Some(feed), None) => format!("; corpus {}, seed {}", feed.corpus, args.seed),
        (None, _) => String::new(),
    }
}
