//! Discovery: groups, versions and resources in both forms; the version and health of the server.

mod aggregated;
mod health;
mod legacy;
mod version;

use std::net::SocketAddr;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha512};
use windlass_schema::Catalog;

pub use self::health::HealthCheck;
pub(crate) use self::version::version_labels;
use crate::aggregate::Merged;
use crate::body::Body;
use crate::respond::{line, protobuf, wants_pretty};
use crate::wire::{ApiError, Format, MediaType, Target, negotiate};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a GET of a document; `None` if the path names no document. `address` is the address of a listening
/// server.
pub(crate) fn respond(
    groups: &Merged<'_>,
    catalog: &Catalog,
    address: Option<&SocketAddr>,
    checks: &[Box<dyn HealthCheck>],
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, ApiError>> {
    if path.starts_with("//") {
        return None;
    }
    let table = groups.served;
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match segments[..] {
        ["index.html"] if path.ends_with('/') => return None,
        ["" | "index.html"] => raw(&json!({ "paths": legacy::paths(groups) })),
        ["version"] => raw(&version::version(catalog)),
        ["healthz" | "livez" | "readyz", ..] if path.ends_with('/') => return None,
        ["healthz" | "livez" | "readyz", ..] => return health::respond(&segments, checks, query).map(Ok),
        ["apis"] if path.ends_with("//") => return None,
        ["api"] if wants_aggregated(headers) => Ok(aggregated(groups, headers, true)),
        ["apis"] if wants_aggregated(headers) => Ok(aggregated(groups, headers, false)),
        ["api"] => document(headers, query, &legacy::versions(address)),
        ["apis"] => document(headers, query, &legacy::group_list(groups)),
        ["api", version] => document(headers, query, &legacy::resource_list("", table.version("", version)?)),
        ["apis", group] if !group.is_empty() => document(headers, query, &legacy::group(groups, group)?),
        ["apis", group, version] => {
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
        Format::Yaml => serde_saphyr::to_string(document).map_err(ApiError::internal)?.into_bytes(),
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

/// Returns whether the client prefers the aggregated form, in the version that is served.
fn wants_aggregated(headers: &HeaderMap) -> bool {
    let clauses = text(headers, &ACCEPT).map(MediaType::parse_accept).unwrap_or_default();
    let is_aggregated = |clause: &MediaType| {
        clause.parameter("as") == Some("APIGroupDiscoveryList")
            && clause.parameter("g") == Some("apidiscovery.k8s.io")
            && clause.parameter("v") == Some("v2")
    };
    let served = clauses.iter().find(|clause| {
        matches!(clause.essence.as_str(), "application/json" | "*/*" | "application/*")
            && (clause.parameter("as").is_none() || is_aggregated(clause))
    });
    served.is_some_and(is_aggregated)
}

fn aggregated(groups: &Merged<'_>, headers: &HeaderMap, core: bool) -> Response<Body> {
    let body = line(&serde_json::to_vec(&aggregated::list(groups, core)).unwrap_or_default());
    let etag = etag(&body);
    let known =
        text(headers, &IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == etag));
    let mut response = if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        Response::new(Body::full(body))
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(ETAG, etag);
    }
    response
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
