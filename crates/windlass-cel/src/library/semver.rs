//! Semantic versions.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use windlass_text::go_quote;

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::{Library, Value};

/// A semantic version, such as `1.2.3-rc.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
    build: Vec<String>,
}

/// A part of a prerelease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(String),
}

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("semver", "string_to_semver", "string", "kubernetes.Semver", |_, v| version(as_text(&v[0])?, false)),
    Row("semver", "string_bool_to_semver", "string bool", "kubernetes.Semver", |_, v| {
        let normalize = v[1].as_bool().ok_or(Error::mismatch())?;
        version(as_text(&v[0])?, normalize)
    }),
    Row("isSemver", "is_semver_string", "string", "bool", |_, v| {
        Ok(Value::Bool(Version::parse(as_text(&v[0])?).is_ok()))
    }),
    Row("isSemver", "is_semver_string_bool", "string bool", "bool", |_, v| {
        let normalize = v[1].as_bool().ok_or(Error::mismatch())?;
        Ok(Value::Bool(version(as_text(&v[0])?, normalize).is_ok()))
    }),
    Row("isGreaterThan", "semver_is_greater_than", ".kubernetes.Semver kubernetes.Semver", "bool", |_, v| {
        Ok(Value::Bool(order(v)?.is_gt()))
    }),
    Row("isLessThan", "semver_is_less_than", ".kubernetes.Semver kubernetes.Semver", "bool", |_, v| {
        Ok(Value::Bool(order(v)?.is_lt()))
    }),
    Row("compareTo", "semver_compare_to", ".kubernetes.Semver kubernetes.Semver", "int", |_, v| {
        Ok(Value::Int(order(v)? as i64))
    }),
    Row("major", "semver_major", ".kubernetes.Semver", "int", |_, v| number(v, 0)),
    Row("minor", "semver_minor", ".kubernetes.Semver", "int", |_, v| number(v, 1)),
    Row("patch", "semver_patch", ".kubernetes.Semver", "int", |_, v| number(v, 2)),
];

fn as_version<'v>(value: &'v Value<'_>) -> Result<&'v Version, Error> {
    if let Value::Library(Library::Semver(version)) = value { Ok(version) } else { mismatch() }
}

fn version<'a>(text: &str, normalize: bool) -> Result<Value<'a>, Error> {
    let parsed = if normalize { Version::parse(&normalized(text)?) } else { Version::parse(text) };
    Ok(Value::Library(Library::Semver(Arc::new(parsed.map_err(Error::new)?))))
}

fn number<'a>(arguments: &[Value<'a>], index: usize) -> Result<Value<'a>, Error> {
    Ok(Value::Int(as_version(&arguments[0])?.numbers[index] as i64))
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, Error> {
    Ok(as_version(&arguments[0])?.cmp(as_version(&arguments[1])?))
}

/// Completes a version that has less than three numbers, and drops a leading `v` and leading zeros.
fn normalized(text: &str) -> Result<String, Error> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in &mut parts {
        if part.len() > 1 {
            let trimmed = part.trim_start_matches('0');
            let needs_zero = !trimmed.starts_with(|c: char| c.is_ascii_digit());
            *part = if needs_zero { format!("0{trimmed}") } else { trimmed.to_owned() };
        }
    }
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err(Error::fixed("short version cannot contain PreRelease/Build meta data"));
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

impl Version {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(rest, pre)| (rest, Some(pre)));
        let numbers = [number_of(major, "Major")?, number_of(minor, "Minor")?, number_of(patch, "Patch")?];
        let prerelease = prerelease.map(|text| text.split('.').map(identifier).collect()).transpose()?;
        let build = build.map(|text| text.split('.').map(metadata).collect()).transpose()?;
        Ok(Self { numbers, prerelease: prerelease.unwrap_or_default(), build: build.unwrap_or_default() })
    }

    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        numbers.then_with(|| match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare(&self.prerelease, &other.prerelease),
        })
    }
}

fn compare(one: &[Identifier], other: &[Identifier]) -> Ordering {
    let pairs = one.iter().zip(other).map(|(one, other)| match (one, other) {
        (Identifier::Number(a), Identifier::Number(b)) => a.cmp(b),
        (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
        (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
        (Identifier::Text(a), Identifier::Text(b)) => a.cmp(b),
    });
    pairs.into_iter().find(|ordering| ordering.is_ne()).unwrap_or(one.len().cmp(&other.len()))
}

fn number_of(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(if text.is_empty() {
            "strconv.ParseUint: parsing \"\": invalid syntax".to_owned()
        } else {
            format!(
                "Invalid character(s) found in {} number {text}",
                name.to_lowercase(),
                text = go_quote(text)
            )
        });
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {text}", text = go_quote(text)));
    }
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {text}: value out of range", text = go_quote(text)))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {text}",
                text = go_quote(text)
            ));
        }
        return text.parse().map(Identifier::Number).map_err(|error| format!("{error}"));
    }
    if is_word(text) {
        Ok(Identifier::Text(text.to_owned()))
    } else {
        Err(format!("Invalid character(s) found in prerelease {text}", text = go_quote(text)))
    }
}

fn metadata(text: &str) -> Result<String, String> {
    match text {
        "" => Err("Build meta data is empty".to_owned()),
        text if is_word(text) => Ok(text.to_owned()),
        text => Err(format!("Invalid character(s) found in build meta data {text}", text = go_quote(text))),
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (index, identifier) in self.prerelease.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}
