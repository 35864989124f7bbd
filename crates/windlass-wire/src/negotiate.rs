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
    /// The `PartialObjectMetadata` of an object, or of each object of a watch.
    PartialObjectMetadata(TableVersion),
    /// The `PartialObjectMetadataList` of a list.
    PartialObjectMetadataList(TableVersion),
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

/// The kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One object, or the list that a deletion of a collection returns.
    Object,
    /// The result of an action, such as a review, a token or a binding: it has no table.
    Action,
    /// The collection of a built-in kind, which may also be watched.
    List,
    /// A watch, which supports JSON only.
    Watch,
    /// Any response about a custom resource but a watch. Its 406 always lists the same media types.
    Custom,
    /// A watch of a custom resource.
    CustomWatch,
    /// A document of discovery, which has no other representation.
    Document,
}

impl Target {
    fn is_watch(self) -> bool {
        matches!(self, Self::Watch | Self::CustomWatch)
    }
}

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAM_MEDIA_TYPES: &[&str] =
    &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// The error for an `Accept` header that names no media type of the path.
fn nothing_available(target: Target) -> ApiError {
    let mut available = MEDIA_TYPES.to_vec();
    if matches!(target, Target::List | Target::Watch) {
        available.extend(STREAM_MEDIA_TYPES);
    }
    let available = available.join(", ");
    ApiError::not_acceptable_text(format!("406: Not Acceptable\n\nAvailable representations: {available}"))
}

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
    let is_custom = matches!(target, Target::Custom | Target::CustomWatch);
    if !is_custom && !clauses.iter().any(known) {
        return Err(nothing_available(target));
    }
    // A format that a list has is refused by the watch itself, anything else before.
    let is_for_list = |clause: &MediaType| meet(clause, Target::Object).is_some();
    let is_refused_by_watch = target.is_watch() && clauses.iter().any(is_for_list);
    Err(ApiError::not_acceptable(if is_refused_by_watch { STREAM_MEDIA_TYPES } else { MEDIA_TYPES }))
}

fn meet(clause: &MediaType, target: Target) -> Option<Negotiated> {
    let format = match clause.essence.as_str() {
        "application/json" | "*/*" => Format::Json,
        "application/yaml" if !target.is_watch() => Format::Yaml,
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
    let representation = representation(clause)?;
    let is_offered = match target {
        Target::Document => representation == Representation::Object,
        Target::Action => !matches!(representation, Representation::Table(_)),
        _ => true,
    };
    if !is_offered {
        return None;
    }
    Some(Negotiated { format, representation, pretty: clause.parameter("pretty") == Some("1") })
}

fn representation(clause: &MediaType) -> Option<Representation> {
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
    match kind? {
        "Table" => Some(Representation::Table(version)),
        "PartialObjectMetadata" => Some(Representation::PartialObjectMetadata(version)),
        "PartialObjectMetadataList" => Some(Representation::PartialObjectMetadataList(version)),
        _ => None,
    }
}

/// Whether JSON is indented for a client that does not set `?pretty`: for curl, wget and browsers.
pub fn pretty_by_user_agent(user_agent: &str) -> bool {
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|start| user_agent.starts_with(start))
}

#[cfg(test)]
mod tests;
