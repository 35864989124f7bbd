//! The syntax of names, labels and annotations.
//!
//! Each check returns the problems of a value in kube-apiserver's words. A valid value has none.

use serde_json::{Map, Value};
use windlass_schema::{ErrorList, FieldError};

const DNS_1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";
const C_IDENTIFIER: &str = "[A-Za-z_][A-Za-z0-9_]*";

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// A check of a name. The arguments are the value, and true for a prefix (`generateName`).
pub type NameCheck = fn(&str, bool) -> Vec<String>;

fn pattern(rule: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{regex}')");
    }
    let quoted: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", quoted.join(" or "))
}

fn longest(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

/// Returns the message about a value of more than `max` bytes; older checks write "characters".
fn longest_characters(bytes: usize) -> String {
    format!("must be no more than {bytes} characters")
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn matches_dns_1123_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    is_lower_alphanumeric(*first)
        && is_lower_alphanumeric(*last)
        && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
}

fn matches_dns_1123_subdomain(value: &str) -> bool {
    value.split('.').all(matches_dns_1123_label)
}

fn matches_label_key(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Removes the dash at the end of a `generateName`, because the server appends more characters.
fn without_trailing_dash(value: &str, prefix: bool) -> String {
    match value.strip_suffix('-') {
        Some(start) if prefix && !start.is_empty() => {
            let mut start = start.to_owned();
            start.pop();
            start + "a"
        }
        _ => value.to_owned(),
    }
}

/// Checks a lowercase RFC 1123 label: `my-name`, at most 63 bytes.
pub fn dns_1123_label(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 63 {
        complaints.push(longest_characters(63));
    }
    if !matches_dns_1123_label(value) {
        complaints.push(if matches_dns_1123_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                DNS_1123_LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    complaints
}

/// Checks a lowercase RFC 1123 subdomain: `example.com`, at most 253 bytes.
pub fn dns_1123_subdomain(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 253 {
        complaints.push(longest_characters(253));
    }
    if !matches_dns_1123_subdomain(value) {
        complaints.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            DNS_1123_SUBDOMAIN,
            &["example.com"],
        ));
    }
    complaints
}

/// Checks an RFC 1123 subdomain in lower and upper case: `Example.com`, at most 253 bytes.
pub fn dns_1123_subdomain_caseless(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 253 {
        complaints.push(longest(253));
    }
    if !matches_dns_1123_subdomain(&value.to_ascii_lowercase()) {
        complaints.push(pattern(
            "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            DNS_1123_SUBDOMAIN,
            &["Example.com"],
        ));
    }
    complaints
}

/// Checks an RFC 1035 label: as [`dns_1123_label`], but starting with a letter.
pub fn dns_1035_label(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 63 {
        complaints.push(longest_characters(63));
    }
    if !matches_dns_1123_label(value) || value.as_bytes()[0].is_ascii_digit() {
        complaints.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            DNS_1035_LABEL,
            &["my-name", "abc-123"],
        ));
    }
    complaints
}

/// Checks the key of a label; also the syntax of finalizers and annotation keys: `name` or `example.com/name`.
pub fn label_key(value: &str) -> Vec<String> {
    let rule = |head: &str| {
        pattern(&format!("{head}{LABEL_KEY_RULE}"), LABEL_KEY, &["MyName", "my.name", "123-abc"])
    };
    let mut complaints = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            complaints.push(format!(
                "{} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                rule("a valid label key ")
            ));
            return complaints;
        }
        Some(("", name)) => {
            complaints.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            // The older count is of characters, the newer of bytes.
            let about_prefix = dns_1123_subdomain(prefix).into_iter();
            complaints.extend(
                about_prefix
                    .map(|text| format!("prefix part {}", text.replace("253 characters", "253 bytes"))),
            );
            name
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        complaints.push(format!("name part {}", longest(63)));
    }
    if !matches_label_key(name) {
        complaints.push(rule("name part "));
    }
    complaints
}

