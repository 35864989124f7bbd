//! Content negotiation: the media type of a response, and whether it is the object, a `Table` or only metadata.

use super::{ApiError, MediaType};

/// The format of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
}

impl Format {
    /// Returns the `Content-Type` of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// The representation of an object in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// The object or list itself.
    #[default]
    Object,
    /// A `Table`, in `meta.k8s.io/v1` or `v1beta1`.
    Table(TableVersion),
    /// The `PartialObjectMetadata` of the object, or of each object of a list.
    PartialObjectMetadata(TableVersion),
}

/// The version of `meta.k8s.io` of a `Table` or `PartialObjectMetadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableVersion {
    /// `meta.k8s.io/v1`.
    V1,
    /// `meta.k8s.io/v1beta1`.
    V1Beta1,
}

impl TableVersion {
    /// Returns the `apiVersion`.
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

/// The kind of response: one object, a list, or a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One object.
    Object,
    /// A list.
    List,
    /// A watch, which supports JSON only.
    Watch,
}

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAM_MEDIA_TYPES: &[&str] =
    &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
/// The media types that a 406 lists.
const AVAILABLE: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Chooses the representation by the `Accept` header. 406 if it names none that is supported.
///
/// Responses in protobuf are not supported: clients that prefer it also accept JSON.
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

/// Whether JSON is indented for a client that does not set `?pretty`: for curl, wget and browsers.
pub fn pretty_by_user_agent(user_agent: &str) -> bool {
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|start| user_agent.starts_with(start))
}

#[cfg(test)]
mod tests;
