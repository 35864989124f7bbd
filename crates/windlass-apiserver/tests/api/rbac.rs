//! The rights of roles and bindings, and the checks against escalation.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::config_map;
use crate::harness::{Answer, Api, JSON_PATCH, MERGE_PATCH, Reply, Webhook, deadline, lines};

const APPLY: &str = "application/apply-patch+yaml";

const GROUP: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

fn roles(ns: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{ns}/roles")
}

fn bindings(ns: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{ns}/rolebindings")
}

fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": resources})
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, subjects: &Value) -> Value {
    json!({
        "metadata": {"name": name}, "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}
    })
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": GROUP, "name": name})
}

/// A user of this test alone, without any rights.
fn jane(api: &Api) -> String {
    format!("jane-{}", api.id)
}

/// Grants the rules of a new role in a namespace to a user.
async fn grant(api: &Api, ns: &str, name: &str, user_name: &str, rules: Value) {
    api.post(&roles(ns), role(name, &rules)).await.is(201);
    api.post(&bindings(ns), binding(name, "Role", name, &json!([user(user_name)]))).await.is(201);
}

/// Repeats a GET until it is no longer forbidden: the real server's authoriser follows within moments.
async fn granted(api: &Api, path: &str) -> Reply {
    api.eventually(path, |reply| reply.code != 403).await
}

/// Repeats a GET until it is forbidden.
async fn forbidden(api: &Api, path: &str) {
    api.eventually(path, |reply| reply.code == 403).await;
}

