use std::{
    ffi::OsString,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::{Client, client::Body};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Call, ClientBuilder, JSON, OnUnknownOutcome, Target,
    config::ConfigSource,
    exchange::Exchange,
    path::{ResourcePath, query_flag},
    retry::{Repeatable, RetryPolicy, retry_after},
};
use crate::{Error, Manager, RunContext, Runnable, error::BoxError};

#[allow(clippy::unnecessary_wraps, reason = "a path that was parsed is compared with the result")]
fn parts<'a>(
    group: &'a str,
    resource: &'a str,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
) -> Option<ResourcePath<'a>> {
    let (namespace, name) = (namespace.map(Into::into), name.map(Into::into));
    Some(ResourcePath { group, resource, namespace, name, subresource })
}

#[test]
fn a_path_is_taken_apart() {
    assert_eq!(ResourcePath::parse("/api/v1/pods"), parts("", "pods", None, None, None));
    assert_eq!(
        ResourcePath::parse("/api/v1/namespaces/a/pods/b"),
        parts("", "pods", Some("a"), Some("b"), None)
    );
    assert_eq!(
        ResourcePath::parse("/apis/apps/v1/namespaces/a/deployments/b/status"),
        parts("apps", "deployments", Some("a"), Some("b"), Some("status"))
    );
    assert_eq!(
        ResourcePath::parse("/api/v1/namespaces/a/pods/b%3Fc"),
        parts("", "pods", Some("a"), Some("b?c"), None)
    );
    assert_eq!(
        ResourcePath::parse("/api/v1/nodes/n/status"),
        parts("", "nodes", None, Some("n"), Some("status"))
    );
}

#[test]
fn a_namespace_is_an_object_and_a_place() {
    assert_eq!(ResourcePath::parse("/api/v1/namespaces"), parts("", "namespaces", None, None, None));
    assert_eq!(ResourcePath::parse("/api/v1/namespaces/a"), parts("", "namespaces", None, Some("a"), None));
    assert_eq!(
        ResourcePath::parse("/api/v1/namespaces/a/finalize"),
        parts("", "namespaces", None, Some("a"), Some("finalize"))
    );
    assert_eq!(ResourcePath::parse("/api/v1/namespaces/a/pods"), parts("", "pods", Some("a"), None, None));
}

#[test]
fn paths_without_a_resource() {
    for path in ["/version", "/openapi/v3", "/api", "/api/v1", "/apis/apps/v1", "/", ""] {
        assert_eq!(ResourcePath::parse(path), None, "{path}");
    }
}

#[test]
fn flags_in_a_query() {
    assert!(query_flag(Some("watch=true&timeoutSeconds=1"), "watch"));
    assert!(query_flag(Some("limit=1&watch=1"), "watch"));
    assert!(!query_flag(Some("watch=false"), "watch"));
    assert!(!query_flag(Some("unwatch=true"), "watch"));
    assert!(!query_flag(None, "watch"));
}

fn wait(repeatable: Repeatable, code: u16, asked: Option<u64>, retry: u32) -> Option<Duration> {
    let code = StatusCode::from_u16(code).unwrap();
    RetryPolicy::default().wait(repeatable, code, asked.map(Duration::from_secs), retry, 0.0)
}

#[test]
fn the_servers_word_is_obeyed() {
    assert_eq!(wait(Repeatable::Yes, 429, Some(3), 0), Some(Duration::from_secs(3)));
    assert_eq!(wait(Repeatable::Yes, 503, None, 2), Some(Duration::from_millis(400)));
    assert_eq!(wait(Repeatable::Yes, 500, Some(1), 0), None);
    assert_eq!(wait(Repeatable::Yes, 404, None, 0), None);
}

