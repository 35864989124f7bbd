//! `cargo xtask tidy`: rules that the compiler does not check.

mod architecture;
mod book;
mod code;
mod edges;
mod files;
mod kinds;
mod markdown;
mod modules;
mod parity;
mod phrases;
mod prose;
mod sentences;
mod sources;

use std::path::PathBuf;

use crate::{Result, project};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only print the sentences below this file or folder that refer back most
    #[arg(long, value_name = "PATH")]
    hardest: Option<PathBuf>,
}

/// The findings of the checks.
#[derive(Default)]
struct Report {
    /// Violations of a rule. The task fails if there are any.
    errors: Vec<String>,
    /// Findings that are only printed.
    remarks: Vec<String>,
}

pub(crate) fn run(Args { hardest }: Args) -> Result {
    if let Some(path) = hardest {
        return prose::print_hardest(&path);
    }
    let packages = project::packages()?;
    let mut report = Report::default();
    edges::check(&packages, &mut report)?;
    for package in &packages {
        sources::check(package, &mut report)?;
        modules::check(package, &mut report)?;
    }
    architecture::check(&packages, &mut report)?;
    book::check(&mut report)?;
    kinds::check(&mut report)?;
    parity::check(&mut report)?;
    phrases::check(&mut report)?;
    prose::check(&mut report)?;
    for remark in &report.remarks {
        println!("remark: {remark}");
    }
    for error in &report.errors {
        println!("error: {error}");
    }
    match report.errors.len() {
        0 => {
            println!("tidy: {} packages, no error, {} remarks", packages.len(), report.remarks.len());
            Ok(())
        }
        count => Err(format!("tidy found {}", plural(count, "error")).into()),
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests;
