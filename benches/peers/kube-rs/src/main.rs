//! The benchmarks' work on kube-runtime: one run in a process of its own, one line of JSON on standard output, as our
//! own runs print it.

mod informer;
mod process;
mod queue;

use std::collections::BTreeMap;

/// What one run has measured.
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
        other => panic!("say what to run, queue or informer, not {other:?}"),
    };
    cell.entry("peak").or_insert_with(process::peak);
    println!("{}", serde_json::to_string(&cell).expect("numbers are JSON"));
    // The informer's tasks would go on.
    std::process::exit(0);
}

/// An option that is a number, 0 without it.
pub fn number(options: &BTreeMap<&str, &str>, name: &str) -> usize {
    options.get(name).map_or(0, |value| value.parse().expect("a number"))
}