#[test]
fn a_create_is_repeated_only_when_it_was_refused() {
    assert_eq!(wait(Repeatable::OnlyIfRefused, 429, Some(1), 0), Some(Duration::from_secs(1)));
    assert_eq!(wait(Repeatable::OnlyIfRefused, 429, None, 0), None, "a 429 of who knows what");
    assert_eq!(wait(Repeatable::OnlyIfRefused, 503, Some(1), 0), None, "it may have been carried out");
    assert_eq!(wait(Repeatable::OnlyIfRefused, 504, Some(1), 0), None, "it may have been carried out");
}

#[test]
fn retries_are_bounded() {
    assert_eq!(wait(Repeatable::Yes, 429, Some(1), 4), None, "too many");
    assert_eq!(wait(Repeatable::Yes, 429, Some(11), 0), None, "too long: the caller knows better what to do");
}

#[test]
fn what_may_be_repeated() {
    let of = |method: Method, content_type: Option<&'static str>, subresource| {
        Repeatable::of(&method, content_type.unwrap_or_default().as_bytes(), subresource)
    };
    assert_eq!(of(Method::GET, None, None), Repeatable::Yes);
    assert_eq!(of(Method::PUT, None, None), Repeatable::Yes);
    assert_eq!(of(Method::PATCH, Some("application/apply-patch+yaml"), None), Repeatable::Yes);
    assert_eq!(of(Method::PATCH, Some("application/json-patch+json"), None), Repeatable::OnlyIfRefused);
    assert_eq!(of(Method::POST, None, None), Repeatable::OnlyIfRefused);
    assert_eq!(of(Method::POST, None, Some("eviction")), Repeatable::Never);
}

#[test]
fn retry_after_is_a_number_of_seconds() {
    let parse = |text: &'static str| {
        retry_after(&HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))]))
    };
    assert_eq!(parse("7"), Some(Duration::from_secs(7)));
    assert_eq!(parse("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    assert_eq!(parse("-1"), None);
    assert_eq!(parse("18446744073709551615"), Some(Duration::from_mins(2)), "cut");
    assert_eq!(retry_after(&HeaderMap::new()), None);
}

/// Writes a kubeconfig with a context of this name, for a server of the same name.
fn kubeconfig(folder: &Path, name: &str, current: bool) -> String {
    let path = folder.join(format!("{name}.yaml"));
    let current = if current { format!("current-context: {name}\n") } else { String::new() };
    let text = format!(
        "apiVersion: v1\nkind: Config\n{current}\
         clusters: [{{name: {name}, cluster: {{server: \"https://{name}.example:6443\"}}}}]\n\
         users: [{{name: {name}, user: {{token: secret-of-{name}}}}}]\n\
         contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}, namespace: ns-{name}}}}}]\n"
    );
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

async fn load(source: &ConfigSource, env: &[(&str, &str)]) -> Result<(String, String), String> {
    let env =
        |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
    let config = source.load_in(&env).await.map_err(|error| error.to_string())?;
    Ok((config.cluster_url.to_string(), config.default_namespace))
}

fn cluster(name: &str) -> (String, String) {
    (format!("https://{name}.example:6443/"), format!("ns-{name}"))
}

#[tokio::test]
async fn several_kubeconfigs_are_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (kubeconfig(folder.path(), "a", false), kubeconfig(folder.path(), "b", true));
    let both = format!("{a}:{}:{b}", folder.path().join("missing.yaml").display());
    let env = [("KUBECONFIG", both.as_str()), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    assert_eq!(
        load(&ConfigSource::default(), &env).await,
        Ok(cluster("b")),
        "the first that says which is current"
    );
    let of_a = ConfigSource { context: Some("a".to_owned()), ..ConfigSource::default() };
    assert_eq!(load(&of_a, &env).await, Ok(cluster("a")));
    let nowhere = ConfigSource { context: Some("c".to_owned()), ..ConfigSource::default() };
    assert_eq!(
        load(&nowhere, &env).await,
        Err(format!("KUBECONFIG={both}: has no context \"c\", only: a, b"))
    );
}

/// The environment of this process is not a pod's.
#[tokio::test]
async fn a_pod_without_a_token_uses_the_kubeconfig_of_the_home_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().display().to_string();
    let env = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("HOME", path.as_str())];
    let error = load(&ConfigSource::default(), &env).await.expect_err("no source");
    assert!(error.starts_with("the pod's service account: "), "{error}");
    let file = kubeconfig(home.path(), "a", true);
    std::fs::create_dir(home.path().join(".kube")).expect("created");
    std::fs::rename(file, home.path().join(".kube/config")).expect("moved");
    assert_eq!(load(&ConfigSource::default(), &env).await, Ok(cluster("a")));
}

