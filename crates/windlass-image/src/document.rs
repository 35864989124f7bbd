//! The JSON documents of an image: index, manifest and configuration.
//!
//! A document is serialised once, when the document is made. Afterwards only the bytes are copied, because the digest is that of the
//! bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, Platform};

/// Media types of documents and layers.
pub mod media_type {
    /// An index: several manifests.
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// A manifest: a configuration and layers.
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// The configuration of an image.
    pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// The configuration of a manifest that is no image.
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// A layer without compression.
    pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    /// A layer compressed with gzip.
    pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// A layer compressed with zstd.
    pub const LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
    /// Docker's index.
    pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// Docker's manifest.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// Docker's layer compressed with gzip.
    pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    /// Docker's configuration of an image.
    pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";

    /// Returns whether a media type is that of an index.
    pub fn is_index(media_type: &str) -> bool {
        matches!(media_type, INDEX | DOCKER_INDEX)
    }

    /// Returns whether a media type is that of a manifest.
    pub fn is_manifest(media_type: &str) -> bool {
        matches!(media_type, MANIFEST | DOCKER_MANIFEST)
    }
}

/// Text by key.
pub(crate) type Annotations = BTreeMap<String, String>;

/// The digest, size and media type of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type.
    pub media_type: String,
    /// The digest.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The platform of a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// The type of an artifact that is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
}

impl Descriptor {
    /// Describes bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// Makes a descriptor without annotations.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            platform: None,
            annotations: Annotations::new(),
            artifact_type: None,
        }
    }
}

/// Several manifests, usually of one image for several platforms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The manifests.
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

impl Index {
    /// Makes an index of manifests.
    pub fn new(manifests: Vec<Descriptor>) -> Self {
        let media_type = Some(media_type::INDEX.to_owned());
        Self { schema_version: 2, media_type, manifests, annotations: Annotations::new() }
    }
}

/// The configuration and the layers of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The type of an artifact that is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, the lowest layer first.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// The manifest that this manifest refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

impl Manifest {
    /// Makes the manifest of an image.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media_type::MANIFEST.to_owned()),
            artifact_type: None,
            config,
            layers,
            subject: None,
            annotations: Annotations::new(),
        }
    }
}

/// The configuration of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// When the image was made, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The platform.
    #[serde(flatten)]
    pub platform: Platform,
    /// How a container starts.
    #[serde(default)]
    pub config: Config,
    /// The digests of the layers without compression.
    pub rootfs: RootFs,
    /// How each layer was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<History>,
}

/// How a container of an image starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Config {
    /// The user: `UID`, `UID:GID`, `NAME` or `NAME:GROUP`. Empty is root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Ports that the program listens on: `8080/tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_none")]
    pub exposed_ports: Option<BTreeMap<String, serde_json::Value>>,
    /// The environment, as `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub env: Vec<String>,
    /// The program and its first arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub entrypoint: Vec<String>,
    /// Further arguments, or the program if there is no entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub cmd: Vec<String>,
    /// Paths that are volumes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_none")]
    pub volumes: Option<BTreeMap<String, serde_json::Value>>,
    /// The working directory. Empty is `/`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: Annotations,
    /// The signal that asks the program to stop: `SIGTERM`, `15`. Empty is `SIGTERM`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stop_signal: String,
}

/// The digests of layers without compression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The digests, that of the lowest layer first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub diff_ids: Vec<Digest>,
}

/// How a layer was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When the layer was made, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The program that made the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// True if this step made no layer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_layer: bool,
}

/// Reads `null`, which Go writes for a nil slice or map, as the default.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn null_is_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}
