//! The objects that a pod refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec, Secret, Service, Volume, VolumeProjection};

/// The names of the objects that a pod refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kubelet) struct References {
    pub config_maps: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
}

/// A token to request for a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::kubelet) struct TokenRequest {
    /// Empty: the API server.
    pub audience: String,
    pub expiration_seconds: i64,
}

/// The objects of a pod's namespace that the pod refers to, the Services, and the pod's tokens.
#[derive(Clone, Debug, Default)]
pub(in crate::kubelet) struct Objects {
    /// Objects that do not exist are left out.
    pub config_maps: BTreeMap<String, ConfigMap>,
    pub secrets: BTreeMap<String, Secret>,
    /// All Services of the cluster.
    pub services: Vec<Arc<Service>>,
    pub tokens: BTreeMap<TokenRequest, String>,
}

impl References {
    /// Returns the objects that the volumes of a pod need.
    pub(in crate::kubelet) fn of_volumes(spec: &PodSpec) -> Self {
        let mut all = Self::default();
        for volume in spec.volumes.iter().flatten() {
            all.config_maps.extend(volume.config_map.as_ref().map(|source| source.name.clone()));
            all.secrets.extend(volume.secret.as_ref().and_then(|source| source.secret_name.clone()));
            for projection in projections(volume) {
                all.config_maps.extend(projection.config_map.as_ref().map(|source| source.name.clone()));
                all.secrets.extend(projection.secret.as_ref().map(|source| source.name.clone()));
            }
        }
        all
    }

    /// Returns the objects that the environment of a container needs.
    pub(in crate::kubelet) fn of_environment(container: &Container) -> Self {
        let mut all = Self::default();
        for source in container.env_from.iter().flatten() {
            all.config_maps.extend(source.config_map_ref.as_ref().map(|source| source.name.clone()));
            all.secrets.extend(source.secret_ref.as_ref().map(|source| source.name.clone()));
        }
        let values = container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
        for source in values {
            all.config_maps.extend(source.config_map_key_ref.as_ref().map(|source| source.name.clone()));
            all.secrets.extend(source.secret_key_ref.as_ref().map(|source| source.name.clone()));
        }
        all
    }

    /// Returns all objects that a pod refers to, with the Secrets of registries.
    pub(in crate::kubelet) fn of_pod(spec: &PodSpec) -> Self {
        let mut all = Self::of_volumes(spec);
        for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
            let own = Self::of_environment(container);
            all.config_maps.extend(own.config_maps);
            all.secrets.extend(own.secrets);
        }
        all.secrets.extend(spec.image_pull_secrets.iter().flatten().map(|secret| secret.name.clone()));
        all
    }
}

impl TokenRequest {
    /// Returns the tokens that the volumes of a pod contain.
    pub(in crate::kubelet) fn of_volumes(spec: &PodSpec) -> BTreeSet<Self> {
        let projections = spec.volumes.iter().flatten().flat_map(projections);
        let tokens = projections.filter_map(|projection| projection.service_account_token.as_ref());
        tokens
            .map(|token| Self {
                audience: token.audience.clone().unwrap_or_default(),
                expiration_seconds: token.expiration_seconds.unwrap_or(3600),
            })
            .collect()
    }
}

fn projections(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten())
}