/// `kubectl config unset current-context` leaves an empty text.
#[tokio::test]
async fn an_empty_current_context_says_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (kubeconfig(folder.path(), "a", true), kubeconfig(folder.path(), "b", true));
    let text = std::fs::read_to_string(&a).expect("a kubeconfig");
    std::fs::write(&a, text.replace("current-context: a", "current-context: \"\"")).expect("written");
    let both = format!("{a}:{b}");
    assert_eq!(load(&ConfigSource::default(), &[("KUBECONFIG", &both)]).await, Ok(cluster("b")));
    let of_a = ConfigSource { kubeconfig: Some(a.clone().into()), ..ConfigSource::default() };
    let error = load(&of_a, &[]).await.expect_err("no context");
    assert_eq!(error, format!("{a}: names no current context; choose one with --context: a"));
}

#[tokio::test]
async fn flags_come_before_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (kubeconfig(folder.path(), "a", true), kubeconfig(folder.path(), "b", true));
    let env = [("KUBECONFIG", a.as_str())];
    let file = ConfigSource { kubeconfig: Some(b.into()), ..ConfigSource::default() };
    assert_eq!(load(&file, &env).await, Ok(cluster("b")));
    let master = ConfigSource { master: Some("http://127.0.0.1:8080".to_owned()), ..ConfigSource::default() };
    let address = "http://127.0.0.1:8080/".to_owned();
    assert_eq!(load(&master, &env).await, Ok((address.clone(), "ns-a".to_owned())), "the rest is the file's");
    assert_eq!(load(&master, &[]).await, Ok((address, "default".to_owned())), "or nobody's");
}

#[tokio::test]
async fn a_missing_cluster_is_told_with_the_places_that_were_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().display().to_string();
    assert_eq!(
        load(&ConfigSource::default(), &[("HOME", &home)]).await,
        Err(format!(
            "no cluster is configured: --kubeconfig and --master are not given, KUBECONFIG is not set, this is not a pod, \
             and {home}/.kube/config does not exist"
        ))
    );
    let missing = folder.path().join("nosuch").display().to_string();
    let error =
        load(&ConfigSource { kubeconfig: Some(missing.clone().into()), ..ConfigSource::default() }, &[])
            .await;
    assert_eq!(error, Err(format!("kubeconfig {missing}: No such file or directory (os error 2)")));
    assert_eq!(
        load(&ConfigSource::default(), &[("KUBECONFIG", &missing)]).await,
        Err(format!("KUBECONFIG={missing}: none of these files exists"))
    );
    let broken = folder.path().join("broken.yaml");
    std::fs::write(&broken, "clusters: [").expect("written");
    let error = load(&ConfigSource { kubeconfig: Some(broken), ..ConfigSource::default() }, &[]).await;
    assert!(error.is_err(), "{error:?}");
}

