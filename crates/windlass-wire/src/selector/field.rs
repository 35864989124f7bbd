//! Field selectors: `spec.nodeName=a,status.phase!=Running`.

use windlass_schema::go_quote;

use crate::ApiError;

/// The fields that every resource has.
const METADATA_FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// Returns the error for an unknown field, with the supported fields.
pub fn unknown_field(field: &str, supported: &[&str]) -> String {
    let known: Vec<String> = METADATA_FIELDS.iter().chain(supported).map(|name| go_quote(name)).collect();
    format!("{} is not a known field selector: only {}", go_quote(field), known.join(", "))
}

/// An operator of a field selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// A comparison of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field's path.
    pub field: String,
    /// The comparison.
    pub operator: FieldOperator,
    /// The value compared with.
    pub value: String,
}

/// A field selector; an empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

impl FieldSelector {
    /// Parses a selector. Returns 400 for a malformed selector.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, operator, value)) = split_term(term) else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            let value = unescape(value).map_err(ApiError::bad_request)?;
            if field.is_empty() && value.is_empty() {
                // Every object has the empty value of no field.
                continue;
            }
            requirements.push(FieldRequirement { field: field.to_owned(), operator, value });
        }
        Ok(Self(requirements))
    }

    /// Returns the comparisons.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }

    /// Returns whether every object matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that all fields are `metadata.name`, `metadata.namespace` or in `supported`.
    ///
    /// 400 with the text that `refusal` returns for any other field.
    pub fn check(&self, supported: &[&str], refusal: impl FnOnce(&str) -> String) -> Result<(), ApiError> {
        let is_supported = |field: &str| METADATA_FIELDS.contains(&field) || supported.contains(&field);
        match self.0.iter().find(|requirement| !is_supported(&requirement.field)) {
            Some(requirement) => Err(ApiError::bad_request(refusal(&requirement.field))),
            None => Ok(()),
        }
    }

    /// Returns whether an object matches. `value` returns the value of a field, or "" for a missing field.
    pub fn matches(&self, mut value: impl FnMut(&str) -> String) -> bool {
        self.0.iter().all(|requirement| {
            let equal = value(&requirement.field) == requirement.value;
            equal == (requirement.operator == FieldOperator::Equals)
        })
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let at = term.find(['!', '=']).and_then(|first| {
        (first..term.len()).find(|at| {
            term.is_char_boundary(*at) && (term[*at..].starts_with("!=") || term[*at..].starts_with('='))
        })
    })?;
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, FieldOperator::NotEquals, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, FieldOperator::Equals, value))
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let rest: String = other.into_iter().collect();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{rest}"));
                }
            },
            ',' | '=' => {
                let code = character as u32;
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}
