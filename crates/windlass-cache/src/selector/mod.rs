//! Label selectors.

mod parse;

use std::fmt;

use crate::RawObject;

pub use self::parse::SelectorError;

/// A label selector, as in `kubectl -l` and `metav1.LabelSelector`.
///
/// Requirements are sorted: equal selectors compare equal in any written order.
///
/// ```
/// use windlass_cache::Selector;
///
/// let selector: Selector = "app=web,tier in (front, back),!legacy".parse()?;
/// assert_eq!(selector.to_string(), "app=web,!legacy,tier in (back,front)");
/// # Ok::<(), windlass_cache::SelectorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// A requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// The operator and the operator's values.
    pub operator: Operator,
}

/// The operator of a requirement, with values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// Present, with this value.
    Equals(String),
    /// Absent, or with another value.
    NotEquals(String),
    /// Present, with a value from this list.
    In(Vec<String>),
    /// Absent, or with a value outside of this list.
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
    /// Returns the selector that matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns a selector for objects that have all these labels.
    pub fn from_labels<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        labels.into_iter().map(|(key, value)| Requirement::equals(key, value)).collect()
    }

    /// Returns the requirements. An object must meet all of them.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Returns whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns whether an object matches.
    pub fn matches(&self, object: &RawObject) -> bool {
        self.matches_labels(|key| object.label(key))
    }

    /// Returns whether a selector matches an object. `label` looks up the labels of the object.
    pub fn matches_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.operator.matches(label(&requirement.key)))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort();
        Self { requirements }
    }
}

impl Requirement {
    /// Requires a label to have a value.
    pub fn equals(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), operator: Operator::Equals(value.into()) }
    }

    /// Requires a label to be present.
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
