use std::time::Duration;

use clap::Parser;
use expect_test::{Expect, expect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::Manager;

use super::{
    BindAddress, FromArgs, ManagerArgs,
    command::{NoArgs, Parsed, Verb, parse, run_command},
    crds::write_crds,
    logging::filter,
};

/// Keeps backups of databases.
#[derive(clap::Args, Debug)]
struct BackupArgs {
    /// Where to store backups
    #[arg(long, default_value = "http://store:9000")]
    store: String,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Compress more
    #[arg(long, action = clap::ArgAction::Count)]
    compress: u8,
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
    parse(line(words), None).expect("a good command line")
}

fn error<A: clap::Args + std::fmt::Debug>(words: &str) -> String {
    parse::<A>(line(words), None).expect_err("refused").to_string()
}

fn check(text: &str, wanted: Expect) {
    // The test's program has a name that changes.
    let name = super::args::program_name();
    wanted.assert_eq(&text.replace(&name, "backup"));
}

#[test]
fn a_program_with_a_version_prints_the_version() {
    #[derive(clap::Args, Debug)]
    #[command(version = "1.2.3")]
    struct Versioned {}
    check(
        &error::<Versioned>("--version"),
        expect![[r#"
        backup 1.2.3
    "#]],
    );
    let error = parse::<NoArgs>(line("--version"), Some("4.5.6")).expect_err("the version");
    check(
        &error.to_string(),
        expect![[r"
        backup 4.5.6
    "]],
    );
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
    assert!(!defaults.overriding && parsed("--webhook-local").manager.webhook_defaults().overriding);
    let line = "--webhook-port 1 --webhook-cert-path /c --webhook-cert-name a.crt --webhook-cert-key a.key";
    let set = parsed(line).manager.webhook_defaults();
    assert_eq!((set.port, set.files.certificate_path()), (1, "/c/a.crt".into()));
}

#[test]
fn the_flag_for_crds_goes_before_the_program() {
    let applies = |words: &str| {
        let of = || Manager::with_args(parsed(words).manager);
        (of().applies_crds(), of().apply_crds().applies_crds())
    };
    assert_eq!(applies(""), (false, true));
    assert_eq!(applies("--apply-crds"), (true, true));
    assert_eq!(applies("--apply-crds=false"), (false, false));
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
              run            Run the operator (the default)
              dev            Run the operator on an embedded Kubernetes control plane, in this process
              crds           Print the operator's CRDs as YAML
              config-schema  Print the JSON schema of the file that --config reads

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

#[test]
fn a_level_for_all_targets_is_not_for_the_libraries_of_connections() {
    let shown = |level: &str| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter(level).expect("a filter"));
        tracing::subscriber::with_default(subscriber.with_writer(move || writer.clone()).finish(), || {
            tracing::debug!(target: "h2::codec::framed_write", "1");
            tracing::debug!(target: "rustls::client::hs", "2");
            tracing::debug!(target: "tower::buffer::worker", "3");
            tracing::debug!(target: "tower_operator::reconcile", "4");
            tracing::debug!(target: "windlass_runtime::informer", "5");
            tracing::info!(target: "h2::client", "6");
        });
        let text = String::from_utf8(log.0.lock().expect("a log").clone()).expect("text");
        text.lines().filter_map(|line| line.split(' ').next_back()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown("debug"), "4 5 6");
    assert_eq!(shown("trace"), "4 5 6");
    assert_eq!(shown("debug,h2=debug"), "1 4 5 6");
    assert_eq!(shown("rustls::client=trace,debug"), "2 4 5 6");
    assert_eq!(shown("info,windlass_runtime=debug"), "5 6");
    assert_eq!(shown("warn"), "");
}

/// Keeps the lines of a log.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a log").write(line)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
    let parsed = parse::<BackupArgs>(args, None).expect("a good command line");
    parsed.manager.init_logging();
    let _ = std::thread::spawn(|| panic!("on purpose")).join();
    let _ = run_command(
        Verb::Run,
        super::command::config_schema::<BackupArgs>,
        Manager::with_args(parsed.manager),
    )
    .await;
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
fn crds_are_printed_with_limits_that_the_server_enforces() {
    let mut out = Vec::new();
    write_crds(&[Backup::crd()], &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    assert!(
        text.starts_with("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"),
        "{text}"
    );
    assert!(text.contains("name: backups.example.com\n") && text.contains("minimum: 0"), "{text}");
    assert!(text.contains("maximum: 4294967295"), "{text}");
    assert!(!text.contains("uint32"), "{text}");
}

/// Version 2 of a backup.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v2", kind = "Backup", namespaced, storage = false)]
#[kube(root = "BackupV2")]
struct BackupV2Spec {
    /// The number of copies.
    copies: u64,
}

#[test]
fn the_versions_of_a_kind_are_printed_as_one_crd() {
    let mut out = Vec::new();
    write_crds(&[Backup::crd(), BackupV2::crd()], &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    assert_eq!(text.matches("---\n").count(), 1, "{text}");
    assert!(text.contains("name: v1\n") && text.contains("name: v2\n"), "{text}");
    let refused = write_crds(&[Backup::crd(), Backup::crd(), stored(BackupV2::crd())], &mut Vec::new());
    let error = refused.expect_err("two versions are stored").to_string();
    assert!(
        error.contains("backups.example.com must have one version that is stored, and has v1 and v2"),
        "{error}"
    );
}

fn stored(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.spec.versions.iter_mut().for_each(|version| version.storage = true);
    crd
}

/// Parses a command line with a configuration file.
fn configured(file: &str, words: &str) -> Result<Parsed<BackupArgs>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, file).expect("written");
    let words = format!("{words} --config {}", path.display());
    let place = folder.path().display().to_string();
    parse(line(&words), None)
        .map_err(|error| error.to_string().replace(&place, "").lines().next().unwrap_or_default().to_owned())
}

#[test]
fn a_file_sets_flags_and_the_command_line_goes_before_it() {
    let file = "leaderElect: true\nwebhookPort: 1\nnamespace: [a, b]\nstore: http://file\nlogFormat: json\n";
    let parsed = configured(file, "run --webhook-port 2").expect("parsed");
    let args = &parsed.manager;
    assert!(args.leader_elect);
    assert_eq!((args.webhook_port, &parsed.own.store[..]), (2, "http://file"));
    assert_eq!(args.namespace, ["a", "b"]);
    assert_eq!(args.log_format, super::LogFormat::Json);
    assert!(!configured(file, "--leader-elect=false").expect("parsed").manager.leader_elect);
    let own = configured("dryRun: true\ncompress: 2\n", "").expect("parsed").own;
    assert!(own.dry_run && own.compress == 2);
    assert_eq!(configured("# nothing\n", "").expect("parsed").own.store, "http://store:9000");
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_key() {
    let refused = |file: &str| configured(file, "").expect_err("refused");
    assert_eq!(
        refused("leader-elect: true"),
        r#"error: configuration file /config.yaml: unknown key "leader-elect"; did you mean "leaderElect"?"#
    );
    assert_eq!(
        refused("colour: red"),
        r#"error: configuration file /config.yaml: unknown key "colour"; `config-schema` prints those that there are"#
    );
    assert_eq!(
        refused("webhookPort: many"),
        "error: configuration file /config.yaml: invalid value 'many' for '--webhook-port <PORT>': invalid digit found in string"
    );
    assert_eq!(
        refused("store: {a: b}"),
        "error: configuration file /config.yaml: store: expected a text, a number, true or false"
    );
    assert_eq!(
        refused("dryRun: maybe"),
        "error: configuration file /config.yaml: dryRun: expected true or false"
    );
    assert_eq!(
        refused("compress: much"),
        "error: configuration file /config.yaml: compress: expected a number from 0 to 255"
    );
    assert_eq!(
        refused("- a"),
        "error: configuration file /config.yaml: expected keys and values, such as `leaderElect: true`"
    );
    assert!(refused("config: other.yaml").contains("unknown key \"config\""));
    assert!(refused("a: [").starts_with("error: configuration file /config.yaml: "));
    let missing = parse::<BackupArgs>(line("--config /nonexistent"), None).expect_err("refused").to_string();
    assert!(missing.starts_with("error: configuration file /nonexistent: "), "{missing}");
    assert!(
        missing.ends_with("\n\nFor more information, try '--help'.\n") && !missing.contains("Usage"),
        "{missing}"
    );
}

#[test]
fn the_schema_of_the_file_has_every_flag_with_its_type() {
    let schema = super::command::config_schema::<BackupArgs>().expect("a schema");
    let property = |key: &str| schema["properties"][key].clone();
    assert_eq!(property("leaderElect")["type"], "boolean");
    assert_eq!(property("leaderElect")["default"], false);
    assert_eq!(property("webhookPort")["type"], "integer");
    assert_eq!(property("webhookPort")["default"], 9443);
    assert_eq!(property("namespace")["items"]["type"], "string");
    assert_eq!(property("logFormat")["enum"], serde_json::json!(["text", "json"]));
    assert_eq!(property("store")["description"], "Where to store backups");
    assert_eq!(property("config"), serde_json::Value::Null);
    assert_eq!(property("help"), serde_json::Value::Null);
}

#[test]
fn the_logging_flags_of_zap_set_ours() {
    let zap = |words: &str| {
        let zap = parsed(words).manager.zap;
        (zap.log_format(), zap.log_level())
    };
    assert_eq!(zap(""), (None, None));
    assert_eq!(zap("--zap-devel"), (Some(super::LogFormat::Text), Some("debug")));
    assert_eq!(zap("--zap-devel=false"), (Some(super::LogFormat::Json), Some("info")));
    assert_eq!(
        zap(
            "--zap-devel --zap-encoder=json --zap-log-level=error --zap-stacktrace-level=panic --zap-time-encoding=rfc3339nano"
        ),
        (Some(super::LogFormat::Json), Some("error"))
    );
    assert!(error::<BackupArgs>("--zap-log-level=loud").contains("expected debug, info, error, panic"));
}

#[test]
fn clients_may_use_http2_unless_a_flag_forbids_it() {
    assert!(parsed("").manager.webhook_defaults().http2);
    assert!(parsed("--enable-http2").manager.webhook_defaults().http2);
    assert!(!parsed("--enable-http2=false").manager.webhook_defaults().http2);
}

/// Prints the values of the flags that environment variables set.
#[test]
#[ignore = "runs in a process of its own"]
fn flags_from_the_environment() {
    let parsed =
        configured("webhookPort: 1\nmetricsSecure: true\n", "--leader-election-id flag").expect("parsed");
    let args = parsed.manager;
    assert!(args.leader_elect && !args.metrics_secure);
    assert_eq!((args.webhook_port, args.leader_election_id.as_deref()), (2, Some("flag")));
    assert_eq!(args.namespace, ["a", "b"]);
}

#[test]
fn a_variable_goes_before_the_file_and_a_flag_before_the_variable() {
    let output = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "cli::tests::flags_from_the_environment", "--include-ignored"])
        .env("WINDLASS_LEADER_ELECT", "true")
        .env("WINDLASS_METRICS_SECURE", "false")
        .env("WINDLASS_WEBHOOK_PORT", "2")
        .env("WINDLASS_LEADER_ELECTION_ID", "variable")
        .env("WATCH_NAMESPACE", "a,b")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
