//! Content negotiation: the media type and the representation (object, `Table` or only metadata) of a
//! response.

use super::{ApiError, MediaType};

/// The format of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Format {
    /// All formats, the preferred format of the server first.
    const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// Returns the `Content-Type` of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// Returns the `Content-Type` of a watch in this format.
    pub fn watch_content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            other => other.content_type(),
        }
    }
}

/// The representation of an object in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// The full object or list.
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
    /// True if to indent JSON for people.
    pub pretty: bool,
    /// Whether objects are sent without `metadata.managedFields`.
    pub drops_managed_fields: bool,
}

/// The kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A single object, or the list that a deletion of a collection returns.
    Object,
    /// A response without a table: the result of an action, such as a review, a token or a binding, and some
    /// parts of objects.
    Action,
    /// The collection of a built-in kind. A request may also watch the collection.
    List,
    /// A watch: JSON or protobuf.
    Watch,
    /// Any response about a custom resource: only the metadata has an encoding in protobuf.
    Custom,
    /// A document of discovery, without other representations.
    Document,
}

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAM_MEDIA_TYPES: &[&str] =
    &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// Checks that the route of a built-in resource produces a media type that the `Accept` header names, as kube-apiserver's
/// router does before a handler negotiates.
///
/// # Errors
/// 406 with the media types of the route: `more`, then the media types of `target`.
pub fn expect_produced(accept: Option<&str>, target: Target, more: &[&str]) -> Result<(), ApiError> {
    let mut produced = [more, MEDIA_TYPES].concat();
    if matches!(target, Target::List | Target::Watch) {
        produced.extend(STREAM_MEDIA_TYPES);
    }
    expect_one_of(accept, &produced)
}

/// Checks that the `Accept` header names a media type that a route produces.
///
/// # Errors
/// 406 with these media types.
pub fn expect_one_of(accept: Option<&str>, produced: &[&str]) -> Result<(), ApiError> {
    let Some(header) = accept.filter(|header| !header.trim().is_empty()) else { return Ok(()) };
    let mut essences =
        header.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim_matches(' '));
    if essences.any(|essence| essence == "*/*" || produced.contains(&essence)) {
        return Ok(());
    }
    let produced = produced.join(", ");
    Err(ApiError::not_acceptable_text(format!(
        "406: Not Acceptable\n\nAvailable representations: {produced}"
    )))
}

/// Chooses the representation by the `Accept` header. Returns 406 if the header names no supported media
/// type.
pub fn negotiate(accept: Option<&str>, target: Target) -> Result<Negotiated, ApiError> {
    let Some(header) = accept.filter(|header| !header.trim().is_empty()) else {
        return Ok(Negotiated::default());
    };
    let clauses = MediaType::parse_accept(header);
    let Some(found) = clauses.iter().find_map(|clause| meet(clause, target)) else {
        return Err(ApiError::not_acceptable(MEDIA_TYPES));
    };
    Ok(found)
}

/// Checks that the preferred media type can be streamed, even if the client accepts other media types.
///
/// # Errors
/// 406 for YAML.
pub fn expect_stream(found: Negotiated) -> Result<(), ApiError> {
    match found.format {
        Format::Json | Format::Protobuf => Ok(()),
        Format::Yaml => Err(ApiError::not_acceptable(STREAM_MEDIA_TYPES)),
    }
}

fn meet(clause: &MediaType, target: Target) -> Option<Negotiated> {
    let mut formats = Format::ALL.into_iter().filter(|format| clause.includes(format.content_type()));
    formats.find_map(|format| meet_in(format, clause, target))
}

fn meet_in(format: Format, clause: &MediaType, target: Target) -> Option<Negotiated> {
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
    let is_table = matches!(representation, Representation::Table(_));
    let is_object = representation == Representation::Object;
    let is_offered = match (target, format) {
        (_, Format::Protobuf) if is_table => false,
        (Target::Document, _) => is_object,
        (Target::Action, _) => !is_table,
        (Target::Custom, Format::Protobuf) => !is_object,
        _ => true,
    };
    if !is_offered {
        return None;
    }
    let pretty = clause.parameter("pretty") == Some("1");
    Some(Negotiated { format, representation, pretty, drops_managed_fields: drops_managed_fields(clause)? })
}

/// Reads the parameter `drop` (KEP-5958): the fields that the client does without, separated by `+`. Other fields than
/// `metadata.managedFields` are ignored. Returns `None` if a field is named twice.
fn drops_managed_fields(clause: &MediaType) -> Option<bool> {
    let fields: Vec<&str> = clause.parameter("drop").unwrap_or_default().split('+').collect();
    let is_repeated = |(index, field): (usize, &&str)| fields[..index].contains(field);
    let has_repetition = fields.iter().enumerate().any(is_repeated);
    (!has_repetition).then(|| fields.contains(&"metadata.managedFields"))
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

/// Returns whether JSON is indented for a client that does not set `?pretty`: for curl, wget and browsers.
pub fn pretty_by_user_agent(user_agent: &str) -> bool {
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|start| user_agent.starts_with(start))
}

#[cfg(test)]
mod tests;
