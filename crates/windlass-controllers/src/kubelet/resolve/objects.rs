//! The objects that a pod refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec, Secret, Service, Volume, VolumeProjection};

use super::missing::ROOT_CA;

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

/// A reference of a pod to an object.
struct Reference<'a> {
    name: &'a str,
    is_secret: bool,
    is_optional: bool,
}

impl<'a> Reference<'a> {
    fn config_map(name: &'a str, optional: Option<bool>) -> Self {
        Self { name, is_secret: false, is_optional: optional == Some(true) }
    }

    fn secret(name: &'a str, optional: Option<bool>) -> Self {
        Self { name, is_secret: true, is_optional: optional == Some(true) }
    }
}

impl References {
    /// Returns the objects that the volumes of a pod need.
    pub(in crate::kubelet) fn of_volumes(spec: &PodSpec) -> Self {
        in_volumes(spec).collect()
    }

    /// Returns the objects that the environment of a container needs.
    pub(in crate::kubelet) fn of_environment(container: &Container) -> Self {
        in_environment(container).collect()
    }

    /// Returns all objects that a pod refers to, with the Secrets of registries.
    pub(in crate::kubelet) fn of_pod(spec: &PodSpec) -> Self {
        in_pod(spec).collect()
    }

    /// Returns the objects of a pod that a simulated node looks for. Optional objects are left out.
    pub(in crate::kubelet) fn required_by(spec: &PodSpec) -> Self {
        in_pod(spec).filter(is_required).collect()
    }

    /// Returns whether the environment of a container needs an object that is not optional.
    pub(in crate::kubelet) fn are_required_by(container: &Container) -> bool {
        in_environment(container).any(|reference| is_required(&reference))
    }

    pub(in crate::kubelet) fn is_empty(&self) -> bool {
        self.config_maps.is_empty() && self.secrets.is_empty()
    }
}

impl<'a> FromIterator<Reference<'a>> for References {
    fn from_iter<I: IntoIterator<Item = Reference<'a>>>(references: I) -> Self {
        let mut all = Self::default();
        for reference in references {
            let names = if reference.is_secret { &mut all.secrets } else { &mut all.config_maps };
            names.insert(reference.name.to_owned());
        }
        all
    }
}

fn is_required(reference: &Reference<'_>) -> bool {
    !reference.is_optional && (reference.is_secret || reference.name != ROOT_CA)
}

fn in_pod(spec: &PodSpec) -> impl Iterator<Item = Reference<'_>> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let registries = spec.image_pull_secrets.iter().flatten();
    in_volumes(spec)
        .chain(containers.flat_map(in_environment))
        .chain(registries.map(|secret| Reference::secret(&secret.name, None)))
}

fn in_volumes(spec: &PodSpec) -> impl Iterator<Item = Reference<'_>> {
    spec.volumes.iter().flatten().flat_map(|volume| {
        let map = volume.config_map.iter().map(|map| Reference::config_map(&map.name, map.optional));
        let secret = volume.secret.iter().map(|secret| {
            Reference::secret(secret.secret_name.as_deref().unwrap_or_default(), secret.optional)
        });
        let projected = projections(volume).flat_map(|projection| {
            let map = projection.config_map.iter().map(|map| Reference::config_map(&map.name, map.optional));
            let secret =
                projection.secret.iter().map(|secret| Reference::secret(&secret.name, secret.optional));
            map.chain(secret)
        });
        map.chain(secret).chain(projected)
    })
}

fn in_environment(container: &Container) -> impl Iterator<Item = Reference<'_>> {
    let sources = container.env_from.iter().flatten().flat_map(|source| {
        let map = source.config_map_ref.iter().map(|map| Reference::config_map(&map.name, map.optional));
        let secret = source.secret_ref.iter().map(|secret| Reference::secret(&secret.name, secret.optional));
        map.chain(secret)
    });
    let values = container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
    let values = values.flat_map(|source| {
        let map = source.config_map_key_ref.iter().map(|map| Reference::config_map(&map.name, map.optional));
        let secret =
            source.secret_key_ref.iter().map(|secret| Reference::secret(&secret.name, secret.optional));
        map.chain(secret)
    });
    sources.chain(values)
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
