//! Requests that are run as another user.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, Reply, lines};

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn who(api: &Api, headers: &[(&str, &str)]) -> Reply {
    let request = api.request(Method::POST, WHO).json(&json!({}));
    headers.iter().fold(request, |request, (name, value)| request.header(*name, value)).send().await
}

/// Grants a user rules in the whole cluster.
async fn grant(api: &Api, user: &str, rules: Value) {
    let name = format!("impersonator-{}", api.id);
    api.post(CLUSTER_ROLES, json!({"metadata": {"name": name}, "rules": rules})).await.is(201);
    api.discard(format!("{CLUSTER_ROLES}/{name}"));
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name}
    });
    api.post(CLUSTER_BINDINGS, binding).await.is(201);
    api.discard(format!("{CLUSTER_BINDINGS}/{name}"));
}

#[tokio::test]
async fn the_headers_say_as_whom() {
    let api = Api::start();
    let mut seen = Vec::new();
    let cases: [&[(&str, &str)]; 12] = [
        &[("impersonate-user", "jane")],
        &[("impersonate-user", "jane"), ("impersonate-group", "a"), ("impersonate-group", "b")],
        &[
            ("impersonate-user", "jane"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-example.com%2fScopes", "x"),
        ],
        &[("impersonate-user", "jane"), ("impersonate-group", "system:masters")],
        &[("impersonate-user", "system:serviceaccount:default:bot")],
        &[("impersonate-user", "system:serviceaccount:default:bot"), ("impersonate-group", "a")],
        &[("impersonate-user", "system:node:n1")],
        &[("impersonate-user", "system:serviceaccount:NO:bot")],
        &[("impersonate-user", "system:node:n1"), ("impersonate-uid", "7")],
        &[
            ("impersonate-user", "jane"),
            ("impersonate-group", "b"),
            ("impersonate-group", "system:authenticated"),
            ("impersonate-group", "a"),
        ],
        &[
            ("impersonate-user", "jane"),
            ("impersonate-group", "b"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
        ],
        &[
            ("impersonate-user", "system:anonymous"),
            ("impersonate-group", "b"),
            ("impersonate-group", "system:authenticated"),
        ],
    ];
    for headers in cases {
        let reply = who(&api, headers).await.is(201);
        seen.push(reply.at("/status/userInfo").to_string());
    }
    expect![[r#"
        {"groups":["system:authenticated"],"username":"jane"}
        {"groups":["a","b","system:authenticated"],"username":"jane"}
        {"extra":{"example.com/scopes":["x"]},"groups":["system:authenticated"],"uid":"7","username":"jane"}
        {"groups":["system:masters","system:authenticated"],"username":"jane"}
        {"groups":["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"],"username":"system:serviceaccount:default:bot"}
        {"groups":["a","system:authenticated"],"username":"system:serviceaccount:default:bot"}
        {"groups":["system:authenticated"],"username":"system:node:n1"}
        {"groups":["system:authenticated"],"username":"system:serviceaccount:NO:bot"}
        {"groups":["system:authenticated"],"uid":"7","username":"system:node:n1"}
        {"groups":["b","system:authenticated","a"],"username":"jane"}
        {"groups":["b","a","b","system:authenticated"],"username":"jane"}
        {"groups":["b","system:authenticated","system:unauthenticated"],"username":"system:anonymous"}
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn headers_without_a_user_are_refused() {
    let api = Api::start();
    who(&api, &[("impersonate-group", "a")]).await.shows(expect![[r#"400 BadRequest: requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)} without impersonating a user name"#]]);
    who(&api, &[("impersonate-uid", "a")]).await.is(400);
    who(&api, &[("impersonate-extra-a", "a")]).await.is(400);
}

#[tokio::test]
async fn the_rights_are_those_of_the_other_user() {
    let api = Api::start();
    let jane = api.impersonating(&format!("jane-{}", api.id), &[]);
    jane.delete("/api/v1/namespaces/default").await.shows(expect![[r#"
        403 Forbidden: namespaces "default" is forbidden: User "jane-ID" cannot delete resource "namespaces" in API group "" in the namespace "default"
        kind="namespaces" name="default""#]]);
    let masters = api.impersonating(&format!("jane-{}", api.id), &["system:masters"]);
    masters.get("/api/v1/namespaces/default").await.is(200);
    let anonymous = api.impersonating("system:anonymous", &[]);
    anonymous.get("/api").await.is(403);
    anonymous.get("/version").await.is(200);
}

#[tokio::test]
async fn impersonation_needs_a_right_for_each_value() {
    let api = Api::start();
    let ns = api.namespace().await;
    let bot = api.service_account(&ns, "bot").await;
    let jane = format!("jane-{}", api.id);
    who(&bot, &[("impersonate-user", &jane)]).await.shows(expect![[r#"
        403 Forbidden: selfsubjectreviews.authentication.k8s.io is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope
        group="authentication.k8s.io" kind="selfsubjectreviews""#]]);
    bot.request(Method::GET, "/api/v1/namespaces/default/pods")
        .header("impersonate-user", &jane)
        .send()
        .await
        .shows(expect![[r#"
            403 Forbidden: pods is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"
            kind="pods""#]]);
    let account = format!("system:serviceaccount:{ns}:other");
    who(&bot, &[("impersonate-user", &account)]).await.shows(expect![[r#"
        403 Forbidden: selfsubjectreviews.authentication.k8s.io is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate-on:serviceaccount:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope
        group="authentication.k8s.io" kind="selfsubjectreviews""#]]);
    who(&bot, &[("impersonate-user", "system:node:n1")]).await.shows(expect![[r#"
        403 Forbidden: selfsubjectreviews.authentication.k8s.io is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate-on:arbitrary-node:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope
        group="authentication.k8s.io" kind="selfsubjectreviews""#]]);
    bot.request(Method::GET, "/version")
        .header("impersonate-user", &jane)
        .send()
        .await
        .shows(expect![[r#"403 Forbidden: forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate-on:user-info:get path "/version""#]]);
    let rules = json!([
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": [jane]},
        {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "resourceNames": ["x"]}
    ]);
    grant(&api, &format!("system:serviceaccount:{ns}:bot"), rules).await;
    let start = std::time::Instant::now();
    while who(&bot, &[("impersonate-user", &jane)]).await.code != 201 {
        assert!(api.is_shared() && start.elapsed() < crate::harness::deadline());
    }
    // From now on the refusals are those of the way that succeeded.
    who(&bot, &[("impersonate-user", "john")]).await.shows(expect![[r#"
        403 Forbidden: users "john" is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate resource "users" in API group "" at the cluster scope
        kind="users" name="john""#]]);
    who(&bot, &[("impersonate-user", &jane), ("impersonate-group", "a")]).await.shows(expect![[r#"
        403 Forbidden: groups "a" is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate resource "groups" in API group "" at the cluster scope
        kind="groups" name="a""#]]);
    who(&bot, &[("impersonate-user", &jane), ("impersonate-uid", "7")]).await.shows(expect![[r#"
        403 Forbidden: uids.authentication.k8s.io "7" is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope
        group="authentication.k8s.io" kind="uids" name="7""#]]);
    who(&bot, &[("impersonate-user", &jane), ("impersonate-extra-scopes", "x")]).await.is(201);
    who(&bot, &[("impersonate-user", &jane), ("impersonate-extra-scopes", "y")])
        .await
        .shows(expect![[r#"
            403 Forbidden: userextras.authentication.k8s.io "y" is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope
            group="authentication.k8s.io" kind="userextras" name="y""#]]);
    let node = who(&bot, &[("impersonate-user", "system:node:n1")]).await;
    node.shows(expect![[r#"
        403 Forbidden: users "system:node:n1" is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate resource "users" in API group "" at the cluster scope
        kind="users" name="system:node:n1""#]]);
}

#[tokio::test]
async fn a_constrained_impersonator_may_do_certain_things_only() {
    let api = Api::start();
    let ns = api.namespace().await;
    let bot = api.service_account(&ns, "bot").await;
    let jane = format!("jane-{}", api.id);
    let rules = json!([
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users", "groups"]},
        {"verbs": ["impersonate-on:user-info:create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}
    ]);
    grant(&api, &format!("system:serviceaccount:{ns}:bot"), rules).await;
    let start = std::time::Instant::now();
    while who(&bot, &[("impersonate-user", &jane)]).await.code != 201 {
        assert!(api.is_shared() && start.elapsed() < crate::harness::deadline());
    }
    who(&bot, &[("impersonate-user", &jane), ("impersonate-group", "a")]).await.is(201);
    who(&bot, &[("impersonate-user", &jane), ("impersonate-group", "system:masters")])
        .await
        .shows(expect![[r#"
            403 Forbidden: groups.authentication.k8s.io "system:masters" is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed
            group="authentication.k8s.io" kind="groups" name="system:masters""#]]);
    who(&bot, &[("impersonate-user", &jane), ("impersonate-extra-scopes", "x")])
        .await
        .shows(expect![[r#"
            403 Forbidden: userextras.authentication.k8s.io is forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate:user-info resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")
            group="authentication.k8s.io" kind="userextras""#]]);
    bot.request(Method::GET, "/version")
        .header("impersonate-user", &jane)
        .send()
        .await
        .shows(expect![[r#"403 Forbidden: forbidden: User "system:serviceaccount:ns-ID:bot" cannot impersonate-on:user-info:get path "/version""#]]);
}
