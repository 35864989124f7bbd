//! The flags of an operator.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use super::ZapArgs;
use clap::{ArgAction, Args, ValueEnum};
use windlass_runtime::{
    Manager,
    client::ConfigSource,
    leader_election::{LeaderElection, Timing},
    manager::SecureMetrics,
    webhook::{DEFAULT_PORT, ServerDefaults, certificates::CertificateFiles},
};

#[cfg_attr(
    doc,
    doc = "The flags of an operator. A command line of your own includes them with `#[command(flatten)]`."
)]
// Documented for rustdoc only: clap would make the text the description of the program.
#[cfg_attr(not(doc), allow(missing_docs))]
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct ManagerArgs {
    /// File with flags, as YAML: leaderElect: true. Flags and environment variables override the file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Kubeconfig file; default: KUBECONFIG, the pod's service account, or ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Address of the API server; overrides the kubeconfig
    #[arg(long, global = true, value_name = "URL")]
    pub master: Option<String>,
    /// Namespaces to watch, separated by commas; default: all
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub namespace: Vec<String>,
    /// Controllers to run, separated by commas: * selects all, NAME one controller, -NAME deselects a
    /// controller
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        value_delimiter = ',',
        allow_hyphen_values = true,
        default_value = "*"
    )]
    pub controllers: Vec<String>,
    /// Apply the program's CRDs at the start, unless this would break clients or stored objects; default: as the program does
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        action = ArgAction::Set)]
    pub apply_crds: Option<bool>,
    /// Address of the metrics endpoint, such as :8080; 0 turns the endpoint off
    #[arg(long, global = true, value_name = "ADDRESS", default_value = "0")]
    pub metrics_bind_address: BindAddress,
    /// Serve metrics over HTTPS, to clients with the right to read metrics on the API server
    #[arg(long, global = true, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub metrics_secure: bool,
    /// Folder with the certificate of the metrics endpoint; default: the operator makes a self-signed
    /// certificate
    #[arg(long, global = true, value_name = "FOLDER")]
    pub metrics_cert_path: Option<PathBuf>,
    /// Name of the certificate file in the folder of the metrics certificate
    #[arg(long, global = true, value_name = "NAME", default_value = "tls.crt")]
    pub metrics_cert_name: String,
    /// Name of the private key file in the folder of the metrics certificate
    #[arg(long, global = true, value_name = "NAME", default_value = "tls.key")]
    pub metrics_cert_key: String,
    /// Address of the health endpoints, such as :8081; 0 turns the endpoints off
    #[arg(long, global = true, value_name = "ADDRESS", default_value = "0")]
    pub health_probe_bind_address: BindAddress,
    /// Port of the webhook server
    #[arg(long, global = true, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub webhook_port: u16,
    /// Folder with the certificate of the webhook server; default: k8s-webhook-server/serving-certs in the folder for temporary files
    #[arg(long, global = true, value_name = "FOLDER")]
    pub webhook_cert_path: Option<PathBuf>,
    /// Name of the certificate file in the folder of the webhook certificate
    #[arg(long, global = true, value_name = "NAME", default_value = "tls.crt")]
    pub webhook_cert_name: String,
    /// Name of the private key file in the folder of the webhook certificate
    #[arg(long, global = true, value_name = "NAME", default_value = "tls.key")]
    pub webhook_cert_key: String,
    /// Override the code's port and certificate of the webhook server with these flags: `windlass dev` and
    /// `windlass run` set the flag
    #[arg(long, global = true, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub webhook_local: bool,
    /// Stop when standard input ends: `windlass dev` and `windlass run` set the flag, so that no operator outlives the command
    // The variable is declared here, so that a program with its own command line obeys both commands, too.
    #[arg(long, global = true, value_name = "BOOL", env = "WINDLASS_STOP_WITH_STDIN", hide_env = true, default_value_t = false,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub stop_with_stdin: bool,
    /// Let clients of the metrics endpoint and of the webhook server use HTTP/2, besides HTTP/1.1
    #[arg(long, global = true, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub enable_http2: bool,
    /// Elect a leader among the replicas; only the leader reconciles
    #[arg(long, global = true, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,
    /// Name of the Lease that the replicas compete for; default: the program's name
    #[arg(long, global = true, value_name = "NAME")]
    pub leader_election_id: Option<String>,
    /// Namespace of the Lease; default: that of the pod or the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub leader_election_namespace: Option<String>,
    /// How long other replicas wait for a leader that does not renew the Lease
    #[arg(long, global = true, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,
    /// How long the leader tries to renew the Lease before giving up
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,
    /// Time between two tries to acquire or renew the Lease
    #[arg(long, global = true, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_election_retry_period: Duration,
    /// Log level: error, warn, info, debug, trace, or a filter in the syntax of RUST_LOG
    #[arg(long, global = true, value_name = "FILTER", env = "RUST_LOG", default_value = "info")]
    pub log_level: String,
    /// Format of log lines
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub zap: ZapArgs,
}

