//! `cargo xtask cel`: runs the test suites of other implementations of the Common Expression Language with windlass-cel.

mod bench;
mod corpus;
mod hostile;
mod spec;
mod suite;

use crate::Result;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run the tests of the specification that need no protobuf messages
    #[arg(long)]
    spec: bool,
    /// Run the tests of the rules of custom resources, in k8s.io/apiextensions-apiserver
    #[arg(long)]
    crd: bool,
    /// Run the tests of Kubernetes' functions, in k8s.io/apiserver
    #[arg(long)]
    library: bool,
    /// Measure compilation and evaluation beside cel-go
    #[arg(long)]
    bench: bool,
    /// Compare the rules of well-known projects, and random objects, with a real server
    #[arg(long)]
    corpus: bool,
    /// Measure the time and the memory of hostile expressions
    #[arg(long)]
    hostile: bool,
    /// With --hostile: the number of expressions
    #[arg(long, default_value_t = 1000)]
    expressions: usize,
    /// With --corpus: the number of objects; 0 compares only the costs of the rules
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// With --corpus or --hostile: the seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// With --corpus: only these projects
    #[arg(long, value_name = "NAME")]
    project: Vec<String>,
    /// Run only the tests that match this pattern, as `go test -run` takes it
    #[arg(long)]
    run: Option<String>,
    /// Print the failures
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    if args.spec {
        return spec::run(args.verbose);
    }
    if args.crd {
        return suite::RULES.run(args.run.as_deref(), args.verbose);
    }
    if args.bench {
        return bench::run();
    }
    if args.corpus {
        return corpus::run(&args.project, args.objects, args.seed);
    }
    if args.hostile {
        return hostile::run(args.expressions, args.seed);
    }
    if args.library {
        return suite::LIBRARY.run(args.run.as_deref(), args.verbose);
    }
    Err("choose a suite, such as --spec".into())
}
