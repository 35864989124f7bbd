//! The benchmarks with kube-runtime. A process is a run and prints a line of JSON, in the format of the other
//! side.

mod informer;
mod process;
mod queue;
mod reconcile;

use std::collections::BTreeMap;

/// The results of a run.
pub type Cell = BTreeMap<&'static str, f64>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options: BTreeMap<&str, &str> = arguments
        .iter()
        .skip(1)
        .filter_map(|argument| argument.trim_start_matches("--").split_once('='))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("tokio starts");
    let mut cell = match arguments.first().map(String::as_str) {
        Some("queue") => runtime.block_on(queue::run(&options)),
        Some("informer") => runtime.block_on(informer::run(&options)),
        Some("reconcile") => runtime.block_on(reconcile::run(&options)),
        other => panic!("unknown run {other:?}; use queue, informer or reconcile"),
    };
    cell.entry("peak").or_insert_with(process::peak);
    println!("{}", serde_json::to_string(&cell).expect("numbers are JSON"));
    // Stop the background tasks of the informer.
    std::process::exit(0);
}

/// Returns a numeric option; 0 for a missing option.
pub fn number(options: &BTreeMap<&str, &str>, name: &str) -> usize {
    options.get(name).map_or(0, |value| value.parse().expect("a number"))
}
