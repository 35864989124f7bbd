//! Label selectors: `app=web,tier in (a,b),!old`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use windlass_schema::{FieldError, go_quote};

use crate::{ApiError, names};

/// An operator of a label selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelOperator {
    /// The label has a value of the set; also `=` and `==`.
    In,
    /// The label is absent or has none of the values; also `!=`.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer larger than the value.
    GreaterThan,
    /// The label is an integer smaller than the value.
    LessThan,
}

/// A comparison of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// The comparison.
    pub operator: LabelOperator,
    /// The values compared with, sorted.
    pub values: Vec<String>,
}

impl LabelRequirement {
    fn matches(&self, label: Option<&str>) -> bool {
        // A URL has room for tens of thousands of values, and a list asks for each object.
        let has = |value: &str| self.values.binary_search_by(|found| found.as_str().cmp(value)).is_ok();
        match self.operator {
            LabelOperator::In => label.is_some_and(has),
            LabelOperator::NotIn => !label.is_some_and(has),
            LabelOperator::Exists => label.is_some(),
            LabelOperator::DoesNotExist => label.is_none(),
            LabelOperator::GreaterThan | LabelOperator::LessThan => {
                let integer = |text: &str| text.parse::<i64>().ok();
                let (Some(label), Some(bound)) =
                    (label.and_then(integer), self.values.first().and_then(|value| integer(value)))
                else {
                    return false;
                };
                if self.operator == LabelOperator::GreaterThan { label > bound } else { label < bound }
            }
        }
    }
}

/// A label selector; an empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<LabelRequirement>);

impl LabelSelector {
    /// Parses the selector of a query. Returns 400 for a malformed selector.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        Parser::new(text).selector().map(Self).map_err(ApiError::bad_request)
    }

    /// Reads the `spec.selector` of an object: `matchLabels` and `matchExpressions`.
    ///
    /// Malformed expressions match no object; validation rejects such expressions.
    pub fn from_object(selector: &Value) -> Self {
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            requirements.extend(exact(labels));
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let operator = match expression.get("operator").and_then(Value::as_str) {
                Some("In") => LabelOperator::In,
                Some("NotIn") => LabelOperator::NotIn,
                Some("Exists") => LabelOperator::Exists,
                Some("DoesNotExist") => LabelOperator::DoesNotExist,
                _ => LabelOperator::In,
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: BTreeSet<&str> = values.filter_map(Value::as_str).collect();
            requirements.push(LabelRequirement {
                key: expression.get("key").and_then(Value::as_str).unwrap_or_default().to_owned(),
                operator,
                values: values.into_iter().map(str::to_owned).collect(),
            });
        }
        Self(requirements)
    }

    /// Reads a selector that is a map of labels, as in a Service.
    pub fn from_map(labels: &Map<String, Value>) -> Self {
        Self(exact(labels).collect())
    }

    /// Returns the comparisons.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.0
    }

    /// Returns whether every object matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `metadata.labels` of an object match.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.matches_by(|key| labels?.get(key)?.as_str())
    }

    /// Returns whether an object matches; `value` returns the value of a label, or `None` for a missing
    /// label.
    pub fn matches_by<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(value(&requirement.key)))
    }
}