/// The format of log lines.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, coloured on a terminal
    Text,
    /// One JSON object per line
    Json,
}

/// An address to listen on as Go programs write it: `:8081`, `127.0.0.1:8081`, or `0` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindAddress(Option<SocketAddr>);

impl BindAddress {
    /// Returns the address, or `None` for `0`. `:8081` is `[::]:8081`: all addresses, including IPv4.
    pub fn address(self) -> Option<SocketAddr> {
        self.0
    }
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let full = match text.strip_prefix("localhost:") {
            _ if text.starts_with(':') => format!("[::]{text}"),
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        full.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| "expected an address such as :8081 or 127.0.0.1:8081, or 0".to_owned())
    }
}

/// Parses a duration in Go's form: `15s`, `1m30s`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 15s, 1m30s or 500ms".to_owned();
    let duration: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
    duration.try_into().map_err(|_| expected())
}

impl ManagerArgs {
    /// Returns where to find the cluster.
    pub fn config_source(&self) -> ConfigSource {
        ConfigSource {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            master: self.master.clone(),
        }
    }

    pub(super) fn namespaces(&self) -> impl Iterator<Item = &String> {
        self.namespace.iter().filter(|namespace| !namespace.is_empty())
    }

    pub(super) fn webhook_defaults(&self) -> ServerDefaults {
        let folder = self.webhook_cert_path.clone().filter(|folder| !folder.as_os_str().is_empty());
        let files = folder.map_or_else(CertificateFiles::default, CertificateFiles::in_folder);
        let files = files.certificate_name(&self.webhook_cert_name).key_name(&self.webhook_cert_key);
        ServerDefaults {
            port: self.webhook_port,
            files,
            http2: self.enable_http2,
            overriding: self.webhook_local,
        }
    }

    /// Serves metrics as the flags say.
    pub(super) fn serve_metrics(&self, manager: Manager) -> Manager {
        let Some(address) = self.metrics_bind_address.address() else { return manager };
        if !self.metrics_secure {
            return manager.metrics_address(address);
        }
        let metrics = SecureMetrics::new(address).http2(self.enable_http2);
        let folder = self.metrics_cert_path.as_ref().filter(|folder| !folder.as_os_str().is_empty());
        manager.secure_metrics(match folder {
            None => metrics,
            Some(folder) => metrics.certificate_files(
                CertificateFiles::in_folder(folder)
                    .certificate_name(&self.metrics_cert_name)
                    .key_name(&self.metrics_cert_key),
            ),
        })
    }

    pub(super) fn leader_election(&self) -> Option<LeaderElection> {
        let id = self.leader_election_id.clone().unwrap_or_else(program_name);
        self.leader_elect.then(|| {
            let election = LeaderElection::new(id).timing(Timing {
                lease_duration: self.leader_election_lease_duration,
                renew_deadline: self.leader_election_renew_deadline,
                retry_period: self.leader_election_retry_period,
            });
            match &self.leader_election_namespace {
                Some(namespace) => election.namespace(namespace),
                None => election,
            }
        })
    }
}

pub(super) fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    path.file_stem().map_or_else(|| "operator".to_owned(), |name| name.to_string_lossy().into_owned())
}
