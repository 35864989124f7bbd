//! Discovery: groups, versions and resources in both forms; the version and health of the server.

mod aggregated;
mod health;
mod legacy;
mod message;
mod version;

use std::net::SocketAddr;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use windlass_schema::Catalog;

pub(crate) use self::health::Health;
pub use self::health::HealthCheck;
pub(crate) use self::version::version_labels;
use crate::aggregate::Merged;
use crate::body::Body;
use crate::respond::{indent, line, protobuf, wants_pretty};
use crate::wire::{ApiError, Chosen, Format, Offer, Target, negotiate, to_yaml};

/// The media types of aggregated discovery. The version `v2beta1` is gone.
const AGGREGATED: Offer = Offer {
    media_types: &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
    streamed: &["application/json", "application/vnd.kubernetes.protobuf"],
    allows: |_, kind| {
        kind.is_some_and(|kind| {
            kind.kind == "APIGroupDiscoveryList"
                && kind.group == "apidiscovery.k8s.io"
                && kind.version == "v2"
        })
    },
};

/// Answers a GET of a document; `None` if the path names no document. `address` is the address of a listening
/// server.
pub(crate) fn respond(
    groups: &Merged<'_>,
    catalog: &Catalog,
    address: Option<SocketAddr>,
    health: &Health,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, ApiError>> {
    if path.starts_with("//") {
        return None;
    }
    let table = groups.served;
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    if matches!(path, "/api" | "/api/" | "/apis")
        && let Some(chosen) = text(headers, &ACCEPT).and_then(|accept| AGGREGATED.choose(accept))
    {
        return Some(aggregated(groups, headers, query, &chosen, segments == ["api"]));
    }
    Some(match segments[..] {
        ["index.html"] if path.ends_with('/') => return None,
        ["" | "index.html"] => raw(&json!({ "paths": legacy::paths(groups, health) })),
        ["version"] => raw(&version::version(catalog)),
        ["healthz" | "livez" | "readyz", ..] if path.ends_with('/') => return None,
        ["healthz" | "livez" | "readyz", ..] => return health::respond(&segments, health, query).map(Ok),
        ["apis"] if path.ends_with("//") => return None,
        ["api"] => document(headers, query, &legacy::versions(address)),
        ["apis"] => document(headers, query, &legacy::group_list(groups)),
        ["api", version] => document(headers, query, &legacy::resource_list("", table.version("", version)?)),
        ["apis", group] if !group.is_empty() => document(headers, query, &legacy::group(groups, group)?),
        ["apis", group, version] if !group.is_empty() => {
            document(headers, query, &legacy::resource_list(group, table.version(group, version)?))
        }
        _ => return None,
    })
}

/// Replies with indented JSON, regardless of the `Accept` header.
fn raw(document: &impl Serialize) -> Result<Response<Body>, ApiError> {
    let body = serde_json::to_vec_pretty(document).map_err(ApiError::internal)?;
    let mut response = Response::new(Body::full(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn document(
    headers: &HeaderMap,
    query: Option<&str>,
    document: &impl Serialize,
) -> Result<Response<Body>, ApiError> {
    let negotiated = negotiate(text(headers, &ACCEPT), Target::Document)?;
    let pretty = negotiated.pretty || wants_pretty(headers, query);
    let body = match negotiated.format {
        Format::Json if pretty => serde_json::to_vec_pretty(document).map_err(ApiError::internal)?,
        Format::Json => line(&serde_json::to_vec(document).map_err(ApiError::internal)?),
        Format::Yaml => to_yaml(&serde_json::to_value(document).map_err(ApiError::internal)?)?.into_bytes(),
        Format::Protobuf => protobuf(&serde_json::to_vec(document).map_err(ApiError::internal)?)?,
    };
    let mut response = Response::new(Body::full(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(negotiated.format.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Ok(response)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Replies with aggregated discovery in the chosen media type. The entity tag is the same in all media types.
fn aggregated(
    groups: &Merged<'_>,
    headers: &HeaderMap,
    query: Option<&str>,
    chosen: &Chosen,
    core: bool,
) -> Result<Response<Body>, ApiError> {
    let json = serde_json::to_vec(&aggregated::list(groups, core)).map_err(ApiError::internal)?;
    let etag = etag(&json);
    let mut response = if text(headers, &IF_NONE_MATCH) == Some(&etag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        chosen_response(&json, chosen, chosen.pretty || wants_pretty(headers, query))?
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(ETAG, HeaderValue::try_from(etag).map_err(ApiError::internal)?);
    Ok(response)
}

/// Writes JSON in the chosen media type.
fn chosen_response(json: &[u8], chosen: &Chosen, pretty: bool) -> Result<Response<Body>, ApiError> {
    let value = || serde_json::from_slice::<Value>(json).map_err(ApiError::internal);
    let body = match chosen.media_type {
        "application/yaml" => to_yaml(&value()?)?.into_bytes(),
        "application/vnd.kubernetes.protobuf" => message::encode(&value()?),
        _ if pretty => indent(json),
        _ => line(json),
    };
    let mut response = Response::new(Body::full(body));
    if let Some(kind) = &chosen.kind {
        let content_type = kind.content_type(chosen.media_type);
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::try_from(content_type).map_err(ApiError::internal)?);
    }
    Ok(response)
}

/// Returns a document's hash, quoted as an entity tag.
fn etag(body: &[u8]) -> String {
    use std::fmt::Write;
    let mut tag = String::from("\"");
    for byte in Sha512::digest(body) {
        let _ = write!(tag, "{byte:02X}");
    }
    tag.push('"');
    tag
}
