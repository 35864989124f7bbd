//! The user of a request.

use std::time::{Duration, Instant};

use expect_test::expect;
use http::Method;
use serde_json::json;
use windlass_apiserver::{Identity, Listen, Server, TokenKeys};

use crate::harness::{Api, deadline};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_service_account_may_look_around_and_nothing_else() {
    let api = Api::start_over_tls();
    let ns = api.namespace().await;
    let bot = api.service_account(&ns, "bot").await;
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let myself = bot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await.is(201);
    assert_eq!(
        myself.text_at("/status/userInfo/username"),
        format!("system:serviceaccount:ns-{}:bot", api.id)
    );
    bot.get("/apis").await.is(200);
    bot.get(MAPS).await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "system:serviceaccount:ns-ID:bot" cannot list resource "configmaps" in API group "" in the namespace "default"
        kind="configmaps""#]]);
    bot.delete(&format!("/api/v1/namespaces/{ns}")).await.is(403);
}

#[tokio::test]
async fn a_token_is_valid_as_long_as_its_service_account_exists() {
    let api = Api::start();
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", api.namespace().await);
    let account = api.post(&accounts, json!({"metadata": {"name": "bot"}})).await.is(201);
    let reply = api.post(&format!("{accounts}/bot/token"), json!({"spec": {}})).await.is(201);
    assert_eq!(reply.at("/spec/expirationSeconds"), 3600);
    let review = json!({"spec": {"token": reply.at("/status/token")}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let known = api.post(reviews, review.clone()).await.is(201);
    let name = format!("system:serviceaccount:ns-{}:bot", api.id);
    assert_eq!(known.at("/status/user/username"), name);
    assert_eq!(known.at("/status/user/uid"), account.at("/metadata/uid"));
    api.delete(&format!("{accounts}/bot")).await.is(200);
    // The real server remembers a token for ten seconds.
    let start = Instant::now();
    while api.post(reviews, review.clone()).await.is(201).at("/status/authenticated") == true {
        assert!(api.is_shared() && start.elapsed() < deadline(), "the token is still valid");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    api.post(&format!("{accounts}/bot/token"), json!({"spec": {}})).await.is(404);
}

#[tokio::test]
async fn a_header_without_a_bearer_token_says_nothing_about_the_user() {
    let anonymous = Api::start().anonymous();
    for header in ["Basic czNjcmV0", "Bearer", "Bearer ", "s3cret", ""] {
        let reply = anonymous.request(Method::GET, MAPS).header("authorization", header).send().await;
        let message = reply.is(403).text_at("/message");
        assert!(message.contains(r#"User "system:anonymous""#), "{header}: {message}");
    }
    for header in ["Bearer wrong", "bearer wrong", "Bearer wrong token"] {
        let get = anonymous.request(Method::GET, MAPS).header("authorization", header).send().await;
        get.is(401);
    }
}

#[tokio::test]
async fn a_second_space_before_the_token_is_warned_of() {
    let anonymous = Api::start().anonymous();
    let get = anonymous.request(Method::GET, MAPS).header("authorization", "Bearer  token").send().await;
    get.shows(expect![[r#"
        403
        Warning: 299 - "the provided Authorization header contains extra space before the bearer token, and is ignored" Forbidden: configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default"
        kind="configmaps""#]]);
}

#[tokio::test]
async fn the_certificate_names_the_cluster_address() {
    let api = Api::start();
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.is(200);
    for host in ["127.0.0.1", "kubernetes.default.svc", &service.text_at("/spec/clusterIP")] {
        assert!(api.is_certified_for(host).await, "{host}");
    }
    assert!(!api.is_certified_for("example.com").await);
}

#[tokio::test]
async fn the_tokens_of_a_listener_end_with_it() {
    let server = Server::builder().build().unwrap();
    let api = Api::embedded(&server);
    let robot = Listen::default().with_token("t0ken", Identity::user("robot"));
    let listening = server.listen(robot).await.unwrap();
    let review = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": "t0ken"},
    });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let known = api.post(reviews, review.clone()).await.is(201);
    assert_eq!(known.at("/status/user/username"), "robot");
    api.with_token("t0ken").get("/apis").await.is(200);
    listening.shutdown().await;
    assert_ne!(api.post(reviews, review).await.is(201).at("/status/authenticated"), true);
    api.with_token("t0ken").get("/apis").await.is(401);
}

#[tokio::test]
async fn a_server_may_allow_everything_to_all_who_have_credentials() {
    let server = Server::builder().always_allow().build().unwrap();
    let jane = Listen::default().with_token("t0ken", Identity::user("jane")).without_anonymous();
    let api = Api::listening(&server, jane).await;
    api.with_token("t0ken").get("/api/v1/nodes").await.is(200);
    api.anonymous().get("/healthz").await.is(401);
    api.with_token("wrong").get("/healthz").await.is(401);
    let review =
        json!({"spec": {"user": "john", "resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(api.post(reviews, review).await.is(201).at("/status/allowed"), true);
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let of_jane =
        api.with_token("t0ken").post(rules, json!({"spec": {"namespace": "default"}})).await.is(201);
    let everything = json!({
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": false,
    });
    assert_eq!(of_jane.at("/status"), everything);
}

#[tokio::test]
async fn tokens_are_issued_by_the_settings() {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let keys = TokenKeys::new("https://issuer", key.serialize_pem().as_bytes()).unwrap();
    let keys = keys.with_audiences(vec!["api".to_owned()]);
    let server = Server::builder().token_keys(keys).build().unwrap();
    let api = Api::embedded(&server);
    let bot = api.service_account("default", "bot").await;
    bot.get("/apis").await.is(200);
    let request = json!({"spec": {"expirationSeconds": 600}});
    let issued = api.post("/api/v1/namespaces/default/serviceaccounts/bot/token", request).await.is(201);
    assert_eq!(issued.at("/spec/audiences"), json!(["api"]));
    assert_eq!(api.get("/.well-known/openid-configuration").await.is(200).at("/issuer"), "https://issuer");
    assert_eq!(api.get("/openid/v1/jwks").await.is(200).at("/keys/0/alg"), "ES384");
}

#[tokio::test]
async fn the_audit_id_of_the_client_comes_back() {
    let api = Api::start();
    let long = "x".repeat(500);
    for user in [&api, &api.anonymous(), &api.with_token("wrong")] {
        for id in ["trace 7", &long] {
            let request = user.request(Method::GET, "/version").header("audit-id", id);
            let reply = request.header("audit-id", "second").send().await;
            assert_eq!(reply.header("audit-id"), Some(id), "{reply}");
        }
        let first = user.request(Method::GET, "/version").header("audit-id", "").send().await;
        let second = user.get("/version").await;
        let ids = [&first, &second].map(|reply| reply.header("audit-id").map(str::len));
        assert_eq!(ids, [Some(36); 2], "{first}");
        assert_ne!(first.header("audit-id"), second.header("audit-id"));
    }
}
