//! The objects that keep a simulated pod from starting.

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, PodSpec, Volume};

use super::environment::{Scope, environment};
use super::objects::{Objects, TokenRequest};
use super::volume::{MountError, content};

/// The ConfigMap that every namespace of a cluster has. Simulated pods never wait for the ConfigMap.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";

/// Adds the objects that a simulated node has without a request: tokens, and the certificate of the cluster.
pub(in crate::kubelet) fn add_own_objects(spec: &PodSpec, objects: &mut Objects) {
    let tokens = TokenRequest::of_volumes(spec).into_iter();
    objects.tokens.extend(tokens.map(|token| (token, String::new())));
    let data = Some([("ca.crt".to_owned(), String::new())].into());
    objects
        .config_maps
        .entry(ROOT_CA.to_owned())
        .or_insert_with(|| ConfigMap { data, ..ConfigMap::default() });
}

/// Returns the first volume of a pod that cannot be mounted. Only volumes with the content of objects can fail.
pub(in crate::kubelet) fn unmountable(scope: Scope<'_>) -> Option<MountError> {
    scope.spec.volumes.iter().flatten().find_map(|volume| {
        let message = content(scope, &of_objects(volume)?).err()?;
        Some(MountError { volume: volume.name.clone(), message })
    })
}

/// Returns the part of a volume that consists of ConfigMaps, Secrets, fields and tokens.
fn of_objects(volume: &Volume) -> Option<Volume> {
    let mut volume = volume.clone();
    if let Some(sources) = volume.projected.as_mut().and_then(|projected| projected.sources.as_mut()) {
        sources.iter_mut().for_each(|source| {
            source.cluster_trust_bundle = None;
            source.pod_certificate = None;
        });
    }
    let has_files = volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some();
    has_files.then_some(volume)
}

/// Returns why the environment of a container cannot be made.
pub(in crate::kubelet) fn unconfigurable(scope: Scope<'_>, container: &Container) -> Option<String> {
    let mut container = container.clone();
    if let Some(variables) = &mut container.env {
        // The files of volumes are not simulated.
        let is_file = |source: &EnvVarSource| source.file_key_ref.is_some();
        variables.retain(|variable| !variable.value_from.as_ref().is_some_and(is_file));
    }
    environment(scope, &container).err()
}

/// Returns the Secrets of registries that do not exist.
pub(in crate::kubelet) fn missing_pull_secrets(scope: Scope<'_>) -> Vec<String> {
    let names = scope.spec.image_pull_secrets.iter().flatten().map(|secret| secret.name.clone());
    names.filter(|name| !name.is_empty() && !scope.objects.secrets.contains_key(name)).collect()
}
