//! The `windlass` command.
//!
//! A library, because cargo compiles a library while the code of the dependencies is still generated;
//! `main.rs` links the library.
//!
//! `verb/` has a file with the arguments of each subcommand. The work of a subcommand is in a module beside
//! `verb/`, or in the libraries.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod verb;

mod demo;
mod deploy;
mod dev;
mod generate;
mod multicall;
mod node;
mod policy;
mod user_kubeconfig;

mod image;
mod logging;
mod manifests;
mod open_files;
mod signals;

mod remaining;
mod webhooks;

mod project;

mod error;
mod output;

use std::process::ExitCode;

use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::error::Error;
use crate::multicall::Applet;
use crate::output::Output;
use crate::verb::Verb;

// Requests allocate small objects on all threads: a fifth of the time of a write with the allocator of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Makes Kubernetes operators: from an empty folder to a running operator, on a control plane that is part of
/// this program.
///
/// Only Rust has to be installed: no container engine, no kube-apiserver and no etcd.
#[derive(Parser)]
#[command(name = "windlass", version, after_help = FIRST_STEPS)]
struct Command {
    /// Log more, to stderr: -v for info, -vv for debug, -vvv for trace. RUST_LOG overrides the flag.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    verb: Verb,
}

/// The form of errors.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorForm {
    /// A line that begins with `error:`
    Text,
    /// An object with the key `error`, as the last line of stderr
    Json,
}

/// The name of the flag with the form of errors.
const OUTPUT: &str = "output";

/// The id of the flag: a verb may have another flag with the same name.
const ERROR_FORM: &str = "error-form";

const FIRST_STEPS: &str = "\
First steps:
  windlass init --domain example.com
  windlass create api --group apps --version v1 --kind Website
  windlass dev             run the operator on a control plane of its own; it is built again on each save
  windlass install && windlass run      the same on the cluster of a kubeconfig

The control plane alone:
  windlass demo            run an example operator on a control plane of its own, and see what it does
  windlass demo --tour     the same without a second terminal: scales up and down, deletes, and ends
  windlass cluster         run a control plane for kubectl and for your own operator
  windlass assets DIR      write kube-apiserver and etcd for the tests of other projects (KUBEBUILDER_ASSETS)
  windlass kubeconfig      print a kubeconfig of a service account, to run your operator with its own rights

Output goes to stdout, logs and errors to stderr. With --output json, the last line of stderr is an error as an object:
{\"error\":{\"message\":\"...\",\"causes\":[\"...\"],\"hint\":\"...\" or null,\"exitCode\":1}}
Exit codes: 0 success, 1 failure (the reason is on stderr), 2 invalid arguments.";

/// Runs the command in the arguments of this process, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    // The parts of a node that enter the namespaces of a pod: before there is a second thread.
    #[cfg(target_os = "linux")]
    if let Some(code) = windlass_node::launch(std::env::args_os()) {
        return code;
    }
    if let Some(applet) = std::env::args_os().next().and_then(|program| Applet::of(&program)) {
        return applet.main();
    }
    windlass_apiserver::allocator_is_mimalloc();
    let parsed = command().try_get_matches().and_then(|matches| {
        let form = error_form(&matches);
        Ok((Command::from_arg_matches(&matches)?, form))
    });
    let (command, form) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(error),
    };
    logging::start(command.verbose);
    match command.verb.run(&mut Output::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error, form, FAILURE);
            ExitCode::from(FAILURE)
        }
    }
}

/// The exit code of a command that failed.
const FAILURE: u8 = 1;

/// Prints an error.
fn report(error: &Error, form: ErrorForm, exit_code: u8) {
    match form {
        ErrorForm::Text => Output::stderr().line(format_args!("error: {error}")),
        ErrorForm::Json => Output::stderr().line(error::to_json(error, exit_code)),
    }
}

/// Prints the reason for refused arguments, or the requested help or version.
fn refuse(error: clap::Error) -> ExitCode {
    let exit_code = u8::try_from(error.exit_code()).unwrap_or(FAILURE);
    // The arguments are not parsed yet: search the words for the form.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_json = words.windows(2).any(|pair| pair == ["--output", "json"])
        || words.iter().any(|word| word == "--output=json");
    if is_json && error.use_stderr() {
        let message = error.to_string();
        report(&message.trim_start_matches("error: ").trim().into(), ErrorForm::Json, exit_code);
    } else {
        // A reader that stops reading is not an error.
        let _ = error.print();
    }
    ExitCode::from(exit_code)
}

/// Returns the command line. The flag `--output` is before the verb, and after each verb that has no other
/// flag of the name.
fn command() -> clap::Command {
    with_error_form(Command::command().arg(error_form_flag()))
}

fn with_error_form(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let has_flag = command.get_arguments().any(|flag| flag.get_long() == Some(OUTPUT));
    let command = if has_flag || !names.is_empty() { command } else { command.arg(error_form_flag()) };
    names.iter().fold(command, |command, name| command.mut_subcommand(name, with_error_form))
}

fn error_form_flag() -> Arg {
    Arg::new(ERROR_FORM)
        .long(OUTPUT)
        .value_name("FORM")
        .value_parser(clap::value_parser!(ErrorForm))
        .help("Print an error as text or as JSON, on stderr")
        .help_heading("Errors")
}

/// Returns the form of errors that is asked for.
fn error_form(matches: &ArgMatches) -> ErrorForm {
    let here = matches.try_get_one::<ErrorForm>(ERROR_FORM).ok().flatten().copied();
    let below = || matches.subcommand().map(|(_, matches)| error_form(matches));
    here.or_else(below).unwrap_or(ErrorForm::Text)
}
