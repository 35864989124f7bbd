//! The files of a pod's volumes.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{
    Container, DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection,
};
use windlass_node::volume::Payload;

use super::environment::Scope;
use super::field;
use super::objects::TokenRequest;

/// The content of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kubelet) enum VolumeContent {
    /// A directory that is empty at first.
    Empty,
    /// Files that follow the objects of the cluster.
    Files(Payload),
}

/// Why a volume has no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kubelet) struct MountError {
    pub volume: String,
    pub message: String,
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MountVolume.SetUp failed for volume {:?} : {}", self.volume, self.message)
    }
}

/// The default mode of a file.
const MODE: i32 = 0o644;

/// Returns the content of a volume.
///
/// # Errors
/// An object or a key is missing, or this node has no volumes of this type.
pub(in crate::kubelet) fn content(scope: Scope<'_>, volume: &Volume) -> Result<VolumeContent, String> {
    let mut files = Payload::default();
    if volume.empty_dir.is_some() {
        return Ok(VolumeContent::Empty);
    }
    if let Some(source) = &volume.config_map {
        let mode = source.default_mode.unwrap_or(MODE);
        config_map(scope, &source.name, source.items.as_deref(), mode, source.optional, &mut files)?;
    } else if let Some(source) = &volume.secret {
        let mode = source.default_mode.unwrap_or(MODE);
        let name = source.secret_name.as_deref().unwrap_or_default();
        secret(scope, name, source.items.as_deref(), mode, source.optional, &mut files)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(MODE);
        downward(scope, source.items.as_deref().unwrap_or_default(), mode, &mut files)?;
    } else if let Some(source) = &volume.projected {
        projected(scope, source, &mut files)?;
    } else {
        return Err(refusal(volume));
    }
    Ok(VolumeContent::Files(files))
}

/// Returns whether containers only read a volume, whatever the mount says: the kubelet writes the files.
pub(in crate::kubelet) fn is_read_only(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some()
}

fn refusal(volume: &Volume) -> String {
    if let Some(source) = &volume.host_path {
        return format!(
            "this node mounts no path of the machine (hostPath {:?}): use an emptyDir, a ConfigMap or a Secret",
            source.path
        );
    }
    if let Some(source) = &volume.persistent_volume_claim {
        return format!(
            "this node has no persistent volumes (claim {:?}): use an emptyDir, or the annotation \
             kubelet.windlass.dev/run: simulate",
            source.claim_name
        );
    }
    "this node has no volumes of this type: emptyDir, configMap, secret, downwardAPI and projected are \
     supported"
        .to_owned()
}

fn projected(scope: Scope<'_>, source: &ProjectedVolumeSource, files: &mut Payload) -> Result<(), String> {
    let mode = source.default_mode.unwrap_or(MODE);
    source.sources.iter().flatten().try_for_each(|projection| project(scope, projection, mode, files))
}

fn project(
    scope: Scope<'_>,
    projection: &VolumeProjection,
    mode: i32,
    files: &mut Payload,
) -> Result<(), String> {
    if let Some(source) = &projection.config_map {
        config_map(scope, &source.name, source.items.as_deref(), mode, source.optional, files)?;
    }
    if let Some(source) = &projection.secret {
        secret(scope, &source.name, source.items.as_deref(), mode, source.optional, files)?;
    }
    if let Some(source) = &projection.downward_api {
        downward(scope, source.items.as_deref().unwrap_or_default(), mode, files)?;
    }
    if let Some(source) = &projection.service_account_token {
        let request = TokenRequest {
            audience: source.audience.clone().unwrap_or_default(),
            expiration_seconds: source.expiration_seconds.unwrap_or(3600),
        };
        let token = scope.objects.tokens.get(&request).ok_or("the token has not been issued")?;
        add(files, &source.path, token.as_bytes().to_vec(), mode)?;
    }
    if projection.cluster_trust_bundle.is_some() {
        return Err("this node has no cluster trust bundles".to_owned());
    }
    if projection.pod_certificate.is_some() {
        return Err("this node has no pod certificates".to_owned());
    }
    Ok(())
}

fn config_map(
    scope: Scope<'_>,
    name: &str,
    items: Option<&[KeyToPath]>,
    mode: i32,
    optional: Option<bool>,
    files: &mut Payload,
) -> Result<(), String> {
    let is_optional = optional == Some(true);
    let Some(map) = scope.objects.config_maps.get(name) else {
        return if is_optional { Ok(()) } else { Err(format!("configmap {name:?} not found")) };
    };
    let text = map.data.iter().flatten().map(|(key, value)| (key.clone(), value.as_bytes().to_vec()));
    let binary = map.binary_data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone()));
    let data: BTreeMap<String, Vec<u8>> = text.chain(binary).collect();
    let missing = "configmap references non-existent config key";
    add_items(&data, items, mode, is_optional, missing, files)
}

fn secret(
    scope: Scope<'_>,
    name: &str,
    items: Option<&[KeyToPath]>,
    mode: i32,
    optional: Option<bool>,
    files: &mut Payload,
) -> Result<(), String> {
    let is_optional = optional == Some(true);
    let Some(secret) = scope.objects.secrets.get(name) else {
        return if is_optional { Ok(()) } else { Err(format!("secret {name:?} not found")) };
    };
    let data = secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone()));
    let missing = "references non-existent secret key";
    add_items(&data.collect(), items, mode, is_optional, missing, files)
}

fn add_items(
    data: &BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    mode: i32,
    is_optional: bool,
    missing: &str,
    files: &mut Payload,
) -> Result<(), String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return data.iter().try_for_each(|(key, bytes)| add(files, key, bytes.clone(), mode));
    };
    for item in items {
        match data.get(&item.key) {
            Some(bytes) => add(files, &item.path, bytes.clone(), item.mode.unwrap_or(mode))?,
            None if is_optional => {}
            None => return Err(format!("{missing}: {}", item.key)),
        }
    }
    Ok(())
}

fn downward(
    scope: Scope<'_>,
    items: &[DownwardAPIVolumeFile],
    mode: i32,
    files: &mut Payload,
) -> Result<(), String> {
    for item in items {
        let value = match (&item.field_ref, &item.resource_field_ref) {
            (Some(selector), _) => field::field(scope.pod, scope.addresses, &selector.field_path)?,
            (None, Some(selector)) => field::resource(scope.spec, &Container::default(), selector)?,
            (None, None) => String::new(),
        };
        add(files, &item.path, value.into_bytes(), item.mode.unwrap_or(mode))?;
    }
    Ok(())
}

/// Adds a file. The path must stay inside of the volume.
fn add(files: &mut Payload, path: &str, bytes: Vec<u8>, mode: i32) -> Result<(), String> {
    let is_inside = !path.is_empty()
        && !path.starts_with('/')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !path.starts_with("..");
    if !is_inside {
        return Err(format!("the path {path:?} is not inside of the volume"));
    }
    files.insert(path, bytes, u32::try_from(mode).unwrap_or(0o644) & 0o777);
    Ok(())
}
