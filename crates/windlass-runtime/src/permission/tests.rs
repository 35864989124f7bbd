use http::{Method, Uri};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Node, Pod, Secret},
        rbac::v1::PolicyRule,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::Client;
use kube_core::ApiResource;
use serde_json::json;

use super::{Access, Forbidden, Permission, Permissions, Verb};
use crate::{
    Action, Context, Controller, Manager, ObjectKey, Result, Watch, events::EventsApi,
    informer::CacheOptions, kind, leader_election::LeaderElection, manager::Runnable,
};

async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> {
    Ok(Action::done())
}

fn manager() -> Manager {
    let service = tower::service_fn(|_: http::Request<kube_client::client::Body>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(kube_client::client::Body::empty()))
    });
    Manager::new(Client::new(service, "default"))
}

fn shown(rules: &[PolicyRule]) -> Vec<String> {
    let list = |texts: &Option<Vec<String>>| texts.clone().unwrap_or_default().join(" ");
    rules
        .iter()
        .map(|rule| {
            let what = [
                list(&rule.api_groups),
                list(&rule.resources),
                list(&rule.resource_names),
                list(&rule.non_resource_urls),
            ];
            format!("{} | {}", what.join(" | "), rule.verbs.join(" "))
        })
        .collect()
}

#[tokio::test]
async fn watches_events_and_the_lease_follow_from_the_manager() {
    let controller = Controller::of::<ConfigMap>(reconcile)
        .owns::<Pod>()
        .needs(Permission::to::<Pod>([Verb::Delete, Verb::Create]))
        .needs(Permission::status_of::<Pod>());
    let permissions =
        manager().controller(controller).leader_election(LeaderElection::new("web")).permissions();
    assert_eq!(
        shown(&permissions.cluster_role()),
        [
            " | configmaps |  |  | list watch",
            " | events |  |  | create patch",
            " | pods |  |  | list watch create delete",
            " | pods/status |  |  | patch",
        ]
    );
    assert_eq!(
        shown(&permissions.operator_role()),
        ["coordination.k8s.io | leases |  |  | create", "coordination.k8s.io | leases | web |  | get update",]
    );
    assert!(permissions.roles().is_empty());
    let optional: Vec<String> = permissions
        .rights()
        .filter(|right| permissions.is_optional(right))
        .map(ToString::to_string)
        .collect();
    assert_eq!(optional, ["list configmaps", "create events", "patch events", "list pods"]);
}

#[tokio::test]
async fn a_manager_of_some_namespaces_needs_roles_there() {
    let controller = Controller::of::<ConfigMap>(reconcile)
        .watches::<Node>(|_, _| Ok(Vec::new()))
        .watch(Watch::owned(kind::<Secret>()).options(CacheOptions::new().namespaces(["vault"])))
        .needs(Permission::to::<Pod>([Verb::Get]).named("b").named("a").in_operator_namespace());
    let manager = manager()
        .controller(controller)
        .namespaces(["a", "b"])
        .events_api(EventsApi::EventsV1)
        .needs(Permission::to_url("/metrics", [Verb::Get]))
        .runnable(
            Runnable::new("sync", |_| async { Ok::<_, crate::Error>(()) })
                .needs(Permission::to::<Secret>([Verb::Get]).named("key").in_namespace("vault")),
        );
    let permissions = manager.permissions();
    assert_eq!(
        shown(&permissions.cluster_role()),
        [" | nodes |  |  | list watch", " |  |  | /metrics | get"]
    );
    assert_eq!(shown(&permissions.operator_role()), [" | pods | a b |  | get"]);
    let roles = permissions.roles();
    assert_eq!(roles.keys().collect::<Vec<_>>(), ["a", "b", "default", "vault"]);
    assert_eq!(
        shown(&roles["a"]),
        [" | configmaps |  |  | list watch", "events.k8s.io | events |  |  | create patch"]
    );
    assert_eq!(shown(&roles["default"]), ["events.k8s.io | events |  |  | create patch"]);
    assert_eq!(
        shown(&roles["vault"]),
        [
            " | secrets |  |  | list watch",
            " | secrets | key |  | get",
            "events.k8s.io | events |  |  | create patch",
        ]
    );
    let of_sync = permissions.rights().filter(|right| permissions.needed_by(right) == "sync");
    assert_eq!(
        of_sync.map(ToString::to_string).collect::<Vec<_>>(),
        ["get secrets \"key\" in namespace vault"]
    );
}

