//! `cargo xtask cel`: runs the test suites of other implementations of the Common Expression Language with windlass-cel.

mod spec;

use crate::Result;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run the tests of the specification that need no protobuf messages
    #[arg(long)]
    spec: bool,
    /// Print the failures
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    if args.spec {
        return spec::run(args.verbose);
    }
    Err("choose a suite, such as --spec".into())
}
