//! Requests that Go's server refuses before a handler sees the requests.

use http::header::{CONNECTION, CONTENT_TYPE, EXPECT, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};

use crate::body::Body;
use crate::respond::page_not_found;

/// Returns the response to a malformed request, and to a request for the server as a whole.
pub(super) fn refusal(request: &Request<impl Sized>) -> Option<Response<Body>> {
    let path = request.uri().path();
    let is_http1 = request.version() < Version::HTTP_2;
    let needs_host = request.version() == Version::HTTP_11 && request.method() != Method::CONNECT;
    if is_http1 && let Some(why) = wrong_host(request.headers(), needs_host) {
        return Some(bad_request(why));
    }
    if request.method() == Method::CONNECT {
        return Some(page_not_found());
    }
    if path.is_empty() || !is_escaped_well(path) {
        return Some(bad_request(""));
    }
    let expectation = request.headers().get(EXPECT).filter(|_| is_http1);
    if expectation.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Some(closing(StatusCode::EXPECTATION_FAILED, Body::empty()));
    }
    (path == "*" && request.method() == Method::OPTIONS).then(|| Response::new(Body::empty()))
}

/// Returns why the header `Host` of a request is refused.
fn wrong_host(headers: &HeaderMap, is_needed: bool) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => is_needed.then_some(": missing required Host header"),
        (Some(_), Some(_)) => Some(""),
        (Some(host), None) => (!is_host(host)).then_some(": malformed Host header"),
    }
}

/// Returns whether a header has only bytes that occur in names, addresses and ports, and the other bytes that Go accepts.
fn is_host(host: &HeaderValue) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(byte);
    host.as_bytes().iter().all(is_allowed)
}

/// Returns whether two hexadecimal digits follow each percent sign.
fn is_escaped_well(path: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    path.split('%').skip(1).map(str::as_bytes).all(|rest| is_hex(rest.first()) && is_hex(rest.get(1)))
}

fn bad_request(why: &str) -> Response<Body> {
    let mut response = closing(StatusCode::BAD_REQUEST, Body::full(format!("400 Bad Request{why}")));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Returns a response after which an HTTP/1.1 connection ends.
fn closing(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(request: http::request::Builder) -> Option<u16> {
        refusal(&request.body(()).unwrap()).map(|response| response.status().as_u16())
    }

    #[test]
    fn a_request_of_http1_has_one_host() {
        assert_eq!(code(Request::get("/api").header("host", "a:1")), None);
        assert_eq!(code(Request::get("/api").header("host", "")), None);
        assert_eq!(code(Request::get("/api").header("host", "[::1]:6443")), None);
        assert_eq!(code(Request::get("/api")), Some(400));
        assert_eq!(code(Request::get("/api").header("host", "a b")), Some(400));
        assert_eq!(code(Request::get("/api").header("host", "a").header("host", "b")), Some(400));
        assert_eq!(code(Request::get("/api").header("host", "user@a")), Some(400));
        assert_eq!(code(Request::get("/api").version(Version::HTTP_10)), None);
        assert_eq!(code(Request::get("/api").version(Version::HTTP_10).header("host", "a b")), Some(400));
        assert_eq!(code(Request::get("https://a/api").version(Version::HTTP_2)), None);
    }

    #[test]
    fn the_target_of_a_request_is_a_path() {
        let get = |target: &str| code(Request::get(target).header("host", "a"));
        assert_eq!(get("/a%2Fb?c=%zz"), None);
        assert_eq!(get("/a%zz"), Some(400));
        assert_eq!(get("/a%2"), Some(400));
        assert_eq!(get("api"), Some(400));
        assert_eq!(get("*"), None);
        assert_eq!(code(Request::options("*").header("host", "a")), Some(200));
        assert_eq!(code(Request::connect("a:1")), Some(404));
    }

    #[test]
    fn only_one_expectation_is_met() {
        let expect = |value: &str| code(Request::post("/api").header("host", "a").header("expect", value));
        assert_eq!(expect("100-Continue"), None);
        assert_eq!(expect("x"), Some(417));
    }
}