/// The right to write has ended, for instance: the server may have carried the write out all the same.
#[tokio::test]
async fn the_outcome_of_a_write_that_is_cancelled_is_unknown() {
    let arrived = Arc::<Notify>::default();
    let arrives = arrived.clone();
    let silent = tower::service_fn(move |_: Request<Body>| {
        arrives.notify_one();
        std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
    });
    let (_, client, _) = super::in_process_without_retries(silent).unwrap();
    let reports = Arc::<AtomicUsize>::default();
    let counted = reports.clone();
    let report = OnUnknownOutcome(Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    let create =
        Call::write(Method::POST, "/api/v1/namespaces/default/pods".to_owned(), JSON, &"pod").unwrap();
    tokio::select! {
        _ = client.call(create.on_unknown(Some(report))) => panic!("there is no answer"),
        () = arrived.notified() => {}
    }
    assert_eq!(reports.load(Ordering::SeqCst), 1);
}

#[test]
fn an_answer_that_does_not_decode_is_not_repeated() {
    let error = super::decode::<Vec<u32>>(br#"["hunter2"]"#).expect_err("not numbers").to_string();
    assert_eq!(
        error,
        "the API server's response does not decode: a field is missing or of another type, at line 1 column 10"
    );
}

/// Each piece of the body comes an hour after the last.
#[tokio::test(start_paused = true)]
async fn the_longest_body_timeout_means_never() {
    let service = tower::service_fn(|_: Request<Body>| async {
        let pieces = stream::iter(["{", "}"]).then(|piece| async move {
            tokio::time::sleep(Duration::from_hours(1)).await;
            Ok::<_, BoxError>(Frame::data(Bytes::from_static(piece.as_bytes())))
        });
        Ok::<_, BoxError>(Response::new(StreamBody::new(Box::pin(pieces))))
    });
    let client = ClientBuilder::to(Target::Client(Client::new(service, "default")));
    let client = client.body_timeout(Duration::MAX).build().expect("a client");
    let request = Request::get("/").body(Vec::new()).expect("a request");
    assert_eq!(client.request_text(request).await.expect("a complete body"), "{}");
}

/// Each request of the runtime allocates the future of its exchange.
#[tokio::test]
async fn the_future_of_an_exchange_is_small() {
    let service = tower::service_fn(|_: Request<Body>| async {
        Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
    });
    let client = ClientBuilder::to(Target::Client(Client::new(service, "default")));
    let (_, service) = client.build_with_service().expect("a client");
    let call = Call::write(Method::POST, "/api/v1/nodes".to_owned(), JSON, &()).expect("a call");
    let size = size_of_val(&Exchange::new(service, Arc::default()).run_call(call));
    assert!(size <= 3584, "{size} bytes");
}

/// The log of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(line)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns a client of a server that drops an unknown field, and says so in a warning only.
fn warned() -> Client {
    let service = tower::service_fn(|_: Request<Body>| async {
        let response = Response::builder().header(header::WARNING, r#"299 - "unknown field \"spec.foo\"""#);
        response.body(Body::empty())
    });
    super::in_process(service).expect("a client")
}

async fn send(client: &Client) {
    client.request_text(Request::get("/").body(Vec::new()).expect("a request")).await.expect("an answer");
}

/// Logs to the returned text until the guard is dropped.
fn logged() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    (log, tracing::subscriber::set_default(subscriber))
}

#[tokio::test]
async fn a_manager_logs_no_warning_of_the_server_if_told_so() {
    for logs in [true, false] {
        let (log, _logged) = logged();
        let sent = Arc::new(Notify::new());
        let tell = Arc::clone(&sent);
        let runnable = Runnable::new("sender", move |cx: RunContext| async move {
            send(cx.client()).await;
            tell.notify_one();
            cx.shutdown().requested().await;
            Ok::<_, Error>(())
        });
        let manager = Manager::new(warned()).log_warnings(logs).runnable(runnable);
        manager.run_until(sent.notified()).await.expect("the manager stops");
        let log = String::from_utf8(log.0.lock().clone()).expect("text");
        assert_eq!(log.contains("the API server warns"), logs, "{log}");
    }
}

#[tokio::test]
async fn a_warning_of_the_server_is_logged_once() {
    let (log, _logged) = logged();
    let client = warned();
    for _ in 0..2 {
        send(&client).await;
    }
    let log = String::from_utf8(log.0.lock().clone()).expect("text");
    assert_eq!(log.matches(r#"the API server warns: unknown field "spec.foo""#).count(), 1, "{log}");
    assert!(log.contains("WARN") && log.contains("method=GET"), "{log}");
}
