//! `PodTopologyLabels`: pods get the zone and the region of their node as labels.

use serde_json::{Value, json};

use crate::meta;
use crate::store::Store;
use windlass_kinds::resources::NODES;

const COPIED: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Copies the labels of a node to an object. A node that does not exist has no labels.
pub(super) fn copy_labels(store: &Store, node: &str, object: &mut Value) {
    let view = store.view();
    let Some(node) = view.get(&NODES, node).map(|node| node.value()) else { return };
    for key in COPIED {
        if let Some(value) = node["metadata"]["labels"].get(key) {
            let metadata = meta::fields_mut(object).entry("metadata").or_insert_with(|| json!({}));
            meta::entry_object(metadata, "labels").insert(key.to_owned(), value.clone());
        }
    }
}
