//! Continue tokens: the position at which the next page of a list begins.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use serde::Serialize;
use serde_json::Value;

use super::{ApiError, json};

/// Ignores trailing bits, like Go.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

const VERSION: &str = "meta.k8s.io/v1";

#[derive(Serialize)]
struct Token<'a> {
    v: &'static str,
    rv: i64,
    start: &'a str,
    /// The number of remaining objects; not in the tokens of kube-apiserver, which counts again.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    /// The time of the first page, in seconds since 1970; not in the tokens of kube-apiserver, because etcd
    /// forgets old states.
    #[serde(skip_serializing_if = "Option::is_none")]
    began: Option<i64>,
}

/// The position at which the next page of a list begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The resource version of the list; -1 for the current resource version, after the list's resource
    /// version has expired.
    pub revision: i64,
    /// The first key of the next page, with the prefix given to [`decode`].
    pub start_key: String,
    /// The number of remaining objects, if the token has the number.
    pub remaining: Option<u64>,
    /// The time of the first page, in seconds since 1970, if the token has the time.
    pub began: Option<i64>,
}

/// Creates the token of a position. The `start_key` in the token is without the prefix, for example
/// `ns/name\0`.
pub fn encode(position: &Position) -> String {
    let Position { revision, ref start_key, remaining, began } = *position;
    let token = Token { v: VERSION, rv: revision, start: start_key, remaining, began };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

/// Decodes a token. Returns 400 for a malformed token.
pub fn decode(token: &str, prefix: &str) -> Result<Position, ApiError> {
    read(token, prefix).map_err(|why| ApiError::bad_request(format!("invalid continue token: {why}")))
}

fn read(token: &str, prefix: &str) -> Result<Position, String> {
    let invalid = |why: String| format!("continue key is not valid: {why}");
    let bytes = LENIENT
        .decode(token)
        .map_err(|_| invalid(format!("illegal base64 data at input byte {}", illegal_byte(token))))?;
    let token = json::parse(&bytes).map_err(invalid)?.value;
    let text = |name: &str| token.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("v") != VERSION {
        return Err(invalid(format!("server does not recognize this encoded version {}", text("v"))));
    }
    let revision = token.get("rv").and_then(Value::as_i64).unwrap_or_default();
    if revision == 0 {
        return Err(invalid(format!("incorrect encoded start resourceVersion (version {VERSION})")));
    }
    let start = text("start");
    if start.is_empty() {
        return Err(invalid(format!("encoded start key empty (version {VERSION})")));
    }
    if !is_clean(start) {
        return Err(invalid(start.to_owned()));
    }
    Ok(Position {
        revision,
        start_key: format!("{prefix}{}", start.strip_prefix('/').unwrap_or(start)),
        remaining: token.get("remaining").and_then(Value::as_u64),
        began: token.get("began").and_then(Value::as_i64),
    })
}

/// Returns the position at which Go refuses a text as base64: at the first illegal character, or at a
/// trailing character.
fn illegal_byte(token: &str) -> usize {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    token.bytes().position(|byte| !is_letter(byte)).unwrap_or(token.len().saturating_sub(1))
}

/// Checks that a key stays below the prefix.
fn is_clean(key: &str) -> bool {
    let key = key.strip_prefix('/').unwrap_or(key);
    !key.is_empty() && key.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

#[cfg(test)]
mod tests;