impl std::fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = &self.key;
        let values = self.values.join(",");
        match self.operator {
            LabelOperator::In if self.values.len() == 1 => write!(f, "{key}={values}"),
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Exists => write!(f, "{key}"),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Writes the selector in the syntax of a query.
impl std::fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

fn exact(labels: &Map<String, Value>) -> impl Iterator<Item = LabelRequirement> + '_ {
    labels.iter().map(|(key, value)| LabelRequirement {
        key: key.clone(),
        operator: LabelOperator::In,
        values: vec![value.as_str().unwrap_or_default().to_owned()],
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Symbol(&'a str),
    Word(&'a str),
}

impl Token<'_> {
    fn text(self) -> String {
        match self {
            Self::End => String::new(),
            Self::Symbol(text) | Self::Word(text) => text.to_owned(),
        }
    }

    fn is_word(self) -> bool {
        matches!(self, Self::Word(_))
    }
}

const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

fn scan(text: &str) -> Vec<Token<'_>> {
    // A NUL ends the selector, like a string in the real server's scanner.
    let mut rest = text.split('\0').next().unwrap_or_default();
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else { break };
        let length = if SYMBOLS.contains(&first) {
            if ["==", "!="].iter().any(|symbol| rest.starts_with(symbol)) { 2 } else { 1 }
        } else {
            rest.find(|c| SYMBOLS.contains(&c) || matches!(c, ' ' | '\t' | '\r' | '\n')).unwrap_or(rest.len())
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(if SYMBOLS.contains(&first) { Token::Symbol(token) } else { Token::Word(token) });
        rest = behind;
    }
    tokens.push(Token::End);
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { tokens: scan(text), at: 0 }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.peek();
            if token == Token::End {
                break;
            }
            if !token.is_word() && token != Token::Symbol("!") {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", token.text()));
            }
            let requirement =
                self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                Token::End => break,
                Token::Symbol(",") => {
                    let token = self.peek();
                    if !token.is_word() && token != Token::Symbol("!") {
                        return Err(format!("found '{}', expected: identifier after ','", token.text()));
                    }
                }
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut token = self.next();
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        let complaints = names::label_key(key);
        if !complaints.is_empty() {
            // The path is nil in the real server, and is printed as nil.
            return Err(FieldError::invalid("<nil>", key, complaints.join("; ")).to_string());
        }
        if negated || matches!(self.peek(), Token::End | Token::Symbol(",")) {
            let operator = if negated { LabelOperator::DoesNotExist } else { LabelOperator::Exists };
            return Ok(LabelRequirement { key: key.to_owned(), operator, values: Vec::new() });
        }
        let token = self.next();
        let (operator, values) = match token {
            Token::Word("in") => (LabelOperator::In, self.set()?),
            Token::Word("notin") => (LabelOperator::NotIn, self.set()?),
            Token::Symbol("=" | "==") => (LabelOperator::In, self.single()?),
            Token::Symbol("!=") => (LabelOperator::NotIn, self.single()?),
            Token::Symbol(">") => (LabelOperator::GreaterThan, self.single()?),
            Token::Symbol("<") => (LabelOperator::LessThan, self.single()?),
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        let requirement = LabelRequirement {
            key: key.to_owned(),
            operator,
            values: values.into_iter().map(str::to_owned).collect(),
        };
        check(&requirement)?;
        Ok(requirement)
    }

    fn set(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let token = self.next();
        if token != Token::Symbol("(") {
            return Err(format!("found '{}' expected: '('", token.text()));
        }
        let first = self.peek();
        match first {
            Token::Symbol(")") => {
                self.next();
                Ok(BTreeSet::from([""]))
            }
            Token::Word(_) | Token::Symbol(",") => {
                let values = self.set_items()?;
                if self.next() == Token::Symbol(")") {
                    Ok(values)
                } else {
                    Err(format!("found '{}', expected: ')'", first.text()))
                }
            }
            other => Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
    }

    fn set_items(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert("");
                    }
                    match self.peek() {
                        Token::Symbol(")") => {
                            values.insert("");
                            return Ok(values);
                        }
                        Token::Symbol(",") => {
                            values.insert("");
                        }
                        _ => {}
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }

    fn single(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(BTreeSet::from([""]));
        }
        match self.next() {
            Token::Word(value) => Ok(BTreeSet::from([value])),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}

/// Checks the values of a comparison.
fn check(requirement: &LabelRequirement) -> Result<(), String> {
    let mut errors = Vec::new();
    if matches!(requirement.operator, LabelOperator::GreaterThan | LabelOperator::LessThan) {
        for (index, value) in requirement.values.iter().enumerate() {
            if value.parse::<i64>().is_err() {
                errors.push(format!(
                    "values[{index}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                    go_quote(value)
                ));
            }
        }
    }
    for (index, value) in requirement.values.iter().enumerate() {
        let complaints = names::label_value(value);
        if !complaints.is_empty() {
            let field = format!("values[{index}][{}]", requirement.key);
            errors.push(FieldError::invalid(field, value.as_str(), complaints.join("; ")).to_string());
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
