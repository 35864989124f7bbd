//! The command line of an operator, in kubebuilder's and kubectl's words.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use tracing_subscriber::EnvFilter;

use super::Manager;
use crate::{
    client::ConfigSource,
    error::{Error, Result},
    leader_election::LeaderElection,
};

/// The flags of an operator. An own command line takes them in with `#[command(flatten)]`.
#[derive(Args, Clone, Debug)]
pub struct ManagerArgs {
    /// Kubeconfig file; without it KUBECONFIG, the pod's service account, or ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Address of the API server, in place of the kubeconfig's
    #[arg(long, global = true, value_name = "URL")]
    pub master: Option<String>,
    /// Namespaces to watch, separated by commas; all of them by default
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub namespace: Vec<String>,
    /// Address of the metrics endpoint, such as :8443; 0 turns it off
    #[arg(long, global = true, value_name = "ADDRESS", default_value = "0")]
    pub metrics_bind_address: BindAddress,
    /// Address of the health endpoints; 0 turns them off
    #[arg(long, global = true, value_name = "ADDRESS", default_value = "0")]
    pub health_probe_bind_address: BindAddress,
    /// Elect a leader, so that of several replicas one works
    #[arg(long, global = true)]
    pub leader_elect: bool,
    /// Name of the Lease the replicas compete for; the program's name by default
    #[arg(long, global = true, value_name = "NAME")]
    pub leader_election_id: Option<String>,
    /// Namespace of that Lease; the pod's or the kubeconfig's by default
    #[arg(long, global = true, value_name = "NAME")]
    pub leader_election_namespace: Option<String>,
    /// What to log: error, warn, info, debug, trace, or a filter as RUST_LOG takes it
    #[arg(long, global = true, value_name = "FILTER", env = "RUST_LOG", default_value = "info")]
    pub log_level: String,
    /// How to log
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

/// How log lines look.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// An address to listen on as Go programs write it: `:8081`, `127.0.0.1:8081`, or `0` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindAddress(Option<SocketAddr>);

impl BindAddress {
    /// The address, if there is to be one.
    pub fn address(self) -> Option<SocketAddr> {
        self.0
    }
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let full = if text.starts_with(':') {
            format!("[::]{text}")
        } else {
            text.replace("localhost", "127.0.0.1")
        };
        full.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| "not an address such as :8081 or 127.0.0.1:8081, nor 0".to_owned())
    }
}

#[derive(Parser)]
#[command(disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    args: ManagerArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator (the default)
    Run,
    /// Print the operator's CRDs as YAML
    Crds,
}

impl ManagerArgs {
    pub(super) fn parse_command_line() -> Manager {
        let name = program_name();
        let matches = CommandLine::command()
            .about("A Kubernetes operator")
            .bin_name(name.clone())
            .display_name(name)
            .get_matches();
        let line = CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        line.args.init_logging();
        let mut manager = Manager::with_args(line.args);
        manager.print_crds = matches!(line.command, Some(Command::Crds));
        manager
    }

    /// Sends log lines to stderr as the flags say. Does nothing when the program set up logging already.
    pub fn init_logging(&self) {
        let filter = EnvFilter::try_new(&self.log_level).unwrap_or_else(|error| {
            CommandLine::command()
                .error(
                    clap::error::ErrorKind::InvalidValue,
                    format!("--log-level {}: {error}", self.log_level),
                )
                .exit()
        });
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        let _ = match self.log_format {
            LogFormat::Text => log.try_init(),
            LogFormat::Json => log.json().flatten_event(true).try_init(),
        };
    }

    /// Where to find the cluster.
    pub fn config_source(&self) -> ConfigSource {
        ConfigSource {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            master: self.master.clone(),
        }
    }

    pub(super) fn namespaces(&self) -> Vec<String> {
        self.namespace.iter().filter(|namespace| !namespace.is_empty()).cloned().collect()
    }

    pub(super) fn leader_election(&self) -> Option<LeaderElection> {
        let id = self.leader_election_id.clone().unwrap_or_else(program_name);
        self.leader_elect.then(|| {
            let election = LeaderElection::new(id);
            match &self.leader_election_namespace {
                Some(namespace) => election.namespace(namespace),
                None => election,
            }
        })
    }
}

fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    path.file_stem().map_or_else(|| "operator".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Prints CRDs as the API server takes them.
pub(super) fn print_crds(crds: &[CustomResourceDefinition]) -> Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    for crd in crds {
        let mut crd = serde_json::to_value(crd)?;
        without_rust_formats(&mut crd);
        let yaml = serde_saphyr::to_string(&crd).map_err(Error::other)?;
        write!(out, "---\n{}\n", yaml.trim_end())?;
    }
    Ok(())
}

/// Formats such as `uint32` are Rust's; the API server warns of each. What they say is in `minimum`, too.
fn without_rust_formats(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint"))
            {
                members.remove("format");
            }
            members.values_mut().for_each(without_rust_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rust_formats),
        _ => {}
    }
}
