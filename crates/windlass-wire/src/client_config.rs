//! The rules for a `clientConfig`: where a webhook is.

use serde_json::Value;
use windlass_schema::{FieldError, go_quote};

use crate::names::{dns_1123_subdomain, port_number};

/// The default port of a service reference.
const DEFAULT_PORT: i64 = 443;

/// Validates the `clientConfig` of a webhook at `path`. A `clientConfig` names either an HTTPS URL or a
/// service.
pub fn validate_client_config(config: &Value, path: &str) -> Vec<FieldError> {
    let service = config.get("service").filter(|service| service.is_object());
    match (config.get("url").and_then(Value::as_str), service) {
        (Some(url), None) => validate_url(url, &format!("{path}.url")),
        (None, Some(service)) => validate_service(service, &format!("{path}.service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn validate_url(url: &str, path: &str) -> Vec<FieldError> {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(why) => {
            let why = format!("url must be a valid URL: parse {}: {why}{FORM}", go_quote(url));
            return vec![FieldError::required(path, why)];
        }
    };
    let mut errors = Vec::new();
    let mut refuse = |value: &str, why: String| errors.push(FieldError::invalid(path, value, why));
    if url.scheme != "https" {
        refuse(&url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        refuse("", format!("host must be specified{FORM}"));
    }
    let parts = [
        (url.user, "user information is not permitted in the URL"),
        (Some(url.fragment), "fragments are not permitted in the URL"),
        (Some(url.query), "query parameters are not permitted in the URL"),
    ];
    for (index, (part, why)) in parts.into_iter().enumerate() {
        if let Some(part) = part.filter(|part| index == 0 || !part.is_empty()) {
            refuse(part, why.to_owned());
        }
    }
    errors
}

fn validate_service(service: &Value, path: &str) -> Vec<FieldError> {
    let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut errors = Vec::new();
    // The real server mistakes the two fields for each other.
    for (field, value) in [("name", text("namespace")), ("namespace", text("name"))] {
        if value.is_empty() {
            errors.push(FieldError::required(format!("{path}.{field}"), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(DEFAULT_PORT);
    let problems = port_number(port);
    if !problems.is_empty() {
        let why = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(format!("{path}.port"), port, why));
    }
    let given = text("path");
    let why = path_problems(given);
    errors.extend(why.into_iter().map(|why| FieldError::invalid(format!("{path}.path"), given, why)));
    errors
}

/// Returns the errors of a service's path.
fn path_problems(path: &str) -> Vec<String> {
    if path.is_empty() || path == "/" {
        return Vec::new();
    }
    if path == "//" {
        return vec!["segment[0] may not be empty".to_owned()];
    }
    let mut problems = Vec::new();
    if !path.starts_with('/') {
        problems.push("must start with a '/'".to_owned());
    }
    // The first character is taken for the slash.
    let mut characters = path.chars();
    characters.next();
    let rest = characters.as_str();
    for (index, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            problems.push(format!("segment[{index}] may not be empty"));
            continue;
        }
        problems
            .extend(dns_1123_subdomain(segment).into_iter().map(|why| format!("segment[{index}]: {why}")));
    }
    problems
}

/// The parts of a URL, in Go's terms.
struct Url<'u> {
    scheme: String,
    host: &'u str,
    user: Option<&'u str>,
    query: &'u str,
    fragment: &'u str,
}

impl<'u> Url<'u> {
    fn parse(text: &'u str) -> Result<Self, String> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme_of(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Url { scheme: scheme.to_ascii_lowercase(), host: "", user: None, query, fragment };
        if !rest.starts_with('/') {
            if scheme.is_empty() && rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
            return Ok(url);
        }
        let path = match rest.strip_prefix("//") {
            Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
                let end = after.find('/').unwrap_or(after.len());
                let (authority, path) = after.split_at(end);
                let (user, host) =
                    authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
                check_host(host)?;
                (url.user, url.host) = (user, host);
                path
            }
            _ => rest,
        };
        check_escapes(path)?;
        Ok(url)
    }
}

/// Splits a URL into the scheme, which may be empty, and the rest.
fn scheme_of(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let (name, port) = match host.strip_prefix('[').and_then(|inner| inner.rsplit_once(']')) {
        Some((name, port)) => (name, port),
        None if host.starts_with('[') => return Err("missing ']' in host".to_owned()),
        None => host.rfind(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", go_quote(port)));
    }
    check_escapes(name)?;
    let refused = |character: &char| character.is_ascii() && " \"\\^`{|}".contains(*character);
    match name.chars().find(refused) {
        Some(character) => {
            Err(format!("invalid character {} in host name", go_quote(&character.to_string())))
        }
        None => Ok(()),
    }
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (index, _) in text.match_indices('%') {
        let bytes = text.as_bytes().get(index + 1..index + 3);
        if !bytes.is_some_and(|bytes| bytes.iter().all(u8::is_ascii_hexdigit)) {
            let escape: String = text[index..].chars().take(3).collect();
            return Err(format!("invalid URL escape {}", go_quote(&escape)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(config: &Value) -> Vec<String> {
        validate_client_config(config, "c").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_url_has_a_host_and_https_and_nothing_else() {
        assert!(problems(&json!({"url": "https://a.example.com:8443/path"})).is_empty());
        assert_eq!(
            problems(&json!({"url": "http://u@/x?y#z"})),
            [
                r#"c.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#,
                r#"c.url: Invalid value: "": host must be specified; desired format: https://host[/path]"#,
                r#"c.url: Invalid value: "u": user information is not permitted in the URL"#,
                r#"c.url: Invalid value: "z": fragments are not permitted in the URL"#,
                r#"c.url: Invalid value: "y": query parameters are not permitted in the URL"#,
            ]
        );
        let malformed = |url: &str| problems(&json!({ "url": url })).join("");
        assert!(
            malformed("https://a b").contains(r#"parse "https://a b": invalid character " " in host name"#)
        );
        assert!(malformed("https://a:x").contains(r#"invalid port ":x" after host"#));
        assert!(malformed("1:2").contains("first path segment in URL cannot contain colon"));
        assert!(malformed("https://a/%zz").contains(r#"invalid URL escape "%zz""#));
    }

    #[test]
    fn a_service_has_a_name_a_namespace_and_a_path() {
        assert!(problems(&json!({"service": {"name": "n", "namespace": "s", "path": "/a/b/"}})).is_empty());
        let found = problems(&json!({"service": {"name": "n", "path": "a//B", "port": 0}}));
        assert_eq!(found[0], "c.service.name: Required value");
        assert!(found[1].starts_with("c.service.port: Invalid value: 0: port is not valid: must be between"));
        assert!(found[2].ends_with("must start with a '/'"));
        assert!(found[3].ends_with("segment[0] may not be empty"), "{found:?}");
        assert!(found[4].ends_with("segment[1] may not be empty"), "{found:?}");
        assert!(found[5].contains("segment[2]: a lowercase RFC 1123 subdomain"), "{found:?}");
        assert_eq!(problems(&json!({})), ["c: Required value: exactly one of url or service is required"]);
    }
}
