//! Lists in pages, and lists of a given version.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use serde_json::{Value, json};

use crate::fixtures::{config_map, labelled, secret};
use crate::harness::Api;

/// Five secrets, `a` to `e`.
async fn five(api: &Api) -> String {
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["a", "b", "c", "d", "e"] {
        api.post(&path, labelled(secret(name), json!({"n": name}))).await.is(201);
    }
    path
}

#[tokio::test]
async fn pages_follow_each_other_at_one_version() {
    let api = Api::start();
    let path = five(&api).await;
    let first = api.get(&format!("{path}?limit=2")).await.is(200);
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(first.at("/metadata/remainingItemCount"), 3);
    // The following pages do not show later changes.
    api.delete(&format!("{path}/c")).await.is(200);
    api.post(&path, secret("cc")).await.is(201);
    let token = first.text_at("/metadata/continue");
    let second = api.get(&format!("{path}?limit=2&continue={token}")).await.is(200);
    assert_eq!(second.names(), ["c", "d"]);
    assert_eq!(second.version(), first.version());
    assert_eq!(second.at("/metadata/remainingItemCount"), 1);
    let token = second.text_at("/metadata/continue");
    let third = api.get(&format!("{path}?limit=2&continue={token}")).await.is(200);
    assert_eq!(third.names(), ["e"]);
    assert_eq!(third.version(), first.version());
    assert_eq!(third.at("/metadata/continue"), Value::Null);
    assert_eq!(third.at("/metadata/remainingItemCount"), Value::Null);
}

#[tokio::test]
async fn a_continue_token_says_where_to_go_on() {
    let api = Api::start();
    let path = five(&api).await;
    let first = api.get(&format!("{path}?limit=2")).await.is(200);
    let token =
        URL_SAFE_NO_PAD.decode(first.text_at("/metadata/continue")).expect("base64url without padding");
    let token: Value = serde_json::from_slice(&token).expect("JSON");
    assert_eq!(token["v"], "meta.k8s.io/v1");
    assert_eq!(token["rv"], first.version());
    assert!(token["start"].as_str().unwrap().ends_with("b\u{0}"), "{token}");
}

#[tokio::test]
async fn a_limit_that_fits_gives_no_token() {
    let api = Api::start();
    let path = five(&api).await;
    let all = api.get(&format!("{path}?limit=5")).await.is(200);
    assert_eq!(all.names().len(), 5);
    assert_eq!(all.at("/metadata/continue"), Value::Null);
}

#[tokio::test]
async fn with_a_selector_nobody_counts_the_rest() {
    let api = Api::start();
    let path = five(&api).await;
    let page = api.get(&format!("{path}?limit=2&labelSelector=n")).await.is(200);
    assert_eq!(page.names(), ["a", "b"]);
    assert_eq!(page.at("/metadata/remainingItemCount"), Value::Null);
    let token = page.text_at("/metadata/continue");
    let next =
        api.get(&format!("{path}?limit=2&labelSelector=n%20in%20(d,e)&continue={token}")).await.is(200);
    assert_eq!(next.names(), ["d", "e"]);
}

#[tokio::test]
async fn broken_tokens_are_refused() {
    let api = Api::start();
    let path = five(&api).await;
    api.get(&format!("{path}?limit=2&continue=!!")).await.shows(expect!["400 BadRequest: invalid continue token: continue key is not valid: illegal base64 data at input byte 0"]);
    let token = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let other = token(json!({"v": "meta.k8s.io/v9", "rv": 5, "start": "b\u{0}"}));
    api.get(&format!("{path}?limit=2&continue={other}")).await.shows(expect!["400 BadRequest: invalid continue token: continue key is not valid: server does not recognize this encoded version meta.k8s.io/v9"]);
    let outside = token(json!({"v": "meta.k8s.io/v1", "rv": 5, "start": "../b"}));
    api.get(&format!("{path}?limit=2&continue={outside}"))
        .await
        .shows(expect!["400 BadRequest: invalid continue token: continue key is not valid: ../b"]);
    let empty = token(json!({"v": "meta.k8s.io/v1", "rv": 5}));
    api.get(&format!("{path}?limit=2&continue={empty}")).await.shows(expect!["400 BadRequest: invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"]);
    let none = token(json!({"v": "meta.k8s.io/v1", "rv": 0, "start": "b\u{0}"}));
    api.get(&format!("{path}?limit=2&continue={none}")).await.shows(expect!["400 BadRequest: invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"]);
}

