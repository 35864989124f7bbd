//! The errors of registries, in their own words.

use http::StatusCode;
use serde::Deserialize;

use crate::Error;

/// The longest text of an error, in characters.
const LONGEST: usize = 500;

#[derive(Deserialize)]
struct Body {
    errors: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: serde_json::Value,
}

/// Makes the error of a reply.
pub(super) fn error(what: &str, status: StatusCode, body: &[u8]) -> Error {
    let said = words(body);
    let number = status.as_u16();
    let reason = status.canonical_reason().unwrap_or("unknown");
    let message = if said.is_empty() {
        format!("{what}: {number} {reason}")
    } else {
        format!("{what}: {number} {reason}: {said}")
    };
    match number {
        401 | 403 => Error::Unauthorized(message),
        404 => Error::NotFound(message),
        408 | 429 | 500.. => Error::Unavailable(message),
        _ => Error::Refused(message),
    }
}

/// Returns the words of a registry: `unauthorized: authentication required`.
fn words(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Body>(body) {
        Ok(body) => body.errors.iter().map(line).collect::<Vec<_>>().join("; "),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let printable = |character: char| if character.is_control() { ' ' } else { character };
    text.trim().chars().take(LONGEST).map(printable).collect()
}

fn line(item: &Item) -> String {
    let code = item.code.to_lowercase().replace('_', " ");
    let detail = match &item.detail {
        serde_json::Value::String(detail) if !detail.is_empty() => format!(" ({detail})"),
        _ => String::new(),
    };
    match (code.is_empty(), item.message.is_empty()) {
        (false, false) => format!("{code}: {}{detail}", item.message),
        (true, _) => format!("{}{detail}", item.message),
        (false, true) => format!("{code}{detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_words_of_the_registry() {
        let body = br#"{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry","detail":{"name":"x"}}]}"#;
        let error = error("cannot pull x", StatusCode::NOT_FOUND, body);
        assert_eq!(
            error.to_string(),
            "cannot pull x: 404 Not Found: name unknown: repository name not known to registry"
        );
        assert!(matches!(error, Error::NotFound(_)));
        let error = super::error("x", StatusCode::BAD_GATEWAY, b"<html>\n</html>");
        assert_eq!(error.to_string(), "x: 502 Bad Gateway: <html> </html>");
    }
}
