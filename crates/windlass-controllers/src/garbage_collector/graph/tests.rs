use kube_core::discovery::ApiResource;

use super::*;

fn resource(kind: &str, namespaced: bool) -> Arc<Resource> {
    let api = ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    Arc::new(Resource { api, namespaced, watchable: true, deletable: true, collection_deletable: true })
}

fn node(name: &str) -> Node {
    Node {
        resource: resource("Thing", true),
        namespace: Some("default".into()),
        name: name.into(),
        uid: name.into(),
        owners: Vec::new(),
        deletion: Deletion::No,
    }
}

fn owned(name: &str, owner: &str) -> Node {
    let owner = OwnerRef {
        api_version: "v1".into(),
        kind: "Thing".into(),
        name: owner.into(),
        uid: owner.into(),
        blocks: true,
    };
    Node { owners: vec![owner], ..node(name) }
}

fn affected(uids: &[&str]) -> Affected {
    uids.iter().map(|uid| Uid::from(*uid)).collect()
}

#[test]
fn a_dependent_of_a_known_owner_needs_no_look() {
    let mut graph = Graph::default();
    assert_eq!(graph.observe(node("owner")), affected(&[]));
    assert_eq!(graph.observe(owned("child", "owner")), affected(&[]));
}

#[test]
fn a_dependent_of_an_owner_never_seen_is_looked_at() {
    let mut graph = Graph::default();
    assert_eq!(graph.observe(owned("child", "owner")), affected(&["child"]));
}

#[test]
fn the_edge_to_an_owner_seen_later_works_when_it_goes() {
    let mut graph = Graph::default();
    graph.observe(owned("child", "owner"));
    graph.observe(node("owner"));
    assert_eq!(graph.remove(&"owner".into()), affected(&["child"]));
}

#[test]
fn an_owner_in_another_namespace_is_not_the_one_meant() {
    let mut graph = Graph::default();
    graph.observe(Node { namespace: Some("elsewhere".into()), ..node("owner") });
    assert_eq!(graph.observe(owned("child", "owner")), affected(&["child"]));
}

#[test]
fn a_cluster_scoped_owner_may_be_named_from_a_namespace() {
    let mut graph = Graph::default();
    graph.observe(Node { namespace: None, resource: resource("Thing", false), ..node("owner") });
    assert_eq!(graph.observe(owned("child", "owner")), affected(&[]));
}

#[test]
fn foreground_deletion_looks_at_owner_and_dependents() {
    let mut graph = Graph::default();
    graph.observe(node("owner"));
    graph.observe(owned("a", "owner"));
    graph.observe(owned("b", "owner"));
    let deleting = Node { deletion: Deletion::Foreground, ..node("owner") };
    assert_eq!(graph.observe(deleting.clone()), affected(&["a", "b", "owner"]));
    assert_eq!(graph.observe(deleting), affected(&[]), "the same state again asks for nothing");
    assert_eq!(graph.remove(&"a".into()), affected(&["owner"]));
    assert_eq!(graph.blockers(&"owner".into()).map(|node| &*node.name).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_dependent_that_stops_blocking_wakes_the_waiting_owner() {
    let mut graph = Graph::default();
    graph.observe(owned("child", "owner"));
    graph.observe(Node { deletion: Deletion::Foreground, ..node("owner") });
    let mut released = owned("child", "owner");
    released.owners[0].blocks = false;
    assert!(graph.observe(released).contains("owner"));
    assert_eq!(graph.blockers(&"owner".into()).count(), 0);
}

#[test]
fn a_dependent_that_leaves_its_owner_is_forgotten_by_it() {
    let mut graph = Graph::default();
    graph.observe(node("owner"));
    graph.observe(owned("child", "owner"));
    graph.observe(node("child"));
    assert_eq!(graph.remove(&"owner".into()), affected(&[]));
}

#[test]
fn orphaning_is_the_owners_work_alone() {
    let mut graph = Graph::default();
    graph.observe(node("owner"));
    graph.observe(owned("child", "owner"));
    let orphaning = Node { deletion: Deletion::Orphaning, ..node("owner") };
    assert_eq!(graph.observe(orphaning), affected(&["owner"]));
}

/// A graph with a Widget that owns a Thing.
fn with_widget() -> (Graph, Node) {
    let mut graph = Graph::default();
    graph.observe(Node { resource: resource("Widget", true), ..node("owner") });
    let mut child = owned("child", "owner");
    child.owners[0].kind = "Widget".into();
    graph.observe(child.clone());
    (graph, child)
}

#[test]
fn a_resource_that_is_not_served_takes_its_nodes_along() {
    let (mut graph, child) = with_widget();
    assert_eq!(graph.forget_resource(&resource("Widget", true)), affected(&["child"]));
    assert!(graph.node(&"owner".into()).is_none());
    assert!(!graph.is_absent(&child.owners[0], &child), "the owner may exist");
}

#[test]
fn the_objects_of_a_deleted_resource_are_absent() {
    let (mut graph, child) = with_widget();
    assert_eq!(graph.remove_deleted_resource(&resource("Widget", true)), affected(&["child"]));
    assert!(graph.is_absent(&child.owners[0], &child));
}

#[test]
fn a_deleted_owner_is_remembered_until_its_last_dependent_is_gone() {
    let (mut graph, child) = with_widget();
    let owner = &child.owners[0];
    assert!(!graph.is_absent(owner, &child));
    graph.remove(&"owner".into());
    assert!(graph.is_absent(owner, &child));
    let another = OwnerRef { name: "another".into(), ..owner.clone() };
    assert!(!graph.is_absent(&another, &child), "an owner of another name is not the deleted one");
    graph.remove(&"child".into());
    assert!(graph.absent.is_empty());
}

#[test]
fn dependents_of_owners_that_were_never_seen_are_found_by_the_owner() {
    let mut graph = Graph::default();
    graph.observe(owned("a", "unseen"));
    graph.observe(node("seen"));
    graph.observe(owned("b", "seen"));
    assert_eq!(graph.with_virtual_owner(|owner| owner.name == "unseen"), affected(&["a"]));
    assert_eq!(graph.with_virtual_owner(|_| true), affected(&["a"]));
    assert_eq!(graph.with_virtual_owner(|_| false), affected(&[]));
}
