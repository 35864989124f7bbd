//! OpenAPI: in v3 an index of group versions and a document for each group version, in v2 a document of all;
//! generated on request.

mod description;
mod documents;
mod hashes;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::json;

use self::documents::Document;
pub(crate) use self::documents::Documents;
use self::hashes::{Hashes, name_of};
use crate::aggregate::Merged;
use crate::body::Body;
use crate::content;
use crate::resource::ServedResources;
use crate::state::State;
use crate::wire::{self, ApiError, MediaType};

const ROOT: &str = "/openapi/v3";
const JSON: &str = "application/json";

/// Answers a GET of `/openapi/v2` or below `/openapi/v3`; `None` for other paths.
///
/// # Errors
/// A document could not be made.
pub(crate) async fn respond(
    state: &Arc<State>,
    served: &Arc<ServedResources>,
    groups: &Merged<'_>,
    documents: &Documents,
    path: &str,
    (method, query, headers): (&Method, Option<&str>, &HeaderMap),
) -> Result<Option<Response<Body>>, ApiError> {
    if !path.starts_with("/openapi/v") {
        return Ok(None);
    }
    let hashes = documents.hashes(served, || Hashes::of(&state.catalog, served));
    let asked = Asked { state, served, documents, hashes, headers };
    let serve = |response: Response<Body>| {
        let is_document = response.status() == StatusCode::OK;
        Some(if is_document { content::serve(method, headers, response) } else { response })
    };
    if path == "/openapi/v2" {
        return asked.version_two(groups).await.map(serve);
    }
    match path.strip_prefix(ROOT) {
        Some("") => Ok(serve(index(&asked.hashes, groups))),
        Some("/") => Ok(Some(empty(StatusCode::NOT_FOUND))),
        Some(name) => match name.strip_prefix('/') {
            Some(name) => asked.version_three(name, query).await.map(serve),
            None => Ok(None),
        },
        None => Ok(None),
    }
}

/// A request for a document.
struct Asked<'a> {
    state: &'a Arc<State>,
    served: &'a Arc<ServedResources>,
    documents: &'a Documents,
    hashes: Arc<Hashes>,
    headers: &'a HeaderMap,
}

impl Asked<'_> {
    /// Answers a GET of `/openapi/v2`: a document of all group versions, also of extension servers.
    async fn version_two(&self, groups: &Merged<'_>) -> Result<Response<Body>, ApiError> {
        const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        let accept = header_text(self.headers, header::ACCEPT);
        let in_protobuf = accept.is_some_and(|accept| accept.contains("proto-openapi.spec.v2"));
        if !in_protobuf && !accepts_json(self.headers) {
            return Ok(varying(empty(StatusCode::NOT_ACCEPTABLE)));
        }
        let (hash, content_type) = if in_protobuf {
            (&self.hashes.of_version_two_in_protobuf, PROTOBUF)
        } else {
            (&self.hashes.of_version_two, JSON)
        };
        let (state, served, hashes) =
            (Arc::clone(self.state), Arc::clone(self.served), Arc::clone(&self.hashes));
        let descriptions: Vec<_> = groups.descriptions().map(Arc::clone).collect();
        let hash = descriptions
            .iter()
            .fold(hash.clone(), |hash, description| hashes::hash(&format!("{hash} {}", description.hash)));
        let write = move || {
            let extensions = descriptions.iter().filter_map(|known| known.document());
            let names = hashes.of_version_three.keys();
            description::version_two(&state, &served, names, extensions, in_protobuf)
        };
        self.reply(&hash, content_type, write).await
    }

    async fn version_three(&self, name: &str, query: Option<&str>) -> Result<Response<Body>, ApiError> {
        let Some(hash) = self.hashes.of_version_three.get(name) else {
            return Ok(empty(StatusCode::NOT_FOUND));
        };
        if !accepts_json(self.headers) {
            return Ok(varying(empty(StatusCode::NOT_ACCEPTABLE)));
        }
        let asked = crate::route::Query::parse(query).get("hash").map(str::to_owned);
        if asked.as_ref().is_some_and(|asked| asked != hash) {
            let mut response = with_type(redirect(&format!("{ROOT}/{name}?hash={hash}")), JSON);
            insert_tag(&mut response, hash);
            return Ok(response);
        }
        let (state, served, name) = (Arc::clone(self.state), Arc::clone(self.served), name.to_owned());
        let write = move || description::version_three(&state, &served, &name);
        let mut response = self.reply(hash, JSON, write).await?;
        if asked.is_some() {
            let immutable = HeaderValue::from_static("public, immutable");
            response.headers_mut().insert(header::CACHE_CONTROL, immutable);
        }
        Ok(response)
    }

    /// Returns a reply with a document. A large document is compressed if the client accepts compression, unless the client asks for
    /// a range.
    async fn reply(
        &self,
        hash: &str,
        content_type: &'static str,
        write: impl FnOnce() -> Document + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let apart = &self.state.apart;
        // The rest of a document that began compressed is not asked for in plain text.
        let has_range =
            self.headers.contains_key(header::RANGE) && !self.headers.contains_key(header::IF_RANGE);
        let accepts_gzip = wire::accepts_gzip(header_text(self.headers, header::ACCEPT_ENCODING));
        let tag = format!("\"{hash}\"");
        let is_known = header_text(self.headers, header::IF_NONE_MATCH)
            .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
        // A client that has the document does not wait until the document is made again.
        let mut response = if is_known {
            Response::new(Body::empty())
        } else if accepts_gzip && !has_range {
            let (is_compressed, document) = self.documents.get_compressed(apart, hash, write).await?;
            let mut response = Response::new(Body::shared(document));
            if is_compressed {
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            response
        } else {
            Response::new(Body::shared(self.documents.get(apart, hash, write).await?))
        };
        insert_tag(&mut response, hash);
        Ok(with_type(response, content_type))
    }
}

/// Returns whether the client takes a document in JSON.
fn accepts_json(headers: &HeaderMap) -> bool {
    header_text(headers, header::ACCEPT)
        .filter(|accept| !accept.is_empty())
        .is_none_or(|accept| MediaType::parse_accept(accept).iter().any(|clause| clause.includes(JSON)))
}

/// Returns a reply without a body.
fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn with_type(mut response: Response<Body>, content_type: &'static str) -> Response<Body> {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    varying(response)
}

/// Marks a response that depends on the `Accept` header.
fn varying(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Writes the index. The real server sets no type for the index, and Go treats the index as text.
fn index(hashes: &Hashes, groups: &Merged<'_>) -> Response<Body> {
    let mut remotes = groups.remote_versions().peekable();
    let index = if remotes.peek().is_none() {
        hashes.index.clone()
    } else {
        let mut paths = hashes.paths.clone();
        for (group, version) in remotes {
            // The extension server tells clients by the entity tag that a document has changed.
            let name = name_of(group, version);
            let url = format!("{ROOT}/{name}");
            paths.insert(name, json!({"serverRelativeURL": url}));
        }
        hashes::index(&paths)
    };
    let mut response = Response::new(Body::full(index));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn insert_tag(response: &mut Response<Body>, hash: &str) {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{hash}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
}

/// Redirects a request with an outdated hash.
fn redirect(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

#[cfg(test)]
mod tests;
