//! The volume that fits a claim best.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube_core::ResourceExt;
use windlass_schema::Quantity;

use super::names::{class_of, class_of_volume, is_reserved_for};
use crate::labels::selects;
use crate::node_fit::matches_selector;

/// The mode of volumes and claims that name no mode.
const FILESYSTEM: &str = "Filesystem";

/// A node with labels.
type NodeLabels<'a> = (&'a str, &'a BTreeMap<String, String>);

/// Returns the volume for a claim: the volume that is reserved for the claim, or the smallest available volume that
/// fits. With `only_reserved`, no other volume is returned. With a node, the volume must be usable on the node.
pub(crate) fn best_match<'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl Iterator<Item = &'a PersistentVolume>,
    node: Option<NodeLabels<'_>>,
    only_reserved: bool,
) -> Option<&'a PersistentVolume> {
    let mut smallest: Option<(Option<Quantity>, &str, &PersistentVolume)> = None;
    for volume in volumes.filter(|volume| is_candidate(volume, claim)) {
        let is_usable = node.is_none_or(|(name, labels)| fits_node(volume, name, labels));
        if is_reserved_for(volume, claim) {
            return is_usable.then_some(volume);
        }
        let rank = (capacity(volume), volume.metadata.name.as_deref().unwrap_or_default(), volume);
        let is_smaller = smallest.as_ref().is_none_or(|(size, name, _)| (&rank.0, rank.1) < (size, *name));
        if !only_reserved && is_usable && is_smaller {
            smallest = Some(rank);
        }
    }
    smallest.map(|(_, _, volume)| volume)
}

/// Returns whether a claim may be bound to the volume, on a node where the volume can be used.
pub(crate) fn is_candidate(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    // Most volumes belong to another claim: the cheap tests come first.
    volume.metadata.deletion_timestamp.is_none()
        && (is_reserved_for(volume, claim) || is_free(volume, claim))
        && mismatch(claim, volume).is_none()
}

/// Returns whether no claim uses the volume, and the class and the labels are the wanted ones.
fn is_free(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Available")
        && volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none())
        && class_of_volume(volume) == class_of(claim)
        && selector.is_none_or(|selector| selects(selector, Some(volume.labels())))
}

/// Returns why a volume does not satisfy a claim, in the words of kube-controller-manager.
pub(crate) fn mismatch(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<&'static str> {
    let (wanted, offered) = (claim.spec.as_ref()?, volume.spec.as_ref()?);
    let modes = offered.access_modes.as_deref().unwrap_or_default();
    if capacity(volume) < requested(claim) {
        Some("requested PV is too small")
    } else if wanted.volume_attributes_class_name.as_deref().unwrap_or_default()
        != offered.volume_attributes_class_name.as_deref().unwrap_or_default()
    {
        Some("volumeAttributesClassName does not match")
    } else if wanted.volume_mode.as_deref().unwrap_or(FILESYSTEM)
        != offered.volume_mode.as_deref().unwrap_or(FILESYSTEM)
    {
        Some("incompatible volumeMode")
    } else if wanted.access_modes.iter().flatten().any(|mode| !modes.contains(mode)) {
        Some("incompatible accessMode")
    } else {
        None
    }
}

/// Returns whether a volume can be used on a node.
pub(crate) fn fits_node(volume: &PersistentVolume, node: &str, labels: &BTreeMap<String, String>) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|selector| matches_selector(selector, node, labels))
}

pub(crate) fn capacity(volume: &PersistentVolume) -> Option<Quantity> {
    volume.spec.as_ref()?.capacity.as_ref()?.get("storage")?.0.parse().ok()
}

/// Returns the size that a claim asks for.
pub(crate) fn requested(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(spec: Value) -> PersistentVolumeClaim {
        let mut claim = json!({
            "metadata": {"name": "data", "namespace": "ns", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
        });
        merge(&mut claim["spec"], spec);
        serde_json::from_value(claim).unwrap()
    }

    fn volume(name: &str, size: &str, spec: Value) -> PersistentVolume {
        let mut volume = json!({
            "metadata": {"name": name, "labels": {"disk": name}},
            "spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": size}},
            "status": {"phase": "Available"},
        });
        merge(&mut volume["spec"], spec);
        serde_json::from_value(volume).unwrap()
    }

    fn merge(object: &mut Value, change: Value) {
        let Value::Object(change) = change else { return };
        object.as_object_mut().unwrap().extend(change);
    }

    fn matched(claim: &PersistentVolumeClaim, volumes: &[PersistentVolume]) -> Option<String> {
        best_match(claim, volumes.iter(), None, false).map(ResourceExt::name_any)
    }

    #[test]
    fn the_smallest_volume_that_is_large_enough_matches() {
        let sizes = [("tiny", "1Gi"), ("large", "10Gi"), ("fit", "5Gi"), ("larger", "20Gi")];
        let volumes = sizes.map(|(name, size)| volume(name, size, json!({})));
        assert_eq!(matched(&claim(json!({})), &volumes).as_deref(), Some("fit"));
        let large = json!({"resources": {"requests": {"storage": "11Gi"}}});
        assert_eq!(matched(&claim(large), &volumes).as_deref(), Some("larger"));
        assert_eq!(matched(&claim(json!({"resources": {"requests": {"storage": "1Ti"}}})), &volumes), None);
    }

    #[test]
    fn class_modes_and_labels_must_match() {
        let plain = [volume("a", "5Gi", json!({}))];
        for (wanted, matches) in [
            (json!({"accessModes": ["ReadOnlyMany"]}), true),
            (json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}), true),
            (json!({"accessModes": ["ReadWriteMany"]}), false),
            (json!({"storageClassName": ""}), true),
            (json!({"storageClassName": "fast"}), false),
            (json!({"volumeMode": "Block"}), false),
            (json!({"selector": {"matchLabels": {"disk": "a"}}}), true),
            (json!({"selector": {"matchLabels": {"disk": "b"}}}), false),
        ] {
            assert_eq!(matched(&claim(wanted.clone()), &plain).is_some(), matches, "{wanted}");
        }
    }

    #[test]
    fn a_reserved_volume_comes_first_and_never_matches_another_claim() {
        let reserved = |uid: Value| {
            let reference = json!({"name": "data", "namespace": "ns", "uid": uid});
            volume("reserved", "100Gi", json!({"claimRef": reference, "storageClassName": "other"}))
        };
        let free = volume("free", "5Gi", json!({}));
        let first = |uid| matched(&claim(json!({})), &[free.clone(), reserved(uid)]);
        assert_eq!(first(json!(null)).as_deref(), Some("reserved"));
        assert_eq!(first(json!("u")).as_deref(), Some("reserved"));
        assert_eq!(first(json!("of another claim")).as_deref(), Some("free"));
        let found = best_match(&claim(json!({})), [&free].into_iter(), None, true);
        assert!(found.is_none(), "a free volume is not reserved");
    }

    #[test]
    fn a_volume_is_used_only_on_nodes_that_it_allows() {
        let zone = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
        ]}]}});
        let local = [volume("local", "5Gi", json!({"nodeAffinity": zone}))];
        let labels =
            |zone: &str| BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), zone.to_owned())]);
        for (zone, matches) in [("a", true), ("b", false)] {
            let found = best_match(&claim(json!({})), local.iter(), Some(("n", &labels(zone))), false);
            assert_eq!(found.is_some(), matches, "zone {zone}");
        }
    }
}
