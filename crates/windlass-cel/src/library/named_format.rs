//! Formats of texts by name, such as `format.dns1123Label()`.

use windlass_text::matches_format;

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::library::url::Url;
use crate::value::{Library, List, Value};

/// A format of texts.
#[derive(Debug)]
pub struct NamedFormat {
    /// The name.
    pub(crate) name: &'static str,
    /// The length of the regular expression that the format stands for, in costs.
    pub(crate) pattern_size: u64,
    /// Returns the reasons why a text does not have the format.
    problems: fn(&str) -> Vec<String>,
}

macro_rules! formats {
    ($($row:literal $function:literal $constant:ident = $name:literal $size:literal $problems:expr;)*) => {
        $(static $constant: NamedFormat = NamedFormat { name: $name, pattern_size: $size, problems: $problems };)*

        const NAMES: &[(&str, &NamedFormat)] = &[$(($row, &$constant)),*];

        pub(super) const FUNCTIONS: &[Row] = &[
            $(Row($function, $function, "", "kubernetes.NamedFormat", |_, _| {
                Ok(Value::Library(Library::Format(&$constant)))
            }),)*
            Row("format.named", "format-named", "string", "optional(kubernetes.NamedFormat)", |_, v| {
                let name = as_text(&v[0])?;
                let known = NAMES.iter().find(|(known, _)| *known == name);
                Ok(known.map_or(Value::Optional(None), |(_, format)| {
                    Value::some(Value::Library(Library::Format(format)))
                }))
            }),
            Row("validate", "format-validate", ".kubernetes.NamedFormat string", "optional(list(string))", |_, v| {
                validate(v)
            }),
        ];
    };
}

formats! {
    "dns1123Label" "format.dns1123Label" DNS_LABEL = "DNS1123Label" 30 |text| label(text);
    "dns1123Subdomain" "format.dns1123Subdomain" SUBDOMAIN = "DNS1123Subdomain" 60 |text| subdomain(text);
    "dns1035Label" "format.dns1035Label" DNS1035_LABEL = "DNS1035Label" 30 |text| label_1035(text);
    "qualifiedName" "format.qualifiedName" QUALIFIED_NAME = "QualifiedName" 60 qualified_name;
    "dns1123LabelPrefix" "format.dns1123LabelPrefix" LABEL_PREFIX = "DNS1123LabelPrefix" 30
        |text| label(&without_dash(text));
    "dns1123SubdomainPrefix" "format.dns1123SubdomainPrefix" SUBDOMAIN_PREFIX = "DNS1123SubdomainPrefix" 60
        |text| subdomain(&without_dash(text));
    "dns1035LabelPrefix" "format.dns1035LabelPrefix" DNS1035_PREFIX = "DNS1035LabelPrefix" 30
        |text| label_1035(&without_dash(text));
    "labelValue" "format.labelValue" LABEL_VALUE = "LabelValue" 40 label_value;
    "uri" "format.uri" URI = "URI" 1103 |text| Url::parse(text, true).err().into_iter().collect();
    "uuid" "format.uuid" UUID = "uuid" 77 |text| named(text, "uuid", "does not match the UUID format");
    "byte" "format.byte" BYTE = "byte" 84 |text| named(text, "byte", "invalid base64");
    "date" "format.date" DATE = "date" 185 |text| named(text, "date", "invalid date");
    "datetime" "format.datetime" DATE_TIME = "datetime" 185 |text| named(text, "datetime", "invalid datetime");
}

fn validate<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let Value::Library(Library::Format(format)) = &arguments[0] else { return mismatch() };
    let problems = (format.problems)(as_text(&arguments[1])?);
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::List(List::of(problems.into_iter().map(Value::text).collect()))))
}

fn named(text: &str, format: &str, problem: &str) -> Vec<String> {
    if matches_format(format, text) { Vec::new() } else { vec![problem.to_owned()] }
}

/// Replaces the dash at the end of a prefix, as kube-apiserver does.
fn without_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const DOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                      and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                      validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                          alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                          'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

fn label(text: &str) -> Vec<String> {
    let form = (!is_label(text)).then(|| LABEL.to_owned());
    too_long(text, 63).into_iter().chain(form).collect()
}

fn label_1035(text: &str) -> Vec<String> {
    let valid = is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    too_long(text, 63).into_iter().chain((!valid).then(|| LABEL_1035.to_owned())).collect()
}

fn subdomain(text: &str) -> Vec<String> {
    let form = (!text.split('.').all(is_label)).then(|| DOMAIN.to_owned());
    too_long(text, 253).into_iter().chain(form).collect()
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.bytes().all(inner) && edge(text.as_bytes().first()) && edge(text.as_bytes().last())
}

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                    is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn qualified_name(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut problems = Vec::new();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems
                    .extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                NAME
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(too_long(name, 63).map(|problem| format!("name part {problem}")));
    if !is_name(name) {
        problems.push(format!("name part {NAME}"));
    }
    problems
}

fn label_value(text: &str) -> Vec<String> {
    let valid = text.is_empty() || is_name(text);
    let form = (!valid).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned()
    });
    too_long(text, 63).into_iter().chain(form).collect()
}