#[tokio::test]
async fn a_token_may_ask_to_go_on_with_what_is_there_now() {
    let api = Api::start();
    let path = five(&api).await;
    let token =
        URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": -1, "start": "b\u{0}"}).to_string());
    let page = api.get(&format!("{path}?continue={token}")).await.is(200);
    assert_eq!(page.names(), ["c", "d", "e"]);
}

#[tokio::test]
async fn a_token_excludes_a_version() {
    let api = Api::start();
    let path = five(&api).await;
    let token = api.get(&format!("{path}?limit=2")).await.text_at("/metadata/continue");
    api.get(&format!("{path}?limit=2&continue={token}&resourceVersion=7"))
        .await
        .shows(expect!["400 BadRequest: specifying resource version is not allowed when using continue"]);
    let zero = api.get(&format!("{path}?limit=2&continue={token}&resourceVersion=0")).await.is(200);
    assert_eq!(zero.names()[..2], ["c", "d"]);
    api.get(&format!("{path}?continue={token}&resourceVersionMatch=Exact&resourceVersion=7"))
        .await
        .shows(expect![[r#"
            422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided
            group="meta.k8s.io" kind="ListOptions"
            - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"#]]);
}

#[tokio::test]
async fn an_exact_list_shows_the_past() {
    let api = Api::start();
    let path = five(&api).await;
    let then = api.get(&path).await.version();
    api.delete(&format!("{path}/c")).await.is(200);
    let past = api.get(&format!("{path}?resourceVersion={then}&resourceVersionMatch=Exact")).await.is(200);
    assert_eq!(past.names(), ["a", "b", "c", "d", "e"]);
    assert_eq!(past.version(), then);
    let now =
        api.get(&format!("{path}?resourceVersion={then}&resourceVersionMatch=NotOlderThan")).await.is(200);
    assert!(now.version() >= then);
    // With a limit, a version alone is exact, too.
    let past = api.get(&format!("{path}?resourceVersion={then}&limit=10")).await.is(200);
    assert_eq!(past.names(), ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn the_match_of_versions_is_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&format!("{path}?resourceVersionMatch=Exact")).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"#]]);
    api.get(&format!("{path}?resourceVersionMatch=Exact&resourceVersion=0")).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#]]);
    api.get(&format!("{path}?resourceVersionMatch=Nearly&resourceVersion=5")).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Nearly": supported values: "Exact", "NotOlderThan", ""
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueNotSupported resourceVersionMatch: Unsupported value: "Nearly": supported values: "Exact", "NotOlderThan", """#]]);
    api.get(&format!("{path}?resourceVersion=x")).await.shows(expect![[r#"400 BadRequest: invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#]]);
    api.get(&format!("{path}?limit=-1")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "items": [],
          "kind": "SecretList",
          "metadata": {
            "resourceVersion": "RV"
          }
        }"#]]);
    api.get(&format!("{path}?limit=x"))
        .await
        .shows(expect![[r#"400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax"#]]);
}

#[tokio::test]
async fn a_list_of_the_future_is_waited_for_then_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let future = "resourceVersion=9000000000000000";
    api.get(&format!("/api/v1/namespaces/{ns}/secrets?{future}")).await.shows(expect![[r#"
        504 Timeout: Timeout: Too large resource version: 9000000000000000, current: RV
        retryAfterSeconds=1
        - ResourceVersionTooLarge -: Too large resource version"#]]);
}

#[tokio::test]
async fn version_zero_means_any_and_ignores_the_limit() {
    let api = Api::start();
    let path = five(&api).await;
    api.eventually(&format!("{path}?resourceVersion=0&limit=2"), |reply| reply.names().len() == 5).await;
}

#[tokio::test]
async fn what_is_forgotten_is_not_listed() {
    let api = Api::start();
    let path = five(&api).await;
    api.compact();
    let past = api.get(&format!("{path}?resourceVersion=1&resourceVersionMatch=Exact")).await;
    if api.is_shared() && past.code == 200 {
        // A server that has just been started forgets nothing for some minutes.
        return;
    }
    past.shows(expect!["410 Expired: The resourceVersion for the provided list is too old."]);
    let token =
        URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": 1, "start": "b\u{0}"}).to_string());
    let late = api.get(&format!("{path}?limit=1&continue={token}")).await.is(410);
    assert_eq!(late.text_at("/reason"), "Expired");
    assert!(late.text_at("/message").starts_with("The provided continue parameter is too old"));
    // The error says how to go on with what is there now.
    let token = late.text_at("/metadata/continue");
    assert_eq!(api.get(&format!("{path}?continue={token}")).await.is(200).names(), ["c", "d", "e"]);
}

#[tokio::test]
async fn pages_go_through_all_namespaces() {
    let api = Api::start();
    let label = json!({"pages": api.id});
    for namespace in ["a", "b"] {
        let namespace = api.namespace_named(&format!("{namespace}-{}", api.id)).await;
        for name in ["x", "y"] {
            let secret = labelled(secret(name), label.clone());
            api.post(&format!("/api/v1/namespaces/{namespace}/secrets"), secret).await.is(201);
        }
    }
    let selector = format!("labelSelector=pages%3D{}", api.id);
    let first = api.get(&format!("/api/v1/secrets?limit=3&{selector}")).await.is(200);
    assert_eq!(first.names(), ["x", "y", "x"]);
    let token = first.text_at("/metadata/continue");
    let rest = api.get(&format!("/api/v1/secrets?limit=3&{selector}&continue={token}")).await.is(200);
    assert_eq!(rest.names(), ["y"]);
    assert_eq!(rest.version(), first.version());
}

#[tokio::test]
async fn a_page_of_one_kind_in_the_past_says_nothing_of_another() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["a", "b"] {
        api.post(&maps, config_map(name)).await.is(201);
    }
    let version = api.post(&secrets, secret("a")).await.is(201).version();
    api.post(&maps, config_map("c")).await.is(201);
    api.post(&secrets, secret("b")).await.is(201);
    let exact = format!("resourceVersion={version}&resourceVersionMatch=Exact");
    api.get(&format!("{maps}?{exact}&limit=1")).await.is(200);
    assert_eq!(api.get(&format!("{secrets}?{exact}")).await.is(200).names(), ["a"]);
}

#[tokio::test]
async fn a_token_of_a_version_to_come_is_refused() {
    let api = Api::start();
    if api.is_shared() {
        // The versions to come are other tests'.
        return;
    }
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["a", "b", "c"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let version = api.get(&path).await.version() + 1;
    let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": "a\0"}).to_string();
    let token = URL_SAFE_NO_PAD.encode(token);
    api.get(&format!("{path}?limit=1&continue={token}")).await.is(410);
    api.post(&path, secret("d")).await.is(201);
    api.delete(&format!("{path}/a")).await.is(200);
    let then = api.get(&format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact")).await;
    assert_eq!(then.names(), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn an_old_list_of_a_kind_without_objects_is_empty() {
    let api = Api::start();
    let ns = api.namespace().await;
    let version = api.get(&format!("/api/v1/namespaces/{ns}")).await.version();
    let path = format!("/apis/batch/v1/namespaces/{ns}/jobs");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    });
    api.post(&path, job).await.is(201);
    let exact = format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert!(api.get(&exact).await.is(200).names().is_empty());
}

#[tokio::test]
async fn events_of_the_future_are_not_waited_for() {
    let api = Api::start();
    let ns = api.namespace().await;
    let future = "resourceVersion=999999999999999999";
    let reply = api.get(&format!("/api/v1/namespaces/{ns}/events?{future}")).await.is(504);
    assert_eq!(reply.header("retry-after"), None);
}

#[tokio::test]
async fn a_zero_in_other_words_keeps_the_limit() {
    let api = Api::start();
    let path = five(&api).await;
    for (version, count) in [("0", 5), ("00", 2)] {
        let list = api.get(&format!("{path}?resourceVersion={version}&limit=2")).await.is(200);
        assert_eq!(list.names().len(), count, "{version}");
    }
}

#[tokio::test]
async fn the_errors_of_list_options_are_in_the_order_of_the_checks() {
    let api = Api::start();
    let message =
        async |query: &str| api.get(&format!("/api/v1/configmaps?{query}")).await.is(422).text_at("/message");
    expect![[r#"ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided, resourceVersionMatch: Unsupported value: "\u003c": supported values: "Exact", "NotOlderThan", "", sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]"#]]
        .assert_eq(&message("resourceVersionMatch=%3C&continue=a&sendInitialEvents=true").await);
}
