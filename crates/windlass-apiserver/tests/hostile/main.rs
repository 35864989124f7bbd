//! The cost of hostile requests. The tests run one after the other in a process of their own, because the tests measure the
//! process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that is wrong about a reply fails there and then")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service;
use windlass_apiserver::{Identity, Server};
use windlass_patience::stretched;

/// The memory that a request may take beyond the size of the request.
const MEMORY: u64 = 64 << 20;

/// The CPU time that a request may take. Without optimisation, the server is about ten times slower.
const CPU: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });

/// Returns a number of kilobytes in the status of this process, in bytes.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in parentheses, may have spaces.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

struct Reply {
    code: u16,
    status: Value,
}

async fn post(server: &Server, path: &str, body: String) -> Reply {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body.into()))
        .unwrap();
    let Ok(response): Result<Response<_>, _> = server.service(Identity::admin()).call(request).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    // A path that is not served yet has a reply without JSON.
    Reply { code, status: serde_json::from_slice(&bytes).unwrap_or_default() }
}

/// Returns `count` copies of a text with commas between the copies. `#` in the text stands for the number of the copy.
fn copies(text: &str, count: usize) -> String {
    let mut all = String::new();
    for number in 0..count {
        let comma = if number == 0 { "" } else { "," };
        write!(all, "{comma}{}", text.replace('#', &number.to_string())).unwrap();
    }
    all
}

/// An object with very many errors: the path, and the body.
fn hostile_objects() -> Vec<(&'static str, String)> {
    let containers = |list: &str| format!(r#"{{"metadata":{{"name":"a"}},"spec":{{{list}}}}}"#);
    let many = copies("{}", 100_000);
    let labels = copies(r#""-#":"-""#, 100_000);
    vec![
        ("/api/v1/namespaces/default/pods", containers(&format!(r#""containers":[{many}]"#))),
        (
            "/api/v1/namespaces/default/pods",
            containers(&format!(r#""containers":[{}]"#, copies("{}", 30_000))),
        ),
        (
            "/api/v1/namespaces/default/pods",
            containers(&format!(r#""containers":[{{"name":"a","image":"i","env":[{many}]}}]"#)),
        ),
        ("/api/v1/namespaces/default/pods", containers(&format!(r#""tolerations":[{many}]"#))),
        ("/api/v1/namespaces/default/pods", containers(&format!(r#""volumes":[{many}]"#))),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            format!(
                r#"{{"metadata":{{"name":"a"}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"spec":{{"containers":[{many}]}}}}}}}}"#
            ),
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            format!(r#"{{"metadata":{{"name":"a"}},"data":{{{}}}}}"#, copies(r#""/#":"""#, 100_000)),
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            format!(r#"{{"metadata":{{"name":"a","labels":{{{labels}}}}}}}"#),
        ),
        (
            "/apis/certificates.k8s.io/v1/certificatesigningrequests",
            containers(&format!(
                r#""request":"","signerName":"a.b/c","usages":[{}]"#,
                copies(r#""a""#, 100_000)
            )),
        ),
        ("/api/v1/namespaces/default/services", containers(&format!(r#""ports":[{many}]"#))),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            format!(
                r#"{{"metadata":{{"name":"a"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"a"}},"subjects":[{many}]}}"#
            ),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            containers(&format!(r#""rules":[{{"http":{{"paths":[{many}]}}}}]"#)),
        ),
    ]
}

/// Creates an object, and checks the memory and the CPU time of the request.
async fn attack(server: &Server, path: &str, body: String) -> Reply {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one = ONE.lock().await;
    let (size, since) = (body.len() as u64, cpu_time());
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let start = Instant::now();
    let reply = post(server, path, body).await;
    let (cpu, grown) = (cpu_time().saturating_sub(since), memory("VmHWM").saturating_sub(before));
    assert!(grown <= MEMORY + size, "{path}: {grown} bytes of memory for {size} bytes");
    assert!(cpu <= CPU && start.elapsed() <= stretched(CPU * 3), "{path}: {cpu:?}");
    reply
}

/// The reply to an object that is too large for the store.
const TOO_LARGE: &str = "etcdserver: request is too large";

#[tokio::test]
async fn an_object_with_very_many_errors_costs_little_memory_and_time() {
    let server = Server::builder().build().unwrap();
    for (path, body) in hostile_objects() {
        let reply = attack(&server, &format!("{path}?dryRun=All"), body).await;
        // The defaults of very many elements alone make an object that is too large for the store.
        let message = reply.status["message"].as_str().unwrap_or_default();
        let is_too_large = reply.code == 500 && message == TOO_LARGE;
        let has_too_many_values = reply.code == 400 && message.contains("the document has too many values");
        let is_refused = reply.code == 422 || is_too_large || has_too_many_values;
        assert!(is_refused, "{path}: {} {message}", reply.code);
        if reply.code == 422 {
            let causes = reply.status["details"]["causes"].as_array().unwrap();
            let last = causes.last().unwrap()["message"].as_str().unwrap();
            assert!(causes.len() <= 1001, "{path}: {} causes", causes.len());
            assert_eq!(last, "Forbidden: too many errors; the others are not listed", "{path}");
        }
    }
}

/// Creates a definition of objects with any content, and returns the path of the objects.
async fn anythings(server: &Server, schema: Value) -> &'static str {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const PATH: &str = "/apis/hostile.test/v1/namespaces/default/anythings";
    let definition = json!({
        "metadata": {"name": "anythings.hostile.test"},
        "spec": {
            "group": "hostile.test", "scope": "Namespaced", "names": {"plural": "anythings", "kind": "Anything"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]
        }
    });
    assert_eq!(post(server, DEFINITIONS, definition.to_string()).await.code, 201);
    while post(server, PATH, anything("{}")).await.code == 404 {
        tokio::task::yield_now().await;
    }
    PATH
}

fn anything(value: &str) -> String {
    format!(
        r#"{{"apiVersion":"hostile.test/v1","kind":"Anything","metadata":{{"generateName":"a-"}},"value":{value}}}"#
    )
}

#[tokio::test]
async fn very_many_branches_of_a_schema_cost_little_time() {
    let server = Server::builder().build().unwrap();
    let branches: Value = (0..1_000).map(|number| json!({"required": [format!("f{number}")]})).collect();
    let item = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "anyOf": branches});
    let value = json!({"type": "array", "items": item});
    let path = anythings(&server, json!({"type": "object", "properties": {"value": value}})).await;
    let body = anything(&format!("[{}]", copies(r#"{"f999":1}"#, 10_000)));
    assert_eq!(attack(&server, path, body).await.code, 422);
}