#[tokio::test]
async fn a_role_allows_what_its_rules_say_in_its_namespace() {
    let api = Api::start();
    let ns = api.namespace().await;
    let jane = api.impersonating(&jane(&api), &[]);
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    jane.get(&maps).await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "jane-ID" cannot list resource "configmaps" in API group "" in the namespace "ns-ID"
        kind="configmaps""#]]);
    let name = format!("jane-{}", api.id);
    grant(&api, &ns, "reader", &name, json!([rule(&["list", "create"], "", &["configmaps"])])).await;
    granted(&jane, &maps).await.is(200);
    jane.post(&maps, config_map("a")).await.is(201);
    jane.get(&format!("{maps}/a")).await.shows(expect![[r#"
        403 Forbidden: configmaps "a" is forbidden: User "jane-ID" cannot get resource "configmaps" in API group "" in the namespace "ns-ID"
        kind="configmaps" name="a""#]]);
    jane.request(Method::GET, &format!("{maps}?watch=true")).send().await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "jane-ID" cannot watch resource "configmaps" in API group "" in the namespace "ns-ID"
        kind="configmaps""#]]);
    jane.delete(&maps).await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "jane-ID" cannot deletecollection resource "configmaps" in API group "" in the namespace "ns-ID"
        kind="configmaps""#]]);
    jane.get("/api/v1/configmaps").await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "jane-ID" cannot list resource "configmaps" in API group "" at the cluster scope
        kind="configmaps""#]]);
    jane.get("/api/v1/namespaces/default/configmaps").await.is(403);
    jane.get(&format!("/api/v1/namespaces/{ns}")).await.shows(expect![[r#"
        403 Forbidden: namespaces "ns-ID" is forbidden: User "jane-ID" cannot get resource "namespaces" in API group "" in the namespace "ns-ID"
        kind="namespaces" name="ns-ID""#]]);
    jane.get("/api/v1/nodes/n/proxy/a").await.shows(expect![[r#"
        403 Forbidden: nodes "n" is forbidden: User "jane-ID" cannot get resource "nodes/proxy" in API group "" at the cluster scope
        kind="nodes" name="n""#]]);
    jane.get("/metrics/%3Cb%3E")
        .await
        .shows(expect![[r#"403 Forbidden: forbidden: User "jane-ID" cannot get path "/metrics/&lt;b&gt;""#]]);
    api.delete(&format!("{}/reader", bindings(&ns))).await.is(200);
    forbidden(&jane, &maps).await;
}

#[tokio::test]
async fn names_subresources_and_stars() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    for map in ["a", "b"] {
        api.post(&maps, config_map(map)).await.is(201);
    }
    let mut named = rule(&["get", "list", "watch", "patch"], "", &["configmaps"]);
    named["resourceNames"] = json!(["a"]);
    let rules = json!([named, rule(&["get"], "*", &["*/scale"]), rule(&["*"], "", &["pods/log"])]);
    grant(&api, &ns, "some", &name, rules).await;
    granted(&jane, &format!("{maps}/a")).await.is(200);
    let mut seen = Vec::new();
    for path in [
        format!("{maps}/b"),
        maps.clone(),
        format!("{maps}?fieldSelector=metadata.name%3Da"),
        format!("{maps}?fieldSelector=metadata.name%3D%3Da,metadata.namespace%3D{ns}"),
        format!("{maps}?fieldSelector=metadata.name%3Db"),
        format!("{maps}?fieldSelector=metadata.name!%3Da"),
        format!("/apis/apps/v1/namespaces/{ns}/deployments/d/scale"),
        format!("/apis/apps/v1/namespaces/{ns}/deployments/d/status"),
        format!("/api/v1/namespaces/{ns}/pods/p/log"),
        format!("/api/v1/namespaces/{ns}/pods/p"),
    ] {
        seen.push(format!("{} {}", jane.get(&path).await.code, path.replace(&api.id, "ID")));
    }
    expect![[r#"
        403 /api/v1/namespaces/ns-ID/configmaps/b
        403 /api/v1/namespaces/ns-ID/configmaps
        200 /api/v1/namespaces/ns-ID/configmaps?fieldSelector=metadata.name%3Da
        200 /api/v1/namespaces/ns-ID/configmaps?fieldSelector=metadata.name%3D%3Da,metadata.namespace%3Dns-ID
        403 /api/v1/namespaces/ns-ID/configmaps?fieldSelector=metadata.name%3Db
        403 /api/v1/namespaces/ns-ID/configmaps?fieldSelector=metadata.name!%3Da
        404 /apis/apps/v1/namespaces/ns-ID/deployments/d/scale
        403 /apis/apps/v1/namespaces/ns-ID/deployments/d/status
        404 /api/v1/namespaces/ns-ID/pods/p/log
        403 /api/v1/namespaces/ns-ID/pods/p
    "#]]
    .assert_eq(&lines(&seen));
    jane.patch(&format!("{maps}/a"), MERGE_PATCH, json!({"data": {"k": "2"}})).await.is(200);
}

#[tokio::test]
async fn a_cluster_role_is_for_paths_and_for_all_namespaces() {
    let api = Api::start();
    let ns = api.namespace().await;
    let group = format!("group-{}", api.id);
    let jane = api.impersonating(&jane(&api), &[&group]);
    let name = format!("role-{}", api.id);
    let rules = json!([
        {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
        rule(&["list"], "", &["configmaps"])
    ]);
    api.post(CLUSTER_ROLES, role(&name, &rules)).await.is(201);
    api.discard(format!("{CLUSTER_ROLES}/{name}"));
    let subjects = json!([{"kind": "Group", "apiGroup": GROUP, "name": group}]);
    api.post(CLUSTER_BINDINGS, binding(&name, "ClusterRole", &name, &subjects)).await.is(201);
    api.discard(format!("{CLUSTER_BINDINGS}/{name}"));
    granted(&jane, "/api/v1/configmaps").await.is(200);
    jane.get(&format!("/api/v1/namespaces/{ns}/configmaps")).await.is(200);
    assert_ne!(jane.get("/metrics").await.code, 403);
    assert_ne!(jane.get("/logs/x").await.code, 403);
    jane.get("/metrics/slis").await.is(403);
    let other = api.impersonating(&format!("john-{}", api.id), &[]);
    other.get("/api/v1/configmaps").await.is(403);
    api.patch(&format!("{CLUSTER_ROLES}/{name}"), MERGE_PATCH, json!({"rules": []})).await.is(200);
    forbidden(&jane, "/api/v1/configmaps").await;
}

#[tokio::test]
async fn a_service_account_has_the_rights_of_its_bindings() {
    let api = Api::start();
    let ns = api.namespace().await;
    let bot = api.service_account(&ns, "bot").await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    bot.get(&maps).await.is(403);
    api.post(&roles(&ns), role("r", &json!([rule(&["list"], "", &["configmaps"])]))).await.is(201);
    // Without a namespace, that of the binding is meant.
    let subject = json!([{"kind": "ServiceAccount", "name": "bot"}]);
    api.post(&bindings(&ns), binding("b", "Role", "r", &subject)).await.is(201);
    granted(&bot, &maps).await.is(200);
    let everybody =
        json!([{"kind": "Group", "apiGroup": GROUP, "name": format!("system:serviceaccounts:{ns}")}]);
    api.post(&bindings(&ns), binding("c", "ClusterRole", "system:discovery", &everybody)).await.is(201);
    bot.get("/apis").await.is(200);
}

#[tokio::test]
async fn a_binding_to_a_role_that_is_not_there_is_named() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&bindings(&ns), binding("a", "Role", "no-role", &json!([user(&name)]))).await.is(201);
    jane.eventually(&maps, |reply| reply.text_at("/message").contains("no-role"))
        .await
        .shows(expect![[r#"
            403 Forbidden: configmaps is forbidden: User "jane-ID" cannot list resource "configmaps" in API group "" in the namespace "ns-ID": rbac: RBAC: role.rbac.authorization.k8s.io "no-role" not found
            kind="configmaps""#]]);
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_have() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let rules = json!([
        rule(&["get", "list"], "", &["configmaps"]),
        rule(&["create", "update", "patch", "get"], GROUP, &["roles", "rolebindings"])
    ]);
    grant(&api, &ns, "delegate", &name, rules).await;
    granted(&jane, &format!("{}/delegate", roles(&ns))).await.is(200);
    jane.post(&roles(&ns), role("held", &json!([rule(&["get"], "", &["configmaps"])]))).await.is(201);
    let more = json!([
        rule(&["get", "delete", "watch"], "", &["configmaps"]),
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]},
        rule(&["*"], "apps", &["*"])
    ]);
    jane.post(&roles(&ns), role("more", &more)).await.shows(expect![[r#"
        403 Forbidden: roles.rbac.authorization.k8s.io "more" is forbidden: user "jane-ID" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
        {APIGroups:[""], Resources:["configmaps"], Verbs:["delete" "watch"]}
        {APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}
        {APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}
        {APIGroups:["apps"], Resources:["*"], Verbs:["*"]}
        group="rbac.authorization.k8s.io" kind="roles" name="more""#]]);
    let patch = json!([{"op": "add", "path": "/rules/0/verbs/-", "value": "delete"}]);
    jane.patch(&format!("{}/held", roles(&ns)), JSON_PATCH, patch).await.shows(expect![[r#"
        403 Forbidden: roles.rbac.authorization.k8s.io "held" is forbidden: user "jane-ID" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
        {APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}
        group="rbac.authorization.k8s.io" kind="roles" name="held""#]]);
    // A change of the metadata checks all rules again; owners and finalizers are left to the garbage collector.
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    jane.patch(&format!("{}/held", roles(&ns)), MERGE_PATCH, labels).await.is(200);
    let subject = json!([user(&name)]);
    jane.post(&bindings(&ns), binding("held", "Role", "held", &subject)).await.is(201);
    jane.post(&bindings(&ns), binding("pod", "ClusterRole", "system:kube-dns", &subject))
        .await
        .shows(expect![[r#"
            403 Forbidden: rolebindings.rbac.authorization.k8s.io "pod" is forbidden: user "jane-ID" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
            {APIGroups:[""], Resources:["endpoints"], Verbs:["list" "watch"]}
            {APIGroups:[""], Resources:["services"], Verbs:["list" "watch"]}
            group="rbac.authorization.k8s.io" kind="rolebindings" name="pod""#]]);
    jane.post(&bindings(&ns), binding("no", "ClusterRole", "no-role", &subject)).await.shows(expect![[r#"
            404 NotFound: rolebindings.rbac.authorization.k8s.io "no-role" not found
            group="rbac.authorization.k8s.io" kind="rolebindings" name="no-role""#]]);
    jane.post(&bindings(&ns), binding("no", "Role", "no-role", &subject)).await.shows(expect![[r#"
        404 NotFound: rolebindings.rbac.authorization.k8s.io "no-role" not found
        group="rbac.authorization.k8s.io" kind="rolebindings" name="no-role""#]]);
}

#[tokio::test]
async fn a_binding_is_not_changed_to_a_role_that_is_not_there() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let rules = json!([rule(&["create", "update", "patch", "get"], GROUP, &["roles", "rolebindings"])]);
    grant(&api, &ns, "delegate", &name, rules).await;
    granted(&jane, &format!("{}/delegate", roles(&ns))).await.is(200);
    let subject = json!([user(&name)]);
    jane.post(&roles(&ns), role("held", &json!([]))).await.is(201);
    jane.post(&bindings(&ns), binding("held", "Role", "held", &subject)).await.is(201);
    let mut other = binding("held", "Role", "no-role", &subject);
    let path = format!("{}/held", bindings(&ns));
    jane.put(&path, other.clone()).await.shows(expect![[r#"
        404 NotFound: rolebindings.rbac.authorization.k8s.io "no-role" not found
        group="rbac.authorization.k8s.io" kind="rolebindings" name="no-role""#]]);
    other["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
    other["kind"] = json!("RoleBinding");
    let configuration = format!("{path}?fieldManager=jane&force=true");
    jane.patch(&configuration, APPLY, other).await.shows(expect![[r#"
        404 NotFound: rolebindings.rbac.authorization.k8s.io "no-role" not found
        group="rbac.authorization.k8s.io" kind="rolebindings" name="no-role""#]]);
    let patch = json!({"roleRef": {"name": "no-role"}});
    jane.patch(&path, MERGE_PATCH, patch).await.shows(expect![[r#"
        404 NotFound: rolebindings.rbac.authorization.k8s.io "no-role" not found
        group="rbac.authorization.k8s.io" kind="rolebindings" name="no-role""#]]);
}

#[tokio::test]
async fn the_verbs_bind_and_escalate_lift_the_checks() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let mut bind = rule(&["bind"], GROUP, &["clusterroles"]);
    bind["resourceNames"] = json!(["system:kube-dns"]);
    let rules = json!([
        rule(&["create", "get", "escalate"], GROUP, &["roles"]),
        rule(&["create"], GROUP, &["rolebindings"]),
        bind
    ]);
    grant(&api, &ns, "trusted", &name, rules).await;
    granted(&jane, &format!("{}/trusted", roles(&ns))).await.is(200);
    jane.post(&roles(&ns), role("more", &json!([rule(&["*"], "*", &["*"])]))).await.is(201);
    let subject = json!([user(&name)]);
    jane.post(&bindings(&ns), binding("a", "ClusterRole", "system:kube-dns", &subject)).await.is(201);
    jane.post(&bindings(&ns), binding("b", "ClusterRole", "system:heapster", &subject)).await.is(403);
}

#[tokio::test]
async fn aggregation_needs_all_rights() {
    let api = Api::start();
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let granting = format!("granting-{}", api.id);
    let rules = json!([rule(&["create", "get"], GROUP, &["clusterroles"])]);
    api.post(CLUSTER_ROLES, role(&granting, &rules)).await.is(201);
    api.discard(format!("{CLUSTER_ROLES}/{granting}"));
    api.post(CLUSTER_BINDINGS, binding(&granting, "ClusterRole", &granting, &json!([user(&name)])))
        .await
        .is(201);
    api.discard(format!("{CLUSTER_BINDINGS}/{granting}"));
    granted(&jane, &format!("{CLUSTER_ROLES}/{granting}")).await.is(200);
    let mut all = role(&format!("all-{}", api.id), &json!([]));
    all["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    jane.post(CLUSTER_ROLES, all).await.shows(expect![[r#"
        403 Forbidden: clusterroles.rbac.authorization.k8s.io "all-ID" is forbidden: must have cluster-admin privileges to use the aggregationRule
        group="rbac.authorization.k8s.io" kind="clusterroles" name="all-ID""#]]);
}

#[tokio::test]
async fn an_update_that_creates_needs_the_right_to_create() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases");
    grant(&api, &ns, "update", &name, json!([rule(&["update", "get"], "coordination.k8s.io", &["leases"])]))
        .await;
    granted(&jane, &format!("{leases}/a")).await.is(404);
    jane.put(&format!("{leases}/a"), json!({"metadata": {"name": "a"}})).await.shows(expect![[r#"
        403 Forbidden: leases.coordination.k8s.io "a" is forbidden: User "jane-ID" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "ns-ID"
        group="coordination.k8s.io" kind="leases" name="a""#]]);
}

#[tokio::test]
async fn everybody_begins_with_what_the_bootstrap_policy_grants() {
    let api = Api::start();
    let (anonymous, jane) = (api.anonymous(), api.impersonating(&jane(&api), &[]));
    let mut seen = Vec::new();
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/version",
        "/version/",
        "/api",
        "/apis/apps/v1",
        "/openapi/v3",
        "/metrics",
        "/",
        "/.well-known/openid-configuration",
    ] {
        seen.push(format!("{path}: {} {}", anonymous.get(path).await.code, jane.get(path).await.code));
    }
    expect![[r#"
        /healthz: 200 200
        /livez: 200 200
        /readyz: 200 200
        /version: 200 200
        /version/: 200 200
        /api: 403 200
        /apis/apps/v1: 403 200
        /openapi/v3: 403 200
        /metrics: 403 403
        /: 403 403
        /.well-known/openid-configuration: 403 403
    "#]]
    .assert_eq(&lines(&seen));
    for (group, resource) in [
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    ] {
        let path = format!("/apis/{group}/v1/{resource}");
        anonymous.post(&path, json!({})).await.is(403);
        assert_ne!(jane.post(&path, json!({})).await.code, 403, "{resource}");
    }
    jane.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json!({})).await.is(403);
}

#[tokio::test]
async fn aggregated_roles_follow_the_roles_that_they_select() {
    let api = Api::start();
    if api.is_shared() {
        // The controller manager does this.
        return;
    }
    let labelled = |name: &str, label: &str, rules: Value| {
        let mut role = role(name, &rules);
        role["metadata"]["labels"] = json!({label: "true"});
        role
    };
    let aggregated = |name: &str, label: &str| {
        let mut role = role(name, &json!([]));
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        role
    };
    let pods = json!([rule(&["get"], "", &["pods"])]);
    api.post(CLUSTER_ROLES, labelled("part", "to-sum", pods.clone())).await.is(201);
    api.post(CLUSTER_ROLES, aggregated("sum", "to-sum")).await.is(201);
    let rules = async || api.get(&format!("{CLUSTER_ROLES}/sum")).await.is(200).at("/rules");
    assert_eq!(rules().await, pods);
    let nodes = json!([rule(&["get"], "", &["nodes"])]);
    api.post(CLUSTER_ROLES, labelled("other-part", "to-sum", nodes.clone())).await.is(201);
    assert_eq!(rules().await, json!([nodes[0], pods[0]]));
    api.delete(&format!("{CLUSTER_ROLES}/part")).await.is(200);
    assert_eq!(rules().await, nodes);
    // Rules that are written by hand do not stay.
    api.patch(&format!("{CLUSTER_ROLES}/sum"), MERGE_PATCH, json!({"rules": pods})).await.is(200);
    assert_eq!(rules().await, nodes);
    let view = api.get(&format!("{CLUSTER_ROLES}/view")).await.is(200).at("/rules");
    let edit = api.get(&format!("{CLUSTER_ROLES}/edit")).await.is(200).at("/rules");
    assert!(view.as_array().unwrap().iter().all(|rule| edit.as_array().unwrap().contains(rule)));
}

#[tokio::test]
async fn a_revoked_right_is_gone_at_once() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    for round in 0..3 {
        grant(&api, &ns, &format!("r{round}"), &name, json!([rule(&["list"], "", &["configmaps"])])).await;
        granted(&jane, &maps).await.is(200);
        api.delete(&format!("{}/r{round}", roles(&ns))).await.is(200);
        let start = std::time::Instant::now();
        while jane.get(&maps).await.code != 403 {
            assert!(api.is_shared() && start.elapsed() < deadline(), "still allowed");
        }
    }
}

#[tokio::test]
async fn an_aggregation_rule_selects_roles() {
    let api = Api::start();
    let mut seen = Vec::new();
    for selectors in [
        json!([]),
        json!([{"matchLabels": {"a b": "c"}}]),
        json!([{"matchExpressions": [{"key": "a", "operator": "Is"}]}]),
    ] {
        let role = json!({"metadata": {"name": "a"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
        seen.push(api.post(CLUSTER_ROLES, role).await.is(422).text_at("/message"));
    }
    expect![[r#"
        ClusterRole.rbac.authorization.k8s.io "a" is invalid: aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil
        ClusterRole.rbac.authorization.k8s.io "a" is invalid: [aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.]
        ClusterRole.rbac.authorization.k8s.io "a" is invalid: [aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator, aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.]
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_forbidden_request_names_the_namespace_of_the_path() {
    let api = Api::start();
    let user = api.impersonating("nobody", &[]);
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}});
    let refused = user.post("/api/v1/namespaces/none/namespaces", body).await.is(403);
    assert!(refused.text_at("/message").ends_with("in the namespace \"none\""));
}

#[tokio::test]
async fn the_role_of_a_binding_for_the_whole_cluster_has_no_namespace() {
    let api = Api::start();
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterrolebindings"], "verbs": ["create"]}]);
    let (user, role) = (format!("{}-user", api.id), format!("{}-binder", api.id));
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let version = "rbac.authorization.k8s.io/v1";
    let created =
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules});
    api.post(&format!("{group}/clusterroles"), created).await.is(201);
    api.discard(format!("{group}/clusterroles/{role}"));
    let binding = |name: &str, kind: &str, role: &str| {
        json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
        })
    };
    let bindings = format!("{group}/clusterrolebindings");
    api.post(&bindings, binding(&role, "ClusterRole", &role)).await.is(201);
    api.discard(format!("{bindings}/{role}"));
    let may = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
        "group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "verb": "create"
    }}});
    let as_user = api.impersonating(&user, &[]);
    // The real server follows roles with a watch.
    for _ in 0..200 {
        let review =
            as_user.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", may.clone()).await;
        if review.at("/status/allowed") == json!(true) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let refused = as_user.post(&bindings, binding(&format!("{}-x", api.id), "Role", "x")).await.is(400);
    assert_eq!(refused.text_at("/message"), "Namespace parameter required.");
}

#[tokio::test]
async fn a_generated_name_of_a_role_begins_with_no_dots_alone() {
    let api = Api::start();
    for start in [".", ".."] {
        let role = json!({"metadata": {"generateName": start}});
        let reply =
            api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All", role).await.is(422);
        let message = format!("Invalid value: \"{start}\": may not be '{start}'");
        assert_eq!(reply.at("/details/causes/0/message"), message);
        assert_eq!(reply.at("/details/causes/0/field"), "metadata.generateName");
    }
}

#[tokio::test]
async fn a_role_is_checked_against_escalation_after_the_webhooks() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = jane(&api);
    let jane = api.impersonating(&name, &[]);
    let held = json!([
        rule(&["get"], "", &["configmaps"]),
        rule(&["create", "get"], GROUP, &["roles", "rolebindings"])
    ]);
    grant(&api, &ns, "delegate", &name, held).await;
    granted(&jane, &format!("{}/delegate", roles(&ns))).await.is(200);
    let hook = Webhook::start(|_, review| {
        let object = &review["request"]["object"];
        Answer::patch(match object["metadata"]["name"].as_str().unwrap_or_default() {
            "widened" => json!([{"op": "add", "path": "/rules/0/verbs/-", "value": "delete"}]),
            "narrowed" => json!([{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}]),
            _ => json!([]),
        })
    })
    .await;
    let rules = json!([crate::harness::rule("*", GROUP, "v1", "roles")]);
    let webhooks = json!([{"name": "roles.webhook.test", "clientConfig": "/roles", "rules": rules}]);
    hook.configure(&api, "mutating", "roles", webhooks).await;
    let own = json!([rule(&["get"], "", &["configmaps"])]);
    let refused = jane.post(&roles(&ns), role("widened", &own)).await.is(403);
    assert!(refused.text_at("/message").contains(r#"Verbs:["delete"]"#), "{refused}");
    let more = json!([rule(&["get", "delete"], "", &["configmaps"])]);
    let created = jane.post(&roles(&ns), role("narrowed", &more)).await.is(201);
    assert_eq!(created.at("/rules"), own);
}
