//! Tokens of service accounts: bound objects and audiences.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use windlass_apiserver::Server;

use crate::fixtures::{pod, secret};
use crate::harness::{Api, Reply, deadline, lines};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Creates the service account `bot` in a new namespace, and returns its path.
async fn bot(api: &Api) -> String {
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", api.namespace().await);
    api.post(&accounts, json!({"metadata": {"name": "bot"}})).await.is(201);
    format!("{accounts}/bot")
}

async fn request(api: &Api, bot: &str, spec: Value) -> Reply {
    api.post(&format!("{bot}/token"), json!({"spec": spec})).await
}

async fn review(api: &Api, token: &str, audiences: &[&str]) -> Value {
    api.post(REVIEWS, json!({"spec": {"token": token, "audiences": audiences}})).await.is(201).at("/status")
}

/// The parts of a token that are JSON.
fn parts(token: &str) -> (Value, Value) {
    let mut parts = token.split('.');
    let mut next = || {
        let bytes = URL_SAFE_NO_PAD.decode(parts.next().unwrap()).unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()
    };
    (next(), next())
}

#[tokio::test]
async fn the_request_is_checked() {
    let api = Api::start();
    let bot = bot(&api).await;
    let mut seen = Vec::new();
    let bound = |kind: &str, version: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name}});
    for spec in [
        json!({"expirationSeconds": 599}),
        json!({"expirationSeconds": 4_294_967_297_i64}),
        bound("Pod", "v1", "nope"),
        bound("Secret", "v1", "nope"),
        bound("Node", "v1", "nope"),
        bound("ConfigMap", "v1", "nope"),
        bound("Deployment", "apps/v1", "nope"),
        bound("Secret", "v1", ""),
    ] {
        seen.push(request(&api, &bot, spec).await.to_string());
    }
    let token = format!("{bot}/token");
    seen.push(api.post(&token, json!({"metadata": {"name": "x"}, "spec": {}})).await.to_string());
    seen.push(api.post(&token, json!({"metadata": {"uid": "x"}, "spec": {}})).await.to_string());
    expect![[r#"
        422 Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
        group="authentication.k8s.io" kind="TokenRequest"
        - FieldValueInvalid spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
        422 Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds
        group="authentication.k8s.io" kind="TokenRequest"
        - FieldValueInvalid spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds
        404 NotFound: pods "nope" not found
        kind="pods" name="nope"
        404 NotFound: secrets "nope" not found
        kind="secrets" name="nope"
        404 NotFound: nodes "nope" not found
        kind="nodes" name="nope"
        400 BadRequest: cannot bind token to object of type /v1, Kind=ConfigMap
        400 BadRequest: cannot bind token to object of type apps/v1, Kind=Deployment
        400 BadRequest: Name parameter required.
        422 Invalid: TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified
        group="authentication.k8s.io" kind="TokenRequest" name="bot"
        - FieldValueInvalid metadata.name: Invalid value: "x": must match the service account name if specified
        409 Conflict: Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bot": the UID in the token request (x) does not match the UID of the service account (UID)
        group="authentication.k8s.io" kind="TokenRequest" name="bot"
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_token_is_signed_by_a_published_key() {
    let api = Api::start();
    let bot = bot(&api).await;
    let reply = request(&api, &bot, json!({"audiences": ["a", "b"], "expirationSeconds": 700})).await.is(201);
    let (header, claims) = parts(&reply.text_at("/status/token"));
    let keys = api.get("/openid/v1/jwks").await.is(200);
    assert_eq!(keys.header("content-type"), Some("application/jwk-set+json"));
    assert_eq!(header, json!({"alg": "ES256", "kid": keys.at("/keys/0/kid")}));
    let key = keys.at("/keys/0");
    assert_eq!((&key["kty"], &key["crv"], &key["use"]), (&json!("EC"), &json!("P-256"), &json!("sig")));
    let seconds = |claim: &str| claims[claim].as_i64().unwrap();
    assert_eq!((seconds("exp") - seconds("iat"), seconds("nbf")), (700, seconds("iat")));
    assert_eq!(claims["aud"], json!(["a", "b"]));
    assert_eq!(claims["sub"], format!("system:serviceaccount:ns-{}:bot", api.id));
    assert_eq!(claims["kubernetes.io"]["serviceaccount"]["name"], "bot");
    let configuration = api.get("/.well-known/openid-configuration").await.is(200);
    assert_eq!(configuration.at("/issuer"), claims["iss"]);
    assert_eq!(configuration.at("/id_token_signing_alg_values_supported"), json!(["ES256"]));
    assert!(configuration.text_at("/jwks_uri").ends_with("/openid/v1/jwks"));
}

#[tokio::test]
async fn the_keys_have_one_media_type() {
    let api = Api::start();
    let mut seen = Vec::new();
    for path in ["/openid/v1/jwks", "/.well-known/openid-configuration"] {
        for accept in
            ["application/json", "text/html, */*;q=0.1", "application/*", "application/jwk-set+json; q=1"]
        {
            let reply = api.request(Method::GET, path).accept(accept).send().await;
            let message = reply.json()["message"].as_str().unwrap_or("-").to_owned();
            seen.push(format!("{path} as {accept}: {} {message:?}", reply.code));
        }
    }
    expect![[r#"
        /openid/v1/jwks as application/json: 406 "406: Not Acceptable\n\nAvailable representations: application/jwk-set+json"
        /openid/v1/jwks as text/html, */*;q=0.1: 200 "-"
        /openid/v1/jwks as application/*: 406 "406: Not Acceptable\n\nAvailable representations: application/jwk-set+json"
        /openid/v1/jwks as application/jwk-set+json; q=1: 200 "-"
        /.well-known/openid-configuration as application/json: 200 "-"
        /.well-known/openid-configuration as text/html, */*;q=0.1: 200 "-"
        /.well-known/openid-configuration as application/*: 406 "406: Not Acceptable\n\nAvailable representations: application/json"
        /.well-known/openid-configuration as application/jwk-set+json; q=1: 406 "406: Not Acceptable\n\nAvailable representations: application/json"
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn null_is_an_audience_without_a_name() {
    let api = Api::start();
    let bot = bot(&api).await;
    let reply = request(&api, &bot, json!({"audiences": [null]})).await.is(201);
    assert_eq!(reply.at("/spec/audiences"), json!([""]));
    let status = review(&api, &reply.text_at("/status/token"), &[]).await;
    assert_ne!(status["authenticated"], true, "the token is for the server: {status}");
}

#[tokio::test]
async fn a_review_is_for_audiences() {
    let api = Api::start();
    let bot = bot(&api).await;
    let reply = request(&api, &bot, json!({"audiences": ["a", "b"]})).await.is(201);
    let token = reply.text_at("/status/token");
    let for_b = review(&api, &token, &["b", "c"]).await;
    assert_eq!(for_b["authenticated"], true);
    assert_eq!(for_b["audiences"], json!(["b"]));
    let (_, claims) = parts(&token);
    let id = format!("JTI={}", claims["jti"].as_str().unwrap());
    assert_eq!(for_b["user"]["extra"], json!({"authentication.kubernetes.io/credential-id": [id]}));
    let seen = [
        review(&api, &token, &["c"]).await.to_string(),
        review(&api, &token, &[]).await.to_string(),
        review(&api, "wrong", &[]).await.to_string(),
        review(&api, "a.e30.b", &[]).await.to_string(),
    ];
    expect![[r#"
        {"error":"[invalid bearer token, token audiences [\"a\" \"b\"] is invalid for the target audiences [\"c\"]]","user":{}}
        {"error":"[invalid bearer token, token audiences [\"a\" \"b\"] is invalid for the target audiences [\"https://kubernetes.default.svc\"]]","user":{}}
        {"error":"invalid bearer token","user":{}}
        {"error":"invalid bearer token","user":{}}
    "#]].assert_eq(&lines(&seen));
    // A token for others is none for this server.
    api.with_token(&token).get("/apis").await.is(401);
    api.post(REVIEWS, json!({"spec": {}})).await.is(400);
}

/// Waits until a token is not valid any more, and returns the error of its review.
async fn invalidated(api: &Api, token: &str) -> String {
    // The real server remembers a token for ten seconds.
    let start = std::time::Instant::now();
    loop {
        let status = review(api, token, &[]).await;
        if status["authenticated"] != true {
            return status["error"].as_str().unwrap_or_default().to_owned();
        }
        assert!(api.is_shared() && start.elapsed() < deadline(), "the token is still valid");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_token_of_a_pod_names_it_and_ends_with_it() {
    let api = Api::start();
    let bot = bot(&api).await;
    let ns = format!("ns-{}", api.id);
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let node = format!("node-{}", api.id);
    api.post("/api/v1/nodes", json!({"metadata": {"name": node}})).await.is(201);
    api.discard(format!("/api/v1/nodes/{node}"));
    let mut own = pod("p");
    own["spec"]["serviceAccountName"] = json!("bot");
    own["spec"]["nodeName"] = json!(node);
    let created = api.post(&pods, own).await.is(201);
    api.post(&pods, pod("other")).await.is(201);
    let bound = |name: &str, uid: &Value| json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}});
    request(&api, &bot, bound("other", &json!(null))).await.shows(expect![[r#"400 BadRequest: cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name."#]]);
    request(&api, &bot, bound("p", &json!("no-uid"))).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (no-uid) does not match the UID in record. The object might have been deleted and then recreated
        kind="Pod" name="p""#]]);
    let uid = created.at("/metadata/uid");
    let token = request(&api, &bot, bound("p", &uid)).await.is(201).text_at("/status/token");
    let known = review(&api, &token, &[]).await;
    let extra = &known["user"]["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(extra["authentication.kubernetes.io/pod-uid"], json!([uid]));
    assert_eq!(extra["authentication.kubernetes.io/node-name"], json!([node]));
    let node_uid = api.get(&format!("/api/v1/nodes/{node}")).await.is(200).at("/metadata/uid");
    assert_eq!(extra["authentication.kubernetes.io/node-uid"], json!([node_uid]));
    let as_pod = api.with_token(&token);
    let myself = as_pod.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await.is(201);
    assert_eq!(&myself.at("/status/userInfo/extra"), extra);
    api.delete_with(&format!("{pods}/p"), json!({"gracePeriodSeconds": 0})).await.is(200);
    expect!["[invalid bearer token, service account token has been invalidated]"]
        .assert_eq(&invalidated(&api, &token).await);
    as_pod.get("/apis").await.is(401);
}

#[tokio::test]
async fn a_token_of_a_secret_or_a_node_ends_with_it() {
    let api = Api::start();
    let bot = bot(&api).await;
    let secrets = format!("/api/v1/namespaces/ns-{}/secrets", api.id);
    let node = format!("node-{}", api.id);
    api.post(&secrets, secret("s")).await.is(201);
    api.post("/api/v1/nodes", json!({"metadata": {"name": node}})).await.is(201);
    let bound =
        |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    let of_secret = request(&api, &bot, bound("Secret", "s")).await.is(201).text_at("/status/token");
    let of_node = request(&api, &bot, bound("Node", &node)).await.is(201).text_at("/status/token");
    assert_eq!(review(&api, &of_secret, &[]).await["user"]["extra"].as_object().unwrap().len(), 1);
    assert_eq!(review(&api, &of_node, &[]).await["user"]["extra"].as_object().unwrap().len(), 3);
    api.delete(&format!("{secrets}/s")).await.is(200);
    api.delete(&format!("/api/v1/nodes/{node}")).await.is(200);
    let errors = [invalidated(&api, &of_secret).await, invalidated(&api, &of_node).await];
    expect![[r#"
        [invalid bearer token, service account token has been invalidated]
        [invalid bearer token, service account token has been invalidated]
    "#]]
    .assert_eq(&lines(&errors));
}

#[tokio::test]
async fn a_service_account_that_is_made_again_is_another_one() {
    let api = Api::start();
    let bot = bot(&api).await;
    let token = request(&api, &bot, json!({})).await.is(201).text_at("/status/token");
    api.delete(&bot).await.is(200);
    let accounts = bot.trim_end_matches("/bot");
    api.post(accounts, json!({"metadata": {"name": "bot"}})).await.is(201);
    let error = invalidated(&api, &token).await;
    assert!(error.contains("does not match claim"), "{error}");
}

#[tokio::test]
async fn the_body_of_a_request_is_checked() {
    let api = Api::start();
    let token = format!("{}/token", bot(&api).await);
    let mut seen = Vec::new();
    for body in [
        json!({"apiVersion": "v1", "kind": "Foo"}),
        json!({"spec": {"expirationSeconds": "x"}}),
        json!({"spec": {"audiences": "x"}}),
        json!({"metadata": {"namespace": "x"}}),
    ] {
        seen.push(api.post(&token, body).await.to_string());
    }
    expect![[r#"
        400 BadRequest: Foo in version "v1" cannot be handled as a TokenRequest: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"
        400 BadRequest: TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.expirationSeconds of type int64
        400 BadRequest: TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.audiences of type []string
        400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_legacy_token_is_valid_while_its_secret_has_it() {
    // Only the embedded server signs for a test.
    let server = Server::builder().build().unwrap();
    let api = Api::embedded(&server);
    let account = bot(&api).await;
    let ns = format!("ns-{}", api.id);
    let uid = api.get(&account).await.is(200).text_at("/metadata/uid");
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    let token = server.legacy_token(&ns, "bot", &uid, "legacy").unwrap();
    let error = review(&api, &token, &[]).await["error"].to_string();
    assert!(error.contains("Token has been invalidated"), "{error}");
    let mut object = secret("legacy");
    object["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "bot"});
    object["type"] = json!("kubernetes.io/service-account-token");
    object["stringData"] = json!({"token": token});
    api.post(&secrets, object).await.is(201);
    let reviewed = review(&api, &token, &[]).await;
    assert_eq!(reviewed["user"]["username"], format!("system:serviceaccount:{ns}:bot"));
    assert_eq!(reviewed["user"]["extra"], Value::Null);
    // The server labels the Secret before it answers the next request.
    let labelled = api.get(&format!("{secrets}/legacy")).await.is(200);
    let used = labelled.text_at("/metadata/labels/kubernetes.io~1legacy-token-last-used");
    assert_eq!(used.len(), "2026-01-01".len());
    assert_eq!(labelled.at("/metadata/managedFields/1/manager"), "kube-apiserver");
    api.with_token(&token).get("/apis").await.is(200);
    let other = server.legacy_token(&ns, "bot", "another-uid", "legacy").unwrap();
    let error = review(&api, &other, &[]).await["error"].to_string();
    assert!(error.contains("Token does not match server's copy"), "{error}");
    api.delete(&account).await.is(200);
    let error = review(&api, &token, &[]).await["error"].to_string();
    assert!(error.contains("serviceaccounts \\\"bot\\\" not found"), "{error}");
    api.with_token(&token).get("/apis").await.is(401);
}
