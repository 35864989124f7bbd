use super::Catalog;
use crate::graph::NodeRef;

#[test]
fn resources_are_as_a_server_lists_them() {
    let catalog = Catalog::builtin();
    assert_eq!(catalog.version(), "1.37.2");
    let first = &catalog.group_versions()[0];
    assert_eq!((&*first.group, &*first.version), ("", "v1"));
    let pods = catalog.resource("", "v1", "pods").unwrap();
    assert_eq!(pods.short_names, ["po".into()]);
    let eviction = pods.subresource("eviction").unwrap();
    assert_eq!(eviction.kind.api_version(), "policy/v1");
    let scale = catalog.resource("apps", "v1", "deployments").unwrap().subresource("scale").unwrap();
    assert_eq!(scale.kind.api_version(), "autoscaling/v1");
    assert!(catalog.resource("", "v1", "flowers").is_none());
}

#[test]
fn every_type_can_be_decoded_and_every_reference_followed() {
    fn count(node: NodeRef<'_>, depth: usize) -> usize {
        let below =
            node.properties().map(|(_, property)| property).chain(node.items()).chain(node.additional());
        1 + if depth < 3 { below.map(|inner| count(inner, depth + 1)).sum() } else { 0 }
    }
    let catalog = Catalog::builtin();
    for kind in catalog.kinds() {
        let schema = catalog.schema(&kind.group, &kind.version, &kind.kind).unwrap();
        assert!(count(schema.root(), 0) > 1, "{kind:?} is empty");
    }
}

#[test]
fn every_resource_has_a_schema() {
    let catalog = Catalog::builtin();
    for gv in catalog.group_versions() {
        for resource in &gv.resources {
            let kind = &resource.kind;
            assert!(catalog.schema(&kind.group, &kind.version, &kind.kind).is_some(), "{kind:?}");
        }
    }
}

#[test]
fn merge_keys_and_list_keys_are_known() {
    let catalog = Catalog::builtin();
    let spec = catalog.definition("io.k8s.api.core.v1.PodSpec").unwrap();
    let containers = spec.root().property("containers").unwrap();
    assert_eq!(containers.patch_meta().unwrap().merge_key.as_deref(), Some("name"));
    assert_eq!(containers.map_keys().collect::<Vec<_>>(), ["name"]);
    assert_eq!(containers.items().unwrap().definition(), Some("io.k8s.api.core.v1.Container"));
    let protocol = catalog.definition("io.k8s.api.core.v1.ServicePort").unwrap();
    assert_eq!(protocol.root().property("protocol").unwrap().default().unwrap(), "TCP");
}
