use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{
    path::{ResourcePath, query_flag},
    retry::{Repeatable, RetryPolicy, retry_after},
};

type Parts<'a> = (&'a str, &'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>);

fn parts(path: &str) -> Option<Parts<'_>> {
    ResourcePath::parse(path).map(|p| (p.group, p.resource, p.namespace, p.name, p.subresource))
}

#[test]
fn a_path_is_taken_apart() {
    assert_eq!(parts("/api/v1/pods"), Some(("", "pods", None, None, None)));
    assert_eq!(parts("/api/v1/namespaces/a/pods/b"), Some(("", "pods", Some("a"), Some("b"), None)));
    assert_eq!(
        parts("/apis/apps/v1/namespaces/a/deployments/b/status"),
        Some(("apps", "deployments", Some("a"), Some("b"), Some("status")))
    );
    assert_eq!(parts("/api/v1/nodes/n/status"), Some(("", "nodes", None, Some("n"), Some("status"))));
}

#[test]
fn a_namespace_is_an_object_and_a_place() {
    assert_eq!(parts("/api/v1/namespaces"), Some(("", "namespaces", None, None, None)));
    assert_eq!(parts("/api/v1/namespaces/a"), Some(("", "namespaces", None, Some("a"), None)));
    assert_eq!(
        parts("/api/v1/namespaces/a/finalize"),
        Some(("", "namespaces", None, Some("a"), Some("finalize")))
    );
    assert_eq!(parts("/api/v1/namespaces/a/pods"), Some(("", "pods", Some("a"), None, None)));
}

#[test]
fn paths_without_a_resource() {
    for path in ["/version", "/openapi/v3", "/api", "/api/v1", "/apis/apps/v1", "/", ""] {
        assert_eq!(parts(path), None, "{path}");
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
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        Repeatable::of(&method, &headers, subresource)
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
    assert_eq!(retry_after(&HeaderMap::new()), None);
}
