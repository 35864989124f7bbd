//! URLs, as Go's `net/url` parses them.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use windlass_text::go_quote;

use super::network::ip_problem;
use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::{Entries, Key, Library, List, Map, Text, Value};

/// A URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// The part after the scheme of a URL without a host or path, such as `mailto:a`.
    opaque: String,
    user: Option<String>,
    host: String,
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("url", "string_to_url", "string", "kubernetes.URL", |_, v| {
        let text = as_text(&v[0])?;
        let fail = |error| Error::new(format!("URL parse error during conversion from string: {error}"));
        Url::parse(text, true).map_err(fail)?;
        let parsed = Url::parse(text, false).map_err(fail)?;
        Ok(Value::Library(Library::Url(Arc::new(parsed))))
    }),
    Row("isURL", "is_url_string", "string", "bool", |_, v| {
        Ok(Value::Bool(Url::parse(as_text(&v[0])?, true).is_ok()))
    }),
    Row("getScheme", "url_get_scheme", ".kubernetes.URL", "string", |_, v| part(v, |url| url.scheme.clone())),
    Row("getHost", "url_get_host", ".kubernetes.URL", "string", |_, v| part(v, |url| url.host.clone())),
    Row("getHostname", "url_get_hostname", ".kubernetes.URL", "string", |_, v| part(v, |url| url.host_and_port().0)),
    Row("getPort", "url_get_port", ".kubernetes.URL", "string", |_, v| part(v, |url| url.host_and_port().1)),
    Row("getEscapedPath", "url_get_escaped_path", ".kubernetes.URL", "string", |_, v| part(v, Url::escaped_path)),
    Row("getQuery", "url_get_query", ".kubernetes.URL", "map(string, list(string))", |_, v| {
        Ok(Value::Map(Map::of(as_url(&v[0])?.query_values())))
    }),
];

fn as_url<'v>(value: &'v Value<'_>) -> Result<&'v Url, Error> {
    if let Value::Library(Library::Url(url)) = value { Ok(url) } else { mismatch() }
}

fn part<'a>(arguments: &[Value<'a>], part: fn(&Url) -> String) -> Result<Value<'a>, Error> {
    Ok(Value::text(part(as_url(&arguments[0])?)))
}

