//! `/statusz` and `/flagz`.

use expect_test::expect;
use http::Method;
use serde_json::json;
use windlass_apiserver::Server;

use crate::harness::Api;

fn structured(format: &str, kind: &str, version: &str) -> String {
    format!("application/{format};g=config.k8s.io;v={version};as={kind}")
}

fn text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn the_pages_are_texts_for_people() {
    let api = Api::start();
    for accept in ["", "*/*", "text/plain", "text/*", "application/json,text/plain;q=0.1"] {
        for page in ["statusz", "flagz"] {
            let reply = api.request(Method::GET, &format!("/{page}")).accept(accept).send().await.is(200);
            assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{accept}");
            let start =
                format!("\napiserver {page}\nWarning: This endpoint is not meant to be machine parseable");
            assert!(text(&reply.body).starts_with(&start), "{accept} {reply}");
        }
    }
    let statusz = text(&api.get("/statusz").await.is(200).body);
    let paths = " /flagz /healthz /livez /metrics /readyz /statusz /version\n";
    for part in
        ["\nStarted", "\nUp", "\nGo version", "\nBinary version", "\nEmulation version", "\nPaths", paths]
    {
        assert!(statusz.contains(part), "{part} {statusz}");
    }
    // The method does not matter, and the path has no continuation.
    for method in [Method::POST, Method::OPTIONS] {
        api.request(method, "/statusz").send().await.is(200);
    }
    api.get("/statusz/").await.is(404);
    api.get("/flagz/x").await.is(404);
}

#[tokio::test]
async fn the_pages_are_objects_for_programs() {
    let api = Api::start();
    for (page, kind) in [("/statusz", "Statusz"), ("/flagz", "Flagz")] {
        let accept = structured("json", kind, "v1beta1");
        let reply = api.request(Method::GET, page).accept(&accept).send().await.is(200);
        assert_eq!(reply.header("content-type"), Some(&*accept));
        assert_eq!(reply.warnings(), [] as [&str; 0]);
        let start = format!(
            r#"{{"kind":"{kind}","apiVersion":"config.k8s.io/v1beta1","metadata":{{"name":"apiserver"}}"#
        );
        assert!(text(&reply.body).starts_with(&start), "{reply}");

        let accept = structured("yaml", kind, "v1alpha1");
        let reply = api.request(Method::GET, page).accept(&accept).send().await.is(200);
        assert_eq!(reply.header("content-type"), Some(&*accept));
        let warning = format!(
            "299 - \"This version of the {} endpoint is deprecated. Please use a newer version.\"",
            &page[1..]
        );
        assert_eq!(reply.warnings(), [warning]);
        assert!(text(&reply.body).starts_with("apiVersion: config.k8s.io/v1alpha1\n"), "{reply}");
    }
    let statusz = api.request(Method::GET, "/statusz").accept(&structured("json", "Statusz", "v1beta1"));
    let statusz = statusz.send().await.is(200).json();
    assert_eq!(statusz["paths"][0], "/flagz");
    for field in ["startTime", "goVersion", "binaryVersion", "emulationVersion"] {
        assert!(statusz[field].is_string(), "{field}");
    }
    assert!(statusz["uptimeSeconds"].is_number());
}

#[tokio::test]
async fn other_forms_of_the_pages_are_refused() {
    let api = Api::start();
    for accept in [
        "application/json".to_owned(),
        "application/vnd.kubernetes.protobuf".to_owned(),
        "application/vnd.kubernetes.protobuf,application/json".to_owned(),
        "text/plain;stream=watch".to_owned(),
        format!("text/plain;{}", &structured("json", "Statusz", "v1beta1")[17..]),
        structured("json", "Flagz", "v1beta1"),
        structured("json", "Statusz", "v1"),
    ] {
        let reply = api.request(Method::GET, "/statusz").accept(&accept).send().await;
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
        assert_eq!(
            reply.to_string(),
            "406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, text/plain",
            "{accept}"
        );
        let is_compact = accept.ends_with("application/json");
        assert_eq!(reply.body.ends_with(b"\n"), is_compact, "{accept}");
    }
}

#[tokio::test]
async fn monitoring_may_read_the_pages() {
    let api = Api::start();
    for page in ["/statusz", "/flagz"] {
        api.impersonating("someone", &["system:monitoring"]).get(page).await.is(200);
        let refused = api.impersonating("someone", &["system:authenticated"]).get(page).await;
        assert_eq!(
            refused.text_at("/message"),
            format!("forbidden: User \"someone\" cannot get path \"{page}\"")
        );
    }
}

#[tokio::test]
async fn the_flags_of_a_program_are_shown() {
    let server = Server::builder().flag("secure-port", "6443").flag("bind-address", "::").build().unwrap();
    let api = Api::embedded(&server);
    let flags =
        api.request(Method::GET, "/flagz").accept(&structured("json", "Flagz", "v1beta1")).send().await;
    assert_eq!(flags.is(200).at("/flags"), json!({"bind-address": "::", "secure-port": "6443"}));
    let page = text(&api.get("/flagz").await.is(200).body);
    expect![[r"

        apiserver flagz
        Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
        bind-address=::
        secure-port=6443
    "]]
    .assert_eq(&page);
}
