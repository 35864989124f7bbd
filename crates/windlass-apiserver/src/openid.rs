//! OpenID discovery: the documents for verifiers of service account tokens.

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Response};
use serde_json::Value;

use crate::auth::{ISSUER, Issuer};
use crate::body::Body;
use crate::respond;
use crate::wire::ApiError;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

/// Answers a request for a document; `None` if the path names no document.
pub(crate) fn respond(
    issuer: &Issuer,
    path: &str,
    request: &http::Request<impl Sized>,
) -> Option<Response<Body>> {
    let (document, media_type) = match path.trim_end_matches('/') {
        CONFIGURATION => (issuer.openid_configuration(&host(request)), "application/json"),
        KEYS => (issuer.key_set(), "application/jwk-set+json"),
        _ => return None,
    };
    if !accepts(request.headers(), media_type) {
        let why = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
        let error = ApiError::not_acceptable_text(why);
        return Some(respond::error(&error, request.headers(), request.uri().query()));
    }
    Some(response(&document, media_type))
}

/// Returns whether a client accepts documents of this type. Without a header, or with an empty header, a client
/// accepts all types.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut accept = texts.filter(|value| !value.is_empty()).peekable();
    let is_fitting = |range: &str| {
        let range = range.split(';').next().unwrap_or_default().trim();
        range == "*/*" || range == media_type
    };
    accept.peek().is_none() || accept.any(|value| value.split(',').any(is_fitting))
}

/// Returns the client's address of this server.
fn host(request: &http::Request<impl Sized>) -> String {
    let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    let in_cluster = ISSUER.trim_start_matches("https://");
    header.or(authority).unwrap_or(in_cluster).to_owned()
}

fn response(document: &Value, media_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(document.to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}