impl Url {
    /// Parses a URL. One of a request has no fragment, and is absolute or a path.
    pub(crate) fn parse(text: &str, of_request: bool) -> Result<Self, String> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) if !of_request => (rest, Some(fragment)),
            _ => (text, None),
        };
        let parsed = Self::parse_rest(rest, of_request)
            .map_err(|error| format!("parse {}: {error}", go_quote(text)))?;
        if let Some(fragment) = fragment {
            check_escapes(fragment, false).map_err(|error| format!("parse {}: {error}", go_quote(text)))?;
        }
        Ok(Self { fragment: fragment.map(str::to_owned), ..parsed })
    }

    fn parse_rest(text: &str, of_request: bool) -> Result<Self, String> {
        if text.chars().any(|c| (c as u32) < 0x20 || c as u32 == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && of_request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = "*".to_owned();
            return Ok(url);
        }
        let (scheme, mut rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        if let Some((before, query)) = rest.split_once('?') {
            url.query = Some(query.to_owned());
            rest = before;
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if of_request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let has_authority = !url.scheme.is_empty() || !of_request && !rest.starts_with("///");
        if has_authority && let Some(after) = rest.strip_prefix("//") {
            let end = after.find('/').unwrap_or(after.len());
            url.authority(&after[..end])?;
            rest = &after[end..];
        }
        check_escapes(rest, false)?;
        rest.clone_into(&mut url.path);
        Ok(url)
    }

    fn authority(&mut self, text: &str) -> Result<(), String> {
        let host = match text.rsplit_once('@') {
            Some((user, host)) => {
                let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
                if !user.chars().all(valid) {
                    return Err("net/url: invalid userinfo".to_owned());
                }
                check_escapes(user, false)?;
                self.user = Some(user.to_owned());
                host
            }
            None => text,
        };
        match host.rfind('[') {
            Some(0) => check_literal(host)?,
            Some(_) => return Err("invalid IP-literal".to_owned()),
            None => {
                // Only URLs of other schemes have hosts with colons, such as a list of hosts.
                let is_strict = matches!(self.scheme.as_str(), "http" | "https");
                let colon = if is_strict { host.find(':') } else { host.rfind(':') };
                let end = colon.unwrap_or(host.len());
                check_port(&host[end..])?;
                check_escapes(&host[..end], true)?;
            }
        }
        self.host = percent_decode(host);
        Ok(())
    }

    /// Returns the host without its port and brackets, and the port.
    fn host_and_port(&self) -> (String, String) {
        let (mut host, mut port) = (self.host.as_str(), "");
        if let Some((before, after)) = host.rsplit_once(':')
            && !after.contains(']')
            && after.bytes().all(|byte| byte.is_ascii_digit())
        {
            (host, port) = (before, after);
        }
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host).to_owned(), port.to_owned())
    }

    /// Returns the path as it was written, if that is a valid encoding, or else with an encoding.
    fn escaped_path(&self) -> String {
        let written = |c: char| c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:@[]%/".contains(c);
        if self.path.chars().all(written) {
            return self.path.clone();
        }
        if self.path == "*" {
            return "*".to_owned();
        }
        let decoded = percent_decode(&self.path);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
        decoded.bytes().fold(String::new(), |mut out, byte| {
            if plain(byte) {
                out.push(char::from(byte));
            } else {
                _ = write!(out, "%{byte:02X}");
            }
            out
        })
    }

    fn query_values<'a>(&self) -> Entries<'a> {
        let mut keys: Vec<(String, Vec<Value<'a>>)> = Vec::new();
        for pair in self.query.as_deref().unwrap_or_default().split('&') {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if check_escapes(key, false).is_err() || check_escapes(value, false).is_err() {
                continue;
            }
            let key = percent_decode(&key.replace('+', " "));
            let value = Value::text(percent_decode(&value.replace('+', " ")));
            match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => keys.push((key, vec![value])),
            }
        }
        let mut entries = Entries::default();
        for (key, values) in keys {
            entries.insert(Key::String(Text::owned(key)), Value::List(List::of(values)));
        }
        entries
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Checks a host in brackets, and its port.
fn check_literal(host: &str) -> Result<(), String> {
    let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
    check_port(&host[end + 1..])?;
    let inner = &host[1..end];
    let address = if let Some((address, zone)) = inner.split_once("%25") {
        check_escapes(zone, false)?;
        check_escapes(address, true)?;
        format!("{}%{}", percent_decode(address), percent_decode(zone))
    } else {
        check_escapes(inner, true)?;
        percent_decode(inner)
    };
    check_address(&address)
}

/// Checks that the text in brackets is an IPv6 address, with or without a zone.
fn check_address(text: &str) -> Result<(), String> {
    let why = match text.split_once('%') {
        Some((_, "")) => "zone must be a non-empty string".to_owned(),
        Some((address, _)) if address.parse::<Ipv6Addr>().is_ok() => return Ok(()),
        None if text.parse::<Ipv6Addr>().is_ok() => return Ok(()),
        None if text.parse::<Ipv4Addr>().is_ok() => return Err("invalid IP-literal".to_owned()),
        _ => ip_problem(text),
    };
    Err(format!("invalid host: ParseAddr({}): {why}", go_quote(text)))
}

fn check_port(port: &str) -> Result<(), String> {
    let valid = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if valid { Ok(()) } else { Err(format!("invalid port {} after host", go_quote(port))) }
}

/// Checks the escapes of a text, and the characters of a host.
fn check_escapes(text: &str, is_host: bool) -> Result<(), String> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '%' {
            let digits = rest.get(1..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            if digits.is_none() {
                let bad: String = rest.chars().take(3).collect();
                return Err(format!("invalid URL escape {}", go_quote(&bad)));
            }
            if is_host
                && !digits.is_some_and(|digits| {
                    digits.starts_with(['8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'A', 'B', 'C', 'D', 'E', 'F'])
                        || digits == "25"
                })
            {
                return Err(format!("invalid URL escape {:?}", &rest[..3]));
            }
            rest = &rest[3..];
            continue;
        }
        let refused = c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"".contains(c);
        if is_host && refused {
            return Err(format!("invalid character {} in host name", go_quote(c.encode_utf8(&mut [0; 4]))));
        }
        rest = &rest[c.len_utf8()..];
    }
    Ok(())
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = escaped {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        f.write_str(&self.opaque)?;
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                f.write_str("//")?;
                if let Some(user) = &self.user {
                    write!(f, "{user}@")?;
                }
                f.write_str(&self.host)?;
            }
            f.write_str(&self.escaped_path())?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = &self.fragment {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}
