//! The subprotocols that the client of a WebSocket offers. A subprotocol may carry the bearer token, because
//! a browser cannot set the header `Authorization`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONNECTION, HeaderMap, HeaderName, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

const BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// The bearer token among the subprotocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SubprotocolToken {
    None,
    /// There are several tokens, the token is not text in base64url, or there is no other subprotocol to
    /// answer with.
    Malformed,
    Given(String),
}

/// Returns whether a request asks to go on over WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let has = |name, word| words(headers, name).any(|part| part.eq_ignore_ascii_case(word));
    has(&UPGRADE, "websocket") && has(&CONNECTION, "upgrade")
}

/// Returns the subprotocols that a client offers, without the token.
pub(crate) fn offered(headers: &HeaderMap) -> Vec<&str> {
    words(headers, &SEC_WEBSOCKET_PROTOCOL).filter(|word| !word.starts_with(BEARER)).collect()
}

/// Returns the token in the subprotocols of a request for a WebSocket.
pub(crate) fn token(headers: &HeaderMap) -> SubprotocolToken {
    if !is_websocket(headers) {
        return SubprotocolToken::None;
    }
    let mut tokens = words(headers, &SEC_WEBSOCKET_PROTOCOL).filter_map(|word| word.strip_prefix(BEARER));
    let Some(encoded) = tokens.next() else { return SubprotocolToken::None };
    let decoded = URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded {
        Some(token) if token.is_empty() && tokens.next().is_none() => SubprotocolToken::None,
        Some(token) if tokens.next().is_none() && !offered(headers).is_empty() => {
            SubprotocolToken::Given(token)
        }
        _ => SubprotocolToken::Malformed,
    }
}

/// Returns the words of a header with a comma-separated list.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asking(protocols: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        headers
    }

    #[test]
    fn a_token_comes_with_another_subprotocol() {
        let both = asking("base64url.bearer.authorization.k8s.io.czNjcmV0, base64.binary.k8s.io");
        assert_eq!(token(&both), SubprotocolToken::Given("s3cret".to_owned()));
        assert_eq!(offered(&both), ["base64.binary.k8s.io"]);
        assert_eq!(
            token(&asking("base64url.bearer.authorization.k8s.io.czNjcmV0")),
            SubprotocolToken::Malformed
        );
        assert_eq!(token(&asking("binary.k8s.io")), SubprotocolToken::None);
    }

    #[test]
    fn what_is_no_token_is_malformed() {
        for protocols in [
            "base64url.bearer.authorization.k8s.io.!, a",
            "base64url.bearer.authorization.k8s.io.czNjcmV0==, a",
            "base64url.bearer.authorization.k8s.io._w, a",
            "base64url.bearer.authorization.k8s.io.czNjcmV0, base64url.bearer.authorization.k8s.io.czNjcmV0, a",
        ] {
            assert_eq!(token(&asking(protocols)), SubprotocolToken::Malformed, "{protocols}");
        }
        let mut plain = asking("base64url.bearer.authorization.k8s.io.czNjcmV0, a");
        plain.remove(UPGRADE);
        assert_eq!(token(&plain), SubprotocolToken::None);
    }
}
