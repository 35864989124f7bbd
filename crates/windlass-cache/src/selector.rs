//! Label selectors.

use std::{fmt, str::FromStr};

use crate::RawObject;

/// Chooses objects by their labels, as `kubectl -l` and `metav1.LabelSelector` do.
///
/// ```
/// use windlass_cache::Selector;
///
/// let selector: Selector = "app=web,tier in (front, back),!legacy".parse()?;
/// assert_eq!(selector.to_string(), "app=web,tier in (back,front),!legacy");
/// # Ok::<(), windlass_cache::SelectorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What it must be.
    pub operator: Operator,
}

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// Present, with this value.
    Equals(String),
    /// Absent, or with another value.
    NotEquals(String),
    /// Present, with one of these values.
    In(Vec<String>),
    /// Absent, or with a value that is none of these.
    NotIn(Vec<String>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An integer greater than this.
    GreaterThan(i64),
    /// An integer less than this.
    LessThan(i64),
}

impl Selector {
    /// The selector that chooses every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Chooses the objects that have all these labels.
    pub fn from_labels<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        labels.into_iter().map(|(key, value)| Requirement::equals(key, value)).collect()
    }

    /// The conditions, all of which must hold.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object is chosen.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the object is chosen.
    pub fn matches(&self, object: &RawObject) -> bool {
        self.matches_labels(|key| object.label(key))
    }

    /// Whether an object is chosen whose labels `label` looks up.
    pub fn matches_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.operator.matches(label(&requirement.key)))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self { requirements: requirements.into_iter().collect() }
    }
}

impl Requirement {
    /// A label must have a value.
    pub fn equals(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), operator: Operator::Equals(value.into()) }
    }

    /// A label must be present.
    pub fn exists(key: impl Into<String>) -> Self {
        Self { key: key.into(), operator: Operator::Exists }
    }
}

impl Operator {
    fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Equals(wanted) => value == Some(wanted),
            Self::NotEquals(unwanted) => value != Some(unwanted),
            Self::In(wanted) => value.is_some_and(|value| wanted.iter().any(|wanted| wanted == value)),
            Self::NotIn(unwanted) => value.is_none_or(|value| unwanted.iter().all(|other| other != value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, requirement) in self.requirements.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.operator {
            Operator::Equals(value) => write!(f, "{key}={value}"),
            Operator::NotEquals(value) => write!(f, "{key}!={value}"),
            Operator::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Operator::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Operator::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

/// The text is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}` is not a label selector: {reason}")]
pub struct SelectorError {
    selector: String,
    reason: &'static str,
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Ok(Self::everything());
        }
        split(text)
            .map(|part| requirement(part.trim()))
            .collect::<Result<_, _>>()
            .map_err(|reason| SelectorError { selector: text.to_owned(), reason })
    }
}

/// Splits at the commas that stand outside parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
}

fn requirement(part: &str) -> Result<Requirement, &'static str> {
    let make = |key: &str, operator| Ok(Requirement { key: name(key)?.to_owned(), operator });
    if let Some(key) = part.strip_prefix('!') {
        return make(key, Operator::DoesNotExist);
    }
    if let Some(rest) = part.strip_suffix(')') {
        let (head, values) = rest.split_once('(').ok_or("a parenthesis is not opened")?;
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace).ok_or("an operator is missing")?;
        let mut values: Vec<_> = values.split(',').map(|value| value.trim().to_owned()).collect();
        values.sort();
        values.dedup();
        return match operator {
            "in" => make(key, Operator::In(values)),
            "notin" => make(key, Operator::NotIn(values)),
            _ => Err("before the parenthesis stands `in` or `notin`"),
        };
    }
    for (sign, operator) in [
        ("!=", Operator::NotEquals as fn(String) -> Operator),
        ("==", Operator::Equals),
        ("=", Operator::Equals),
    ] {
        if let Some((key, value)) = part.split_once(sign) {
            return make(key, operator(word(value)?.to_owned()));
        }
    }
    for (sign, operator) in [('>', Operator::GreaterThan as fn(i64) -> Operator), ('<', Operator::LessThan)] {
        if let Some((key, value)) = part.split_once(sign) {
            return make(key, operator(value.trim().parse().map_err(|_| "a bound is not an integer")?));
        }
    }
    make(part, Operator::Exists)
}

fn name(key: &str) -> Result<&str, &'static str> {
    let key = word(key)?;
    if key.is_empty() { Err("a label's name is empty") } else { Ok(key) }
}

fn word(text: &str) -> Result<&str, &'static str> {
    let text = text.trim();
    let legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
    if text.chars().all(legal) {
        Ok(text)
    } else {
        Err("names and values consist of letters, digits, `-`, `_`, `.` and `/`")
    }
}