/// A Role cannot grant rights to cluster-scoped kinds. The scope is known for the kinds of Kubernetes and of
/// the operator.
#[tokio::test]
async fn kinds_outside_of_namespaces_are_in_the_cluster_role() {
    let definition = |plural: &str, scope: &str| -> CustomResourceDefinition {
        let spec = json!({ "group": "example.com", "names": { "kind": "Any", "plural": plural }, "scope": scope, "versions": [] });
        serde_json::from_value(json!({ "spec": spec })).expect("a CRD")
    };
    let resource = |group: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{group}/v1"),
        kind: "Any".to_owned(),
        plural: plural.to_owned(),
    };
    let watch = |group, plural| Watch::reads_only(resource(group, plural));
    let controller = Controller::of::<ConfigMap>(reconcile)
        .watch(watch("storage.k8s.io", "storageclasses"))
        .watch(watch("example.com", "sites"))
        .watch(watch("example.com", "rooms"))
        .watch(watch("example.com", "others"))
        .needs(Permission::to_plural("", "nodes", [Verb::Patch]))
        .needs(Permission::to_plural("", "namespaces", [Verb::Get]).named("a"));
    let manager = manager()
        .crd(definition("sites", "Cluster"))
        .crd(definition("rooms", "Namespaced"))
        .controller(controller)
        .namespaces(["a"]);
    let permissions = manager.permissions();
    let wanted = [
        " | nodes |  |  | patch",
        "example.com | sites |  |  | list watch",
        "storage.k8s.io | storageclasses |  |  | list watch",
    ];
    assert_eq!(shown(&permissions.cluster_role()), wanted);
    let wanted = [
        " | configmaps |  |  | list watch",
        " | events |  |  | create patch",
        " | namespaces | a |  | get",
        "example.com | others rooms |  |  | list watch",
    ];
    assert_eq!(shown(&permissions.roles()["a"]), wanted);
}

#[test]
fn a_right_that_another_includes_is_dropped() {
    let needed = [
        ("one", Permission::to::<Pod>([Verb::Get]).cluster_wide().optional()),
        ("two", Permission::to::<Pod>([Verb::Get, Verb::Patch]).named("a").in_namespace("x")),
        ("three", Permission::to::<Pod>([Verb::Get]).in_namespace("x")),
    ];
    let permissions = Permissions::merge(needed, &[]);
    assert_eq!(shown(&permissions.cluster_role()), [" | pods |  |  | get"]);
    assert_eq!(shown(&permissions.roles()["x"]), [" | pods | a |  | patch"]);
    let everywhere = permissions.rights().next().expect("a right");
    assert_eq!(permissions.needed_by(everywhere), "one, three, two");
    assert!(!permissions.is_optional(everywhere), "two of its parts always need it");
}

#[test]
fn requests_are_granted_as_rbac_grants_them() {
    let needed = [
        ("c", Permission::to::<Pod>([Verb::List, Verb::Create]).in_operator_namespace()),
        ("c", Permission::to::<Secret>([Verb::Get, Verb::Watch]).named("a").in_namespace("x")),
        ("c", Permission::to_url("/healthz/*", [Verb::Get])),
    ];
    let permissions = Permissions::merge(needed, &[]);
    let granting = |method: Method, uri: &str| {
        let access = Access::of(&method, &uri.parse::<Uri>().expect("a URI")).expect("a verb");
        permissions.granting(&access, "ops").map(ToString::to_string).unwrap_or_default()
    };
    let list = "list pods in the operator's namespace";
    assert_eq!(granting(Method::GET, "/api/v1/namespaces/ops/pods?limit=3"), list);
    assert_eq!(granting(Method::GET, "/api/v1/namespaces/default/pods"), "");
    assert_eq!(granting(Method::GET, "/api/v1/pods"), "");
    assert_eq!(granting(Method::GET, "/api/v1/namespaces/ops/pods/a"), "");
    assert_eq!(
        granting(Method::POST, "/api/v1/namespaces/ops/pods"),
        "create pods in the operator's namespace"
    );
    assert_eq!(granting(Method::POST, "/api/v1/namespaces/ops/pods/a/eviction"), "");
    assert_eq!(granting(Method::GET, "/api/v1/namespaces/x/secrets/a"), "get secrets \"a\" in namespace x");
    assert_eq!(granting(Method::GET, "/api/v1/namespaces/x/secrets/b"), "");
    let one = "/api/v1/namespaces/x/secrets?watch=true&fieldSelector=metadata.name%3Da";
    assert_eq!(granting(Method::GET, one), "watch secrets \"a\" in namespace x");
    assert_eq!(granting(Method::GET, "/api/v1/namespaces/x/secrets?watch=true"), "");
    assert_eq!(granting(Method::GET, "/healthz/etcd"), "get /healthz/*");
}

#[test]
fn a_denial_says_whether_the_right_is_declared() {
    let declared = Permissions::merge([("c", Permission::to::<Pod>([Verb::Delete]))], &["a".to_owned()]);
    let text = |verb: &str, resource: &str| {
        format!(
            "deleting Pod a/x: pods \"x\" is forbidden: User \"bot\" cannot {verb} resource \"{resource}\" in API group \"\" in the \
             namespace \"a\" (403)"
        )
    };
    let advice =
        |text: &str| Forbidden::find(text).map(|denial| denial.advice(&declared)).unwrap_or_default();
    assert_eq!(
        advice(&text("delete", "pods")),
        "this right is declared, but bot does not have it: apply the operator's manifests again"
    );
    assert_eq!(
        advice(&text("patch", "pods/status")),
        "this right is not declared: add `.needs(Permission::to::<the type of pods>([Verb::Patch]).subresource(\"status\"))` where the \
         controller is built, and apply the operator's manifests again"
    );
    assert_eq!(advice("the API server said no"), "");
    let cluster = "nodes is forbidden: User \"bot\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    assert_eq!(Forbidden::find(cluster).expect("a denial").access().to_string(), "list nodes");
    let url = "forbidden: User \"bot\" cannot get path \"/metrics\"";
    assert_eq!(Forbidden::find(url).expect("a denial").access().to_string(), "get /metrics");
}
