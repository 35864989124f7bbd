//! The flags of the programs: flags without an effect, and the form of flags.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::output::Output;

/// An accepted flag, and the kind of the flag's value.
type Flag = (&'static str, Kind);

/// The value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value.
    Value,
    /// No value, or `=true` or `=false`.
    Switch,
}

use Kind::{Switch, Value};

/// Flags of etcd 3.6 that say where data lie and how members meet.
pub(super) const ETCD_WITHOUT_EFFECT: &[Flag] = &[
    ("advertise-client-urls", Value),
    ("auto-compaction-mode", Value),
    ("auto-compaction-retention", Value),
    ("heartbeat-interval", Value),
    ("election-timeout", Value),
    ("initial-advertise-peer-urls", Value),
    ("initial-cluster", Value),
    ("initial-cluster-state", Value),
    ("initial-cluster-token", Value),
    ("listen-metrics-urls", Value),
    ("listen-peer-urls", Value),
    ("log-level", Value),
    ("log-outputs", Value),
    ("logger", Value),
    ("max-request-bytes", Value),
    ("max-snapshots", Value),
    ("max-wals", Value),
    ("name", Value),
    ("quota-backend-bytes", Value),
    ("snapshot-count", Value),
];

/// Flags of kube-apiserver 1.37 for parts that this server does not have.
pub(super) const APISERVER_WITHOUT_EFFECT: &[Flag] = &[
    ("audit-log-format", Value),
    ("audit-log-maxage", Value),
    ("audit-log-maxbackup", Value),
    ("audit-log-maxsize", Value),
    ("audit-log-mode", Value),
    ("audit-log-path", Value),
    ("audit-policy-file", Value),
    ("contention-profiling", Switch),
    ("default-watch-cache-size", Value),
    ("delete-collection-workers", Value),
    ("emulated-version", Value),
    ("enable-aggregator-routing", Switch),
    ("enable-bootstrap-token-auth", Switch),
    ("enable-garbage-collector", Switch),
    ("enable-priority-and-fairness", Switch),
    ("endpoint-reconciler-type", Value),
    ("etcd-cafile", Value),
    ("etcd-certfile", Value),
    ("etcd-compaction-interval", Value),
    ("etcd-keyfile", Value),
    ("etcd-prefix", Value),
    ("event-ttl", Value),
    ("external-hostname", Value),
    ("feature-gates", Value),
    ("goaway-chance", Value),
    ("http2-max-streams-per-connection", Value),
    ("kubelet-certificate-authority", Value),
    ("kubelet-client-certificate", Value),
    ("kubelet-client-key", Value),
    ("kubelet-preferred-address-types", Value),
    ("livez-grace-period", Value),
    ("log-flush-frequency", Value),
    ("logging-format", Value),
    ("min-request-timeout", Value),
    ("profiling", Switch),
    ("proxy-client-cert-file", Value),
    ("proxy-client-key-file", Value),
    ("requestheader-allowed-names", Value),
    ("requestheader-client-ca-file", Value),
    ("requestheader-extra-headers-prefix", Value),
    ("requestheader-group-headers", Value),
    ("requestheader-username-headers", Value),
    ("runtime-config", Value),
    ("service-account-extend-token-expiration", Switch),
    ("service-account-jwks-uri", Value),
    ("service-account-lookup", Switch),
    ("service-account-max-token-expiration", Value),
    ("service-node-port-range", Value),
    ("shutdown-delay-duration", Value),
    ("storage-backend", Value),
    ("storage-media-type", Value),
    ("tls-cipher-suites", Value),
    ("tls-min-version", Value),
    ("vmodule", Value),
    ("watch-cache", Switch),
    ("watch-cache-sizes", Value),
];

/// Parses the arguments of a program, its name first. Given flags without an effect are named on stderr; an
/// unknown flag ends the process with an error. Returns the program and the values of the flags, defaults included.
pub(super) fn parse<P: CommandFactory + FromArgMatches>(
    without_effect: &[Flag],
    arguments: impl IntoIterator<Item = OsString>,
) -> (P, Vec<(String, String)>) {
    let command = command::<P>(without_effect);
    let matches = command.clone().get_matches_from(arguments);
    for (name, _) in without_effect {
        if matches.contains_id(name) {
            Output::stderr().line(format_args!("--{name} has no effect on this server"));
        }
    }
    (P::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()), values(&command, &matches))
}

/// Returns the names of flags, without the dashes, and the values. The values of a repeated flag are separated by commas.
fn values(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let value = |flag: &Arg| {
        let values = matches.try_get_raw(flag.get_id().as_str()).ok()??;
        let values: Vec<_> = values.map(OsStr::to_string_lossy).collect();
        Some((flag.get_long()?.to_owned(), values.join(",")))
    };
    command.get_arguments().filter_map(value).collect()
}

/// Writes a flag with one dash as a flag with two: Go's package `flag` reads `-data-dir` and `--data-dir` as the same flag.
pub(super) fn with_two_dashes(argument: OsString) -> OsString {
    let is_short = |text: &str| text.len() > 2 && text.starts_with('-') && !text.starts_with("--");
    match argument.to_str() {
        Some(text) if is_short(text) => format!("-{text}").into(),
        _ => argument,
    }
}

/// Returns the flags of a program, including the flags without an effect.
pub(super) fn command<P: CommandFactory>(without_effect: &[Flag]) -> Command {
    P::command().args(without_effect.iter().map(|(name, kind)| argument(name, *kind)))
}

fn argument(name: &'static str, kind: Kind) -> Arg {
    let argument = Arg::new(name).long(name).help("Accepted without effect").action(ArgAction::Append);
    match kind {
        Value => argument.num_args(1),
        Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
    }
}
