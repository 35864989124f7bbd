//! From the command line to a manager.

use std::{collections::BTreeSet, ffi::OsString, io::Write};

use clap::{Arg, Args, Command, FromArgMatches, Subcommand, error::ErrorKind};
use windlass_runtime::{Error, Manager, Result};

use super::{
    ManagerArgs,
    args::program_name,
    config_file::{self, ConfigFile},
    crds::write_crds,
    dev::{DevArgs, dev},
    manifests::write_inventory,
    standard_input, telemetry,
};

/// Builds a manager from flags. Part of the [prelude](crate::prelude).
pub trait FromArgs: Sized {
    /// Builds a manager as the command line says, and sets up logging. `--help` lists the flags and commands.
    ///
    /// The manager's `run` obeys the command. If the command fails, `run` logs the error and exits the
    /// process with status 1, so that the error appears only in the log.
    fn from_args() -> Self;

    /// Works like [`from_args`](Self::from_args), with a flag `--version` that prints `version`. Pass
    /// `env!("CARGO_PKG_VERSION")`, the version of the calling package.
    fn from_args_with_version(version: &'static str) -> Self;

    /// Works like [`from_args`](Self::from_args), with flags of the operator's own.
    ///
    /// The doc comment of `A` is the program's description in `--help`. Give every flag a default or make the
    /// flag optional: the command `crds` parses the flags, too.
    fn from_args_with<A: Args>() -> (Self, A);

    /// Builds a manager from flags that the caller has parsed. Commands, logging and errors are the caller's.
    fn with_args(args: ManagerArgs) -> Self;
}

impl FromArgs for Manager {
    fn from_args() -> Self {
        from_line::<NoArgs>(None).0
    }

    fn from_args_with_version(version: &'static str) -> Self {
        from_line::<NoArgs>(Some(version)).0
    }

    fn from_args_with<A: Args>() -> (Self, A) {
        from_line(None)
    }

    fn with_args(args: ManagerArgs) -> Self {
        if args.stop_with_stdin {
            standard_input::stop_at_its_end();
        }
        let mut manager = Self::from_config(args.config_source())
            .namespaces(args.namespaces())
            .select_controllers(&args.controllers)
            .override_apply_crds(args.apply_crds)
            .webhook_defaults(args.webhook_defaults());
        manager = telemetry::export(args.serve_metrics(manager));
        if let Some(address) = args.health_probe_bind_address.address() {
            manager = manager.health_address(address);
        }
        match args.leader_election() {
            Some(election) => manager.leader_election(election),
            None => manager,
        }
    }
}

/// Builds a manager as the command line of this process says.
fn from_line<A: Args>(version: Option<&'static str>) -> (Manager, A) {
    let parsed = parse::<A>(std::env::args_os(), version).unwrap_or_else(|error| error.exit());
    parsed.refuse_other_clusters().unwrap_or_else(|error| error.exit());
    parsed.manager.init_logging();
    let verb = parsed.verb.unwrap_or(Verb::Run);
    let manager = Manager::with_args(parsed.manager);
    (manager.before_start(move |manager| run_command(verb, config_schema::<A>, manager)), parsed.own)
}

/// A command of an operator.
#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Run the operator (the default)
    Run,
    /// Run the operator on an embedded Kubernetes control plane, in this process
    Dev(DevArgs),
    /// Print the operator's CRDs as YAML
    Crds,
    /// Print the JSON schema of the file that --config reads
    ConfigSchema,
    /// Print the declarations of the operator as JSON, for `windlass manifests`
    #[command(hide = true)]
    Manifests,
}

/// Makes the JSON schema of the configuration file of one operator.
type MakeSchema = fn() -> std::result::Result<serde_json::Value, clap::Error>;

/// Carries out a command.
///
/// `schema` makes the schema of the configuration file.
pub(super) async fn run_command(verb: Verb, schema: MakeSchema, manager: Manager) -> Result<()> {
    match verb {
        Verb::Run => end(manager.run().await),
        Verb::Dev(args) => end(dev(args, manager).await),
        Verb::ConfigSchema => write_schema(schema, &mut std::io::stdout().lock()),
        Verb::Crds => write_crds(manager.crds(), &mut std::io::stdout().lock()),
        Verb::Manifests => write_inventory(&manager, &mut std::io::stdout().lock()),
    }
}

/// Writes the JSON schema of the file that `--config` reads.
fn write_schema(schema: MakeSchema, out: &mut impl Write) -> Result<()> {
    let schema = schema().map_err(Error::other)?;
    serde_json::to_writer_pretty(&mut *out, &schema)?;
    out.write_all(b"\n").map_err(Error::other)
}

/// Returns the JSON schema of the file that `--config` reads, with the operator's own flags.
pub(super) fn config_schema<A: Args>() -> std::result::Result<serde_json::Value, clap::Error> {
    command::<A>().map(|command| config_file::schema(&command))
}

