use std::time::Duration;

use clap::Parser;
use expect_test::{Expect, expect};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::Manager;

use super::{
    BindAddress, FromArgs, ManagerArgs,
    command::{Parsed, Verb, obey, parse},
    crds::write_crds,
    logging::filter,
};

/// Keeps backups of databases.
#[derive(clap::Args, Debug)]
struct BackupArgs {
    /// Where to store backups
    #[arg(long, default_value = "http://store:9000")]
    store: String,
}

#[derive(clap::Args, Debug)]
struct Clashing {
    #[arg(long)]
    namespace: Option<String>,
}

fn line(words: &str) -> Vec<String> {
    std::iter::once("backup").chain(words.split_whitespace()).map(ToOwned::to_owned).collect()
}

fn parsed(words: &str) -> Parsed<BackupArgs> {
    parse(line(words)).expect("a good command line")
}

fn error<A: clap::Args + std::fmt::Debug>(words: &str) -> String {
    parse::<A>(line(words)).expect_err("refused").to_string()
}

fn check(text: &str, wanted: Expect) {
    // The test's program has a name that changes.
    let name = super::args::program_name();
    wanted.assert_eq(&text.replace(&name, "backup"));
}

#[test]
fn flags_of_the_operators_own_go_with_every_command() {
    assert_eq!(parsed("").verb, None);
    assert_eq!(parsed("").own.store, "http://store:9000");
    assert_eq!(parsed("run --store a --leader-elect").own.store, "a");
    assert!(parsed("run --store a --leader-elect").manager.leader_elect);
    assert_eq!(parsed("--store a crds").own.store, "a");
    assert_eq!(parsed("crds").verb, Some(Verb::Crds));
}

#[test]
fn flags_of_the_webhook_server() {
    let defaults = parsed("").manager.webhook_defaults();
    assert_eq!(defaults.port, 9443);
    assert!(defaults.files.certificate_path().ends_with("k8s-webhook-server/serving-certs/tls.crt"));
    let line = "--webhook-port 1 --webhook-cert-path /c --webhook-cert-name a.crt --webhook-cert-key a.key";
    let set = parsed(line).manager.webhook_defaults();
    assert_eq!((set.port, set.files.certificate_path()), (1, "/c/a.crt".into()));
}

#[test]
fn a_flag_that_every_operator_has_is_refused() {
    check(
        &error::<Clashing>(""),
        expect![[r"
        error: the program declares --namespace, which every operator has; rename its field

        Usage: backup

        For more information, try '--help'.
    "]],
    );
}

#[test]
fn help_begins_with_the_programs_own_description() {
    let help = error::<BackupArgs>("--help");
    let head = help.lines().take(10).fold(String::new(), |head, line| {
        head + line
            + "
"
    });
    check(
        &head,
        expect![[r"
            Keeps backups of databases

            Usage: backup [OPTIONS] [COMMAND]

            Commands:
              run   Run the operator (the default)
              dev   Run the operator on a Kubernetes control plane of its own, in this process
              crds  Print the operator's CRDs as YAML

            Options:
        "]],
    );
}

#[test]
fn flattened_flags_leave_the_description_alone() {
    /// Another program.
    #[derive(clap::Parser, Debug)]
    struct Program {
        #[command(flatten)]
        _manager: ManagerArgs,
    }
    #[derive(clap::Parser, Debug)]
    struct Undescribed {
        #[command(flatten)]
        _manager: ManagerArgs,
    }
    let help = Program::try_parse_from(["program", "--help"]).expect_err("help").to_string();
    assert!(help.starts_with("Another program\n"), "{help}");
    let help = Undescribed::try_parse_from(["program", "--help"]).expect_err("help").to_string();
    assert!(help.starts_with("Usage: "), "{help}");
}

#[test]
fn addresses_are_written_as_in_go() {
    let parse =
        |text: &str| text.parse::<BindAddress>().map(|address| address.address().map(|a| a.to_string()));
    assert_eq!(parse(":8081"), Ok(Some("[::]:8081".to_owned())));
    assert_eq!(parse("localhost:8081"), Ok(Some("127.0.0.1:8081".to_owned())));
    assert_eq!(parse("10.0.0.1:80"), Ok(Some("10.0.0.1:80".to_owned())));
    assert_eq!(parse("0"), Ok(None));
    assert_eq!(parse("8081"), Err("expected an address such as :8081 or 127.0.0.1:8081, or 0".to_owned()));
}

#[test]
fn times_of_the_election_are_written_as_in_go() {
    let args = parsed("--leader-election-lease-duration 1m30s --leader-election-retry-period 500ms").manager;
    assert_eq!(args.leader_election_lease_duration, Duration::from_secs(90));
    assert_eq!(args.leader_election_renew_deadline, Duration::from_secs(10));
    assert_eq!(args.leader_election_retry_period, Duration::from_millis(500));
    assert!(error::<BackupArgs>("--leader-election-retry-period soon").contains("expected a duration"));
    assert!(error::<BackupArgs>("--leader-election-retry-period=-2s").contains("expected a duration"));
}

#[test]
fn a_filter_silences_what_windlass_says_itself() {
    let text = |level| filter(level).expect("a filter").to_string();
    assert!(text("debug").contains("kube_client::client::builder=off"));
    assert!(text("kube_client::client::builder=debug").contains("kube_client::client::builder=debug"));
    assert!(filter("what=ever=this").is_err());
}

/// Runs an operator that cannot start in a process of its own, and returns what it writes to stderr.
fn stderr_of_an_operator(log_format: &str) -> String {
    let program = std::env::current_exe().expect("a path");
    let child = std::process::Command::new(program)
        .args(["--exact", "cli::tests::an_operator_that_cannot_start", "--include-ignored"])
        .env("WINDLASS_TEST_LOG_FORMAT", log_format)
        .output()
        .expect("it runs");
    assert_eq!(child.status.code(), Some(1));
    String::from_utf8(child.stderr).expect("text")
}

#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn an_operator_that_cannot_start() {
    let Ok(log_format) = std::env::var("WINDLASS_TEST_LOG_FORMAT") else { return };
    let args = line(&format!("--kubeconfig /nonexistent --log-format {log_format}"));
    let parsed = parse::<BackupArgs>(args).expect("a good command line");
    parsed.manager.init_logging();
    let _ = std::thread::spawn(|| panic!("on purpose")).join();
    let _ = obey(Verb::Run, Manager::with_args(parsed.manager)).await;
}

#[test]
fn every_line_of_a_json_log_is_json() {
    let text = stderr_of_an_operator("json");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let messages: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(messages, ["a thread panicked", "the operator failed"]);
    assert_eq!(lines[0]["panic"], "on purpose");
    assert!(lines[1]["error"].as_str().is_some_and(|error| error.starts_with("kubeconfig /nonexistent: ")));
}

#[test]
fn a_log_that_is_not_on_a_terminal_has_no_colours() {
    let text = stderr_of_an_operator("text");
    assert!(text.contains("the operator failed") && !text.contains('\u{1b}'), "{text}");
}

/// A backup.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Backup", namespaced)]
struct BackupSpec {
    /// The number of copies.
    copies: u32,
}

#[test]
fn crds_are_printed_without_formats_that_the_server_warns_of() {
    let mut out = Vec::new();
    write_crds(&[Backup::crd()], &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    assert!(
        text.starts_with("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"),
        "{text}"
    );
    assert!(text.contains("name: backups.example.com\n") && text.contains("minimum: 0"), "{text}");
    assert!(!text.contains("uint32"), "{text}");
}
