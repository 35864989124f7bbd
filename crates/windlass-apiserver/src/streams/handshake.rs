//! The change of a connection from HTTP/1.1 to WebSocket or to SPDY/3.1.

use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Response, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::channel::Version;
use crate::auth::subprotocol;
use crate::body::Body;

/// The header with the protocols of SPDY's streams: the offers of a client, and the choice of the server.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// The header with the protocols that the server knows, for a client without a common protocol.
const ACCEPTED_PROTOCOLS: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");
/// The versions of `exec` and `attach` over SPDY.
const REMOTE_VERSIONS: [&str; 4] =
    ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// The only version of `port-forward` over SPDY.
const FORWARD_VERSION: &str = "portforward.k8s.io";
/// SPDY inside of the messages of a WebSocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// The response that refuses a request.
pub(crate) type Refusal = Box<Response<Body>>;

/// The protocol of a connection for `exec` or `attach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remote {
    /// Channels of a WebSocket.
    WebSocket(Version),
    /// Streams of SPDY, in this version.
    Spdy(SpdyVersion),
}

impl Remote {
    /// Returns whether the real server connects to the kubelet after the handshake. The refusals of a kubelet
    /// then go to the error channel.
    pub(crate) fn is_translated(self) -> bool {
        matches!(self, Self::WebSocket(version) if version.is_translated())
    }
}

/// The version of the streams of `exec` and `attach` over SPDY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpdyVersion {
    /// True if there is a stream for the sizes of a terminal.
    pub(super) has_resize: bool,
    /// True if the error stream has a `Status`, not only a text.
    pub(super) has_status: bool,
}

/// The protocol of a connection for `port-forward`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forward {
    /// Two channels of a WebSocket for each port.
    Channels(Version),
    /// SPDY inside of WebSocket messages.
    Tunnel,
    /// SPDY.
    Spdy,
}

/// Returns whether a request asks for SPDY/3.1.
fn is_spdy(headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, word: &str| {
        let mut values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.to_ascii_lowercase().contains(word))
    };
    has(CONNECTION, "upgrade") && has(UPGRADE, "spdy/3.1")
}

/// Chooses the protocol of `exec` or `attach`, and makes the response with the protocol.
///
/// # Errors
/// The response that refuses the request: the client offers no protocol that this server knows.
pub(crate) fn remote(headers: &HeaderMap) -> Result<(Remote, Response<Body>), Refusal> {
    if subprotocol::is_websocket(headers) {
        let (version, response) = websocket(headers, Version::named)?;
        return Ok((Remote::WebSocket(version), response));
    }
    let (name, response) = spdy(headers, &REMOTE_VERSIONS, "channel.k8s.io")?;
    let has_status = name == REMOTE_VERSIONS[0];
    let version = SpdyVersion { has_resize: has_status || name == REMOTE_VERSIONS[1], has_status };
    Ok((Remote::Spdy(version), response))
}

/// Chooses the protocol of `port-forward`, and makes the response with the protocol.
///
/// # Errors
/// As for [`remote`].
pub(crate) fn port_forward(headers: &HeaderMap) -> Result<(Forward, Response<Body>), Refusal> {
    if !subprotocol::is_websocket(headers) {
        let (_, response) = spdy(headers, &[FORWARD_VERSION], FORWARD_VERSION)?;
        return Ok((Forward::Spdy, response));
    }
    websocket(headers, |name| match name {
        TUNNEL => Some(Forward::Tunnel),
        "" | "v4.channel.k8s.io" | "v4.base64.channel.k8s.io" => Version::named(name).map(Forward::Channels),
        _ => None,
    })
}

/// Chooses the first subprotocol that the server knows. A client that offers none gets the protocol with the empty name.
fn websocket<T>(
    headers: &HeaderMap,
    known: impl Fn(&str) -> Option<T>,
) -> Result<(T, Response<Body>), Refusal> {
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or_else(|| Box::new(refuse(StatusCode::BAD_REQUEST, "")))?;
    let offered = subprotocol::offered(headers);
    let names = if offered.is_empty() { vec![""] } else { offered };
    let chosen = names.iter().find_map(|name| known(name).map(|protocol| (*name, protocol)));
    let (name, protocol) = chosen.ok_or_else(|| Box::new(refuse(StatusCode::FORBIDDEN, "")))?;
    let mut response = switching(HeaderValue::from_static("websocket"));
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
    insert(&mut response, SEC_WEBSOCKET_ACCEPT, accept.ok());
    insert(
        &mut response,
        SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::try_from(name).ok().filter(|_| !name.is_empty()),
    );
    Ok((protocol, response))
}

/// Chooses the first protocol that the server knows; `default` if the client offers none.
fn spdy<'a>(
    headers: &HeaderMap,
    known: &[&'a str],
    default: &'a str,
) -> Result<(&'a str, Response<Body>), Refusal> {
    if !is_spdy(headers) {
        let why = "unable to upgrade: missing upgrade headers in request";
        return Err(Box::new(refuse(StatusCode::BAD_REQUEST, why)));
    }
    let values = headers.get_all(STREAM_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> =
        values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect();
    let mut choices = offered.iter().filter_map(|name| known.iter().find(|known| *known == name));
    let chosen = if offered.is_empty() { Some(&default) } else { choices.next() };
    let Some(chosen) = chosen else {
        let mut response = refuse(
            StatusCode::FORBIDDEN,
            &format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
                offered.join(" "),
                known.join(" ")
            ),
        );
        for name in known {
            if let Ok(name) = HeaderValue::try_from(*name) {
                response.headers_mut().append(ACCEPTED_PROTOCOLS, name);
            }
        }
        return Err(Box::new(response));
    };
    let mut response = switching(HeaderValue::from_static("SPDY/3.1"));
    insert(&mut response, STREAM_PROTOCOL, HeaderValue::try_from(*chosen).ok());
    Ok((*chosen, response))
}

fn insert(response: &mut Response<Body>, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        response.headers_mut().insert(name, value);
    }
}

/// Makes the response that changes the protocol.
fn switching(protocol: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(UPGRADE, protocol);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response
}

/// Makes a response with a text, like an error of a kubelet.
pub(crate) fn refuse(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(text.to_owned()));
    *response.status_mut() = status;
    let text_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text_type);
    response
}
