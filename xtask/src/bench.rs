//! Benchmarks: our work and the same work of others, side by side in one run, in one table.

mod budgets;
mod contender;
mod feed;
mod groups;
mod measure;
mod rows;
mod table;

use std::fs;
use std::path::PathBuf;

use self::contender::Contenders;
use self::groups::GROUPS;
use self::rows::Row;
use self::table::Line;
use crate::Result;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only groups or rows whose names begin so: queue, scan, sync, events, relist, reads, server
    names: Vec<String>,
    /// What the corpus is made from
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Writes the rows to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How often each contender runs, in turn with the others
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// A part of the objects, for a quick look; the goals are meant for 1
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Takes the programs that have been built before
    #[arg(long)]
    no_build: bool,
    /// Checks instruction counts against benches/budgets.toml instead of measuring time
    #[arg(long)]
    budgets: bool,
    /// With --budgets: writes what was counted as the new budgets
    #[arg(long, requires = "budgets")]
    bless: bool,
}

pub(crate) fn run(args: Args) -> Result {
    if args.budgets {
        return budgets::check(args.bless);
    }
    let wanted = |row: &Row| {
        args.names.is_empty() || args.names.iter().any(|name| row.name.starts_with(name.as_str()))
    };
    let groups: Vec<_> = GROUPS.iter().filter(|group| group.rows.iter().any(wanted)).collect();
    if groups.is_empty() {
        return Err(format!("no benchmark is called {}", args.names.join(", ")).into());
    }
    let contenders = if args.no_build { Contenders::built() } else { Contenders::build()? };
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        eprintln!("\n[{}/{}] {}: {}", number + 1, groups.len(), group.name, group.about);
        let mut measured = measure::group(group, &contenders, &args);
        failures.append(&mut measured.failures);
        let rows = group.rows.iter().filter(|row| wanted(row));
        let of_group: Vec<Line> = rows.filter_map(|row| table::line(row, &measured.values)).collect();
        eprint!("{}", table::render(&of_group));
        lines.extend(of_group);
        // After every group, so that a run that is broken off leaves what it has found.
        if let Some(file) = &args.json {
            fs::write(file, serde_json::to_string_pretty(&lines)? + "\n")?;
        }
    }
    eprintln!();
    print!("{}", table::render(&lines));
    failures.iter().for_each(|failure| println!("failed: {failure}"));
    if lines.is_empty() { Err("nothing could be measured".into()) } else { Ok(()) }
}