/// Logs the error of an operator that failed, and exits the process.
fn end(result: Result<()>) -> Result<()> {
    if let Err(error) = &result
        && tracing::enabled!(tracing::Level::ERROR)
    {
        tracing::error!(%error, "the operator failed");
        std::process::exit(1);
    }
    result
}

#[derive(Args, Debug)]
pub(super) struct NoArgs {}

#[derive(Debug)]
pub(super) struct Parsed<A> {
    pub(super) verb: Option<Verb>,
    pub(super) manager: ManagerArgs,
    pub(super) own: A,
}

impl<A> Parsed<A> {
    /// Refuses flags that select a cluster together with `dev`, which starts an embedded cluster.
    fn refuse_other_clusters(&self) -> std::result::Result<(), clap::Error> {
        let ManagerArgs { kubeconfig, context, master, .. } = &self.manager;
        let flags = [
            ("--kubeconfig", kubeconfig.is_some()),
            ("--context", context.is_some()),
            ("--master", master.is_some()),
        ];
        match flags.iter().find(|(_, given)| *given) {
            Some((flag, _)) if matches!(self.verb, Some(Verb::Dev(_))) => {
                let text =
                    format_args!("{flag} names a cluster, but `dev` starts an embedded cluster; use `run`");
                Err(super::refusal(ErrorKind::ArgumentConflict, text))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn parse<A: Args>(
    line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    version: Option<&'static str>,
) -> std::result::Result<Parsed<A>, clap::Error> {
    let line: Vec<OsString> = line.into_iter().map(Into::into).collect();
    let mut command = command::<A>()?;
    if let Some(version) = version {
        command = command.version(version);
    }
    if let Some(path) = config_file::named_by(&line, std::env::var_os(config_file::VARIABLE)) {
        command = ConfigFile::read(path.as_ref())?.apply(command)?;
    }
    let matches = command.try_get_matches_from_mut(line)?;
    let parsed = || {
        Ok(Parsed {
            // Without a subcommand the derived parser fails.
            verb: matches.subcommand_name().map(|_| Verb::from_arg_matches(&matches)).transpose()?,
            manager: ManagerArgs::from_arg_matches(&matches)?,
            own: A::from_arg_matches(&matches)?,
        })
    };
    parsed().map_err(|error: clap::Error| error.format(&mut command))
}

fn command<A: Args>() -> std::result::Result<Command, clap::Error> {
    let name = program_name();
    let mut base =
        Command::new("operator").bin_name(name.clone()).display_name(name).disable_help_subcommand(true);
    refuse_clashes::<A>(&mut base)?;
    // Allow flags after a command, as for the common flags.
    let global = |arg: Arg| {
        let global = !arg.is_required_set() && !arg.is_positional();
        arg.global(global)
    };
    // The last type with a doc comment describes the program.
    let base = Verb::augment_subcommands(base).about("A Kubernetes operator").after_help(ELSEWHERE);
    let own: BTreeSet<_> =
        A::augment_args(Command::new("own")).get_arguments().map(|arg| arg.get_id().clone()).collect();
    let command = ManagerArgs::augment_args(A::augment_args(base).mut_args(global));
    Ok(command.mut_args(|arg| if own.contains(arg.get_id()) { arg } else { with_variable(arg) }))
}

/// The part of `--help` about environment variables and the configuration file.
const ELSEWHERE: &str = "\
Flags without a listed environment variable have a variable, too: WINDLASS_LEADER_ELECT=true sets --leader-elect.
The file of --config has flags in camelCase: leaderElect: true. A flag overrides the variable, and a variable overrides the file.";

/// Gives a flag an environment variable, unless the flag has a variable. The variable of the namespaces is
/// kubebuilder's.
fn with_variable(arg: Arg) -> Arg {
    let Some(name) = arg.get_long().filter(|_| arg.get_env().is_none()).map(str::to_owned) else {
        return arg;
    };
    let variable = match name.as_str() {
        "namespace" => "WATCH_NAMESPACE".to_owned(),
        name => format!("WINDLASS_{}", name.replace('-', "_").to_uppercase()),
    };
    arg.env(variable).hide_env(true)
}

/// Refuses flags of the operator that have the name of a common flag.
fn refuse_clashes<A: Args>(base: &mut Command) -> std::result::Result<(), clap::Error> {
    let flags = |command: Command| -> BTreeSet<String> {
        let flags = command.get_arguments().filter_map(|arg| {
            let id = (!arg.is_positional()).then(|| arg.get_id().to_string());
            arg.get_long().map(ToOwned::to_owned).or(id)
        });
        flags.collect()
    };
    let common = flags(ManagerArgs::augment_args(Command::new("common")));
    let own = flags(A::augment_args(Command::new("own")));
    match own.intersection(&common).next() {
        Some(flag) => Err(base.error(
            ErrorKind::ArgumentConflict,
            format!("the program declares --{flag}, which every operator has; rename its field"),
        )),
        None => Ok(()),
    }
}
