//! The Kubernetes API on the wire: error statuses, request bodies, content negotiation, selectors and
//! continue tokens. All functions take bytes and values, and know no stored objects.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod body;
mod client_config;
pub mod continue_token;
mod gzip;
mod media_type;
mod negotiate;
mod offer;
pub mod patch;
mod warning;
mod yaml;

mod json;
pub mod selector;

pub mod names;
mod status;

mod group;

pub use body::{
    Decoded, Encoding, OBJECT_MEDIA_TYPES, body_summary, decode_body, decode_options, not_an_object,
    unknown_field,
};
pub use client_config::validate_client_config;
pub use group::GroupResource;
pub use gzip::{GZIP_FROM, accepts_gzip, gzip_pieces, maybe_gzip};
pub use media_type::MediaType;
pub use negotiate::{
    Format, Negotiated, Representation, TableVersion, Target, expect_one_of, expect_produced, expect_stream,
    negotiate, pretty_by_user_agent,
};
pub use offer::{Chosen, Offer, WantedKind};
pub use selector::{FieldOperator, FieldRequirement, FieldSelector, LabelSelector};
pub use status::{ApiError, Cause, Denied, Details, Status};
pub use warning::{fills_a_reply, is_printable, warning_headers};
pub use windlass_schema::{Quantity, QuantityError};

/// Writes a value as YAML.
pub fn to_yaml(value: &serde_json::Value) -> Result<String, ApiError> {
    yaml::write(value).map_err(ApiError::internal)
}

/// Parses a YAML or JSON document. Returns 400 for a malformed document.
pub fn from_yaml(bytes: &[u8]) -> Result<serde_json::Value, ApiError> {
    yaml::parse(bytes).map(|parsed| parsed.value).map_err(ApiError::bad_request)
}

/// Parses a YAML or JSON document. Returns the value and the errors about duplicate fields.
///
/// # Errors
/// The error of the decoder if the document is malformed or nests deeper than 400 levels.
pub fn from_yaml_with_duplicates(bytes: &[u8]) -> Result<(serde_json::Value, Vec<String>), String> {
    yaml::parse(bytes).map(|parsed| (parsed.value, parsed.duplicates))
}

/// Parses a JSON document. Returns the value and the paths of duplicate fields.
///
/// # Errors
/// The error of Go's decoder if the document is malformed or nests deeper than 400 levels.
pub fn from_json_with_duplicates(bytes: &[u8]) -> Result<(serde_json::Value, Vec<String>), String> {
    json::parse(bytes).map(|parsed| (parsed.value, parsed.duplicates))
}
