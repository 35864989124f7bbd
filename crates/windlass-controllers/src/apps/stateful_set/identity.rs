//! The identity of a StatefulSet's pods: name, ordinal, labels, host name and volumes.

use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use kube_core::ResourceExt;

use crate::apps::controller_revision::POD_REVISION;
use crate::pods;

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Returns the name of the set and the ordinal in a pod's name.
pub(super) fn parent_and_ordinal(name: &str) -> Option<(&str, i32)> {
    let (parent, ordinal) = name.rsplit_once('-')?;
    let digits = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| ordinal.parse().ok()).flatten().map(|ordinal| (parent, ordinal))
}

/// Returns the ordinal of a pod.
pub(super) fn ordinal(pod: &Pod) -> Option<i32> {
    Some(parent_and_ordinal(pod.metadata.name.as_deref()?)?.1)
}

/// Returns the ordinals that the set must have: from `ordinals.start` on.
pub(super) fn ordinals(set: &StatefulSet) -> Range<i32> {
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or(0);
    start..start.saturating_add(spec.and_then(|spec| spec.replicas).unwrap_or(1))
}

/// Returns a new pod of the set.
pub(super) fn new_pod(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let mut pod = pods::from_template(template, set);
    pod.metadata.name = Some(format!("{}-{ordinal}", set.name_any()));
    set_identity(&mut pod, ordinal);
    set_volumes(set, &mut pod, ordinal);
    let spec = pod.spec.get_or_insert_default();
    spec.hostname.clone_from(&pod.metadata.name);
    spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    pod.labels_mut().insert(POD_REVISION.to_owned(), revision.to_owned());
    pod
}

/// Returns the pod with restored labels and volumes, or `None` if the pod needs no change.
pub(super) fn repaired(set: &StatefulSet, pod: &Pod) -> Option<Pod> {
    let ordinal = ordinal(pod)?;
    let named = pods::label(pod, POD_NAME) == pod.metadata.name.as_deref();
    if named && has_volumes(set, pod, ordinal) {
        return None;
    }
    let mut pod = pod.clone();
    set_identity(&mut pod, ordinal);
    set_volumes(set, &mut pod, ordinal);
    Some(pod)
}

fn set_identity(pod: &mut Pod, ordinal: i32) {
    let name = pod.name_any();
    let labels = pod.labels_mut();
    labels.insert(POD_NAME.to_owned(), name);
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
}

/// Returns the claims of a pod, with the names of the volumes.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let Some(spec) = &set.spec else { return Vec::new() };
    let of_template = |template: &PersistentVolumeClaim| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, template, ordinal));
        claim.metadata.namespace = set.namespace();
        claim.labels_mut().extend(spec.selector.match_labels.clone().unwrap_or_default());
        claim.status = None;
        (template.name_any(), claim)
    };
    spec.volume_claim_templates.iter().flatten().map(of_template).collect()
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.name_any(), set.name_any())
}

fn has_volumes(set: &StatefulSet, pod: &Pod, ordinal: i32) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    claims(set, ordinal).iter().all(|(name, claim)| {
        let volume = volumes.iter().find(|volume| volume.name == *name);
        let source = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
        source.map(|source| &source.claim_name) == claim.metadata.name.as_ref()
    })
}

fn set_volumes(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let claims = claims(set, ordinal);
    if claims.is_empty() {
        return;
    }
    let spec = pod.spec.get_or_insert_default();
    let mut others = spec.volumes.take().unwrap_or_default();
    others.retain(|volume| !claims.iter().any(|(name, _)| *name == volume.name));
    let claimed = claims.into_iter().map(|(name, claim)| Volume {
        name,
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.name_any(),
            read_only: None,
        }),
        ..Volume::default()
    });
    spec.volumes = Some(claimed.chain(others).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ordinal_is_the_last_part_of_the_name() {
        assert_eq!(parent_and_ordinal("web-0"), Some(("web", 0)));
        assert_eq!(parent_and_ordinal("my-web-12"), Some(("my-web", 12)));
        for name in ["web", "web-", "web-a", "web-+1", "web-99999999999"] {
            assert_eq!(parent_and_ordinal(name), None, "{name}");
        }
    }
}