/// Checks the value of a label: empty, or at most 63 bytes of letters, digits, `-`, `_`, `.`.
pub fn label_value(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 63 {
        complaints.push(longest(63));
    }
    if !value.is_empty() && !matches_label_key(value) {
        complaints.push(pattern(
            &format!(
                "a valid label must be an empty string or consist of {}",
                &LABEL_KEY_RULE["must consist of ".len()..]
            ),
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    complaints
}

/// Checks a subdomain with a wildcard as the first label: `*.example.com`.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 253 {
        complaints.push(longest_characters(253));
    }
    if !value.strip_prefix("*.").is_some_and(matches_dns_1123_subdomain) {
        complaints.push(pattern(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{DNS_1123_SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    complaints
}

/// Checks a subdomain with underscores in labels: a search domain of a resolver.
pub fn subdomain_with_underscores(value: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
        bytes.first().is_some_and(|byte| is_lower_alphanumeric(*byte))
            && bytes.last().is_some_and(|byte| is_lower_alphanumeric(*byte))
            && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || matches!(byte, b'-' | b'_'))
    };
    let mut complaints = Vec::new();
    if value.len() > 253 {
        complaints.push(longest_characters(253));
    }
    if !value.split('.').all(is_label) {
        complaints.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    complaints
}

/// Checks the key of an entry of a `ConfigMap` or `Secret`.
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 253 {
        complaints.push(longest_characters(253));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if value.is_empty() || !value.bytes().all(fits) {
        complaints.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            CONFIG_KEY,
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." => complaints.push("must not be '.'".to_owned()),
        ".." => complaints.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}

/// Checks the name of an environment variable: printable ASCII, no `=`.
pub fn env_var_name(value: &str) -> Vec<String> {
    let fits = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if !value.is_empty() && value.bytes().all(fits) {
        return Vec::new();
    }
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

/// Checks a C identifier: `my_name`.
pub fn c_identifier(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let starts = bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    if starts && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return Vec::new();
    }
    vec![pattern(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        C_IDENTIFIER,
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// Checks the name of a port: at most 15 bytes, with a letter, no doubled or outer dash.
pub fn port_name(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if value.len() > 15 {
        complaints.push(longest_characters(15));
    }
    if value.is_empty() || !value.bytes().all(|byte| is_lower_alphanumeric(byte) || byte == b'-') {
        complaints.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        complaints.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        complaints.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        complaints.push("must not begin or end with a hyphen".to_owned());
    }
    complaints
}

/// Checks a port number.
pub fn port_number(value: i64) -> Vec<String> {
    if (1..=65535).contains(&value) {
        return Vec::new();
    }
    vec!["must be between 1 and 65535, inclusive".to_owned()]
}

/// Checks the name of most objects.
pub fn subdomain_name(value: &str, prefix: bool) -> Vec<String> {
    dns_1123_subdomain(&without_trailing_dash(value, prefix))
}

/// Checks the name of a namespace and other names that are a label of a host name.
pub fn label_name(value: &str, prefix: bool) -> Vec<String> {
    dns_1123_label(&without_trailing_dash(value, prefix))
}

/// Checks the name of a service before Kubernetes 1.36, and of a few other kinds.
pub fn dns_1035_name(value: &str, prefix: bool) -> Vec<String> {
    dns_1035_label(&without_trailing_dash(value, prefix))
}

/// Checks a name that only has to be a segment of a path: roles, bindings.
pub fn path_segment_name(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && (value == "." || value == "..") {
        return vec![format!("may not be '{value}'")];
    }
    ['/', '%']
        .into_iter()
        .filter(|illegal| value.contains(*illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// The most bytes that the keys and values of an object's annotations may have together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Returns the errors of labels at `path`.
pub fn validate_labels(labels: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        if errors.is_full() {
            break;
        }
        let value = value.as_str().unwrap_or_default();
        let invalid = |value: &str, why| FieldError::invalid(path, value, why);
        errors.extend(label_key(key).into_iter().map(|why| invalid(key, why)));
        errors.extend(label_value(value).into_iter().map(|why| invalid(value, why)));
    }
    errors.into_vec()
}

/// Returns the errors of annotations at `path`.
pub fn validate_annotations(annotations: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    let mut size = 0;
    for (key, value) in annotations {
        size += key.len() + value.as_str().map_or(0, str::len);
        if errors.is_full() {
            continue;
        }
        let complaints = label_key(&key.to_lowercase());
        errors.extend(complaints.into_iter().map(|why| FieldError::invalid(path, key.as_str(), why)));
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS));
    }
    errors.into_vec()
}

#[cfg(test)]
mod tests;
