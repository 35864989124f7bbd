//! Paths of fields in rules, such as `.spec['a.b']`.

use serde_json::Value as Json;

/// A path of a field, found in a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldPath<'s> {
    /// The path as errors write it, such as `spec.labels[a]`.
    pub text: String,
    /// The schema of the field.
    pub schema: &'s Json,
}

/// Returns a path as errors write it, from the value that has the rule. An error says why the path is not valid in a schema.
pub fn normalize(path: &str, schema: &Json) -> Result<String, String> {
    walk(path, schema, true).map(|found| found.text)
}

/// Finds the field at a path of names after dots, such as `.spec.size`. An error says why the path is not valid in a schema.
pub fn resolve_dotted<'s>(path: &str, schema: &'s Json) -> Result<FieldPath<'s>, String> {
    walk(path, schema, false)
}

fn walk<'s>(path: &str, schema: &'s Json, allows_brackets: bool) -> Result<FieldPath<'s>, String> {
    let mut normalized = String::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        if rest.starts_with('[') && !allows_brackets {
            return Err("array notation is not allowed".to_owned());
        }
        let (name, after) = segment(rest)?;
        rest = after;
        if let Some(properties) = schema.get("properties").filter(|properties| properties.is_object()) {
            if !normalized.is_empty() {
                normalized.push('.');
            }
            normalized.push_str(&name);
            schema = properties.get(&name).ok_or("does not refer to a valid field")?;
        } else if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            normalized.extend(["[", &name, "]"]);
            schema = values;
        } else {
            return Err("does not refer to a valid field".to_owned());
        }
    }
    Ok(FieldPath { text: normalized, schema })
}

/// Returns the first name of a path, and the rest.
fn segment(path: &str) -> Result<(String, &str), String> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        if end == 0 {
            return match rest.chars().next() {
                None => Err("unexpected end of JSON path".to_owned()),
                Some(_) => Err("does not refer to a valid field".to_owned()),
            };
        }
        return Ok((rest[..end].to_owned(), &rest[end..]));
    }
    let Some(rest) = path.strip_prefix('[') else {
        let end = path.find(['.', '[', ']']).filter(|end| *end > 0).unwrap_or(path.len());
        return Err(format!("expected [ or . but got: {}", &path[..end]));
    };
    if rest.is_empty() {
        return Err("unexpected end of JSON path".to_owned());
    }
    let Some(quoted) = rest.strip_prefix('\'') else {
        let end = rest.find(['.', '[', ']']).filter(|end| *end > 0);
        let end = end.unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        return Err(format!("expected single quoted string but got {}", &rest[..end]));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => {
                let after = &quoted[at + 1..];
                return match after.strip_prefix(']') {
                    Some(after) => Ok((name, after)),
                    None if after.is_empty() => Err("unexpected end of JSON path".to_owned()),
                    None => Err(format!(
                        "expected ] but got {}",
                        &after[..after.find('.').unwrap_or(after.len())]
                    )),
                };
            }
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('a') => name.push('\u{7}'),
                Some('b') => name.push('\u{8}'),
                Some('f') => name.push('\u{c}'),
                Some('n') => name.push('\n'),
                Some('r') => name.push('\r'),
                Some('t') => name.push('\t'),
                Some('v') => name.push('\u{b}'),
                Some(literal @ ('\'' | '\\')) => name.push(literal),
                Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
                None => break,
            },
            other => name.push(other),
        }
    }
    Err(format!("expected single quoted string but got {rest}"))
}
