//! What a client wants to get: the media type, and the object as it is, as a Table or as its metadata only.

use super::{ApiError, MediaType};

/// How a response is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
}

impl Format {
    /// The `Content-Type` of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// The object or list itself.
    #[default]
    Object,
    /// A `Table`, in `meta.k8s.io/v1` or `v1beta1`.
    Table(TableVersion),
    /// Only apiVersion, kind and metadata of the object, or of each object of a list.
    PartialObjectMetadata(TableVersion),
}

/// The version of `meta.k8s.io` that a transformed response claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableVersion {
    /// `meta.k8s.io/v1`.
    V1,
    /// `meta.k8s.io/v1beta1`.
    V1Beta1,
}

impl TableVersion {
    /// The `apiVersion` written.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The outcome of negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The media type.
    pub format: Format,
    /// The transformation.
    pub representation: Representation,
    /// Whether to indent JSON for people.
    pub pretty: bool,
}

/// What a request asks for: one object, a list, or a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One object.
    Object,
    /// A list.
    List,
    /// A watch, which comes as JSON only.
    Watch,
}

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAM_MEDIA_TYPES: &[&str] =
    &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
/// The texts of the 406 that comes before any resource is looked at.
const AVAILABLE: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Decides by the `Accept` header, clause by clause; 406 if none can be met.
///
/// Responses in protobuf are not offered: every client that asks for it also takes JSON. A client that insists gets 406.
pub fn negotiate(accept: Option<&str>, target: Target) -> Result<Negotiated, ApiError> {
    let Some(header) = accept.map(str::trim).filter(|header| !header.is_empty()) else {
        return Ok(Negotiated::default());
    };
    let clauses = MediaType::parse_accept(header);
    if let Some(found) = clauses.iter().find_map(|clause| meet(clause, target)) {
        return Ok(found);
    }
    let known =
        |clause: &MediaType| clause.essence == "*/*" || MEDIA_TYPES.contains(&clause.essence.as_str());
    if !clauses.iter().any(known) {
        return Err(ApiError::not_acceptable_text(AVAILABLE));
    }
    Err(ApiError::not_acceptable(match target {
        Target::Watch => STREAM_MEDIA_TYPES,
        Target::Object | Target::List => MEDIA_TYPES,
    }))
}

fn meet(clause: &MediaType, target: Target) -> Option<Negotiated> {
    let format = match clause.essence.as_str() {
        "application/json" | "*/*" => Format::Json,
        "application/yaml" if target != Target::Watch => Format::Yaml,
        _ => return None,
    };
    if let Some(stream) = clause.parameter("stream")
        && !stream.is_empty()
        && (stream != "watch" || format == Format::Yaml)
    {
        return None;
    }
    if clause.parameter("sv").is_some_and(|version| !version.is_empty()) {
        return None;
    }
    let representation = representation(clause, target)?;
    Some(Negotiated { format, representation, pretty: clause.parameter("pretty") == Some("1") })
}

fn representation(clause: &MediaType, target: Target) -> Option<Representation> {
    let (kind, group, version) = (clause.parameter("as"), clause.parameter("g"), clause.parameter("v"));
    if kind.is_none() && group.is_none() && version.is_none() {
        return Some(Representation::Object);
    }
    if group != Some("meta.k8s.io") {
        return None;
    }
    let version = match version? {
        "v1" => TableVersion::V1,
        "v1beta1" => TableVersion::V1Beta1,
        _ => return None,
    };
    match (kind?, target) {
        ("Table", _) => Some(Representation::Table(version)),
        ("PartialObjectMetadata", Target::Object | Target::Watch)
        | ("PartialObjectMetadataList", Target::List) => Some(Representation::PartialObjectMetadata(version)),
        _ => None,
    }
}

/// Whether a client without `?pretty` is a person at a terminal or browser.
pub fn pretty_by_user_agent(user_agent: &str) -> bool {
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|start| user_agent.starts_with(start))
}

#[cfg(test)]
mod tests;
