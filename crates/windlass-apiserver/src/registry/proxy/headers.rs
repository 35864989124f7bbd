//! The path and the headers of a request on the way to a pod, and of the reply on the way back.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{StatusCode, Uri};

use crate::auth::subprotocol;

/// Headers about a single connection, which are not forwarded.
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns the protocol that a client wants to go on with.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut words = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let is_asked = words.any(|value| value.to_ascii_lowercase().contains("upgrade"));
    headers.get(UPGRADE).filter(|_| is_asked).cloned()
}

/// Returns whether a reply to a request for an upgrade is neither an upgrade nor an error. Errors are passed back.
pub(crate) fn is_no_upgrade(status: StatusCode) -> bool {
    status != StatusCode::SWITCHING_PROTOCOLS && status.as_u16() < 400
}

/// Returns the words of kube-apiserver for such a reply.
pub(crate) fn invalid_upgrade(status: StatusCode) -> String {
    format!("invalid upgrade response: status code {}", status.as_u16())
}

/// Returns the path and the query for the backend.
pub(super) fn target(subpath: &str, ends_with_slash: bool, query: Option<&str>) -> String {
    let mut target = encode(subpath);
    if !target.starts_with('/') {
        target.insert(0, '/');
    }
    if ends_with_slash && !target.ends_with('/') {
        target.push('/');
    }
    match query {
        Some(query) => format!("{target}?{query}"),
        None => target,
    }
}

/// Escapes a decoded path as Go does.
fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let digit =
                |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0').to_ascii_uppercase();
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// Returns the part of a request's path that the backend does not see.
pub(super) fn prefix(path: &str, subpath: &str) -> String {
    path.strip_suffix(subpath)
        .or_else(|| path.strip_suffix(encode(subpath).as_str()))
        .unwrap_or(path)
        .to_owned()
}

/// Removes the headers about a single connection.
pub(crate) fn clean(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let named: Vec<HeaderName> = named.collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}

/// Returns the headers of a request for the backend: without credentials, and without headers about the
/// client's connection.
pub(crate) fn of_request(received: &HeaderMap, uri: &Uri, upgrade: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = received.clone();
    clean(&mut headers);
    headers.remove(AUTHORIZATION);
    remove_token(&mut headers);
    // The client of the backend writes the length of the body anew, if the length is known.
    headers.remove(CONTENT_LENGTH);
    let impersonation: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("impersonate-")).cloned().collect();
    for name in impersonation {
        headers.remove(name);
    }
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol.clone());
    }
    if !headers.contains_key(HOST) {
        let authority = uri.authority().map_or("localhost", |authority| authority.as_str());
        if let Ok(host) = HeaderValue::try_from(authority) {
            headers.insert(HOST, host);
        }
    }
    headers
}

/// Removes the bearer token from the subprotocols of a WebSocket.
fn remove_token(headers: &mut HeaderMap) {
    let offered = subprotocol::offered(headers).join(", ");
    if headers.remove(SEC_WEBSOCKET_PROTOCOL).is_some()
        && !offered.is_empty()
        && let Ok(offered) = HeaderValue::try_from(offered)
    {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, offered);
    }
}

/// Rewrites the backend's redirect to a path of the backend into a redirect to the path of the proxy. `host`
/// is the backend's.
pub(super) fn rewrite_location(headers: &mut HeaderMap, prefix: &str, host: &str) {
    let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else { return };
    let Ok(uri) = location.parse::<Uri>() else { return };
    let is_elsewhere = uri.host().is_some_and(|other| other != host);
    if is_elsewhere || !uri.path().starts_with('/') || uri.path().starts_with(prefix) {
        return;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(rewritten) = HeaderValue::try_from(format!("{prefix}{}{query}", uri.path())) {
        headers.insert(LOCATION, rewritten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_path_after_the_proxy() {
        assert_eq!(target("/a b/é", false, Some("x=%20")), "/a%20b/%C3%A9?x=%20");
        assert_eq!(target("/", true, None), "/");
        assert_eq!(target("/a", true, None), "/a/");
        assert_eq!(
            prefix("/api/v1/namespaces/n/pods/p/proxy/a%20b", "/a b"),
            "/api/v1/namespaces/n/pods/p/proxy"
        );
    }

    #[test]
    fn credentials_stay_here() {
        let mut received = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("impersonate-user", "jane"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("x-own", "2"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0, v1.own"),
        ] {
            received.append(name, HeaderValue::from_static(value));
        }
        let sent = of_request(&received, &Uri::from_static("https://server:6443/"), None);
        let names: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-own", "sec-websocket-protocol", "host"]);
        assert_eq!(sent["sec-websocket-protocol"], "v1.own");
        assert_eq!(sent["host"], "server:6443");
    }

    #[test]
    fn redirects_stay_behind_the_proxy() {
        for (location, expected) in [
            ("/login?next=1", "/p/proxy/login?next=1"),
            ("http://10.1.0.1/x", "/p/proxy/x"),
            ("http://example.com/x", "http://example.com/x"),
            ("/p/proxy/x", "/p/proxy/x"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_static(location));
            rewrite_location(&mut headers, "/p/proxy", "10.1.0.1");
            assert_eq!(headers[LOCATION], expected);
        }
    }
}
