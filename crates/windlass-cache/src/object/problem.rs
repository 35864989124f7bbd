//! Describes why JSON does not decode as a type, without repeating any value.
//!
//! The messages of `serde_json` contain values. The description contains the path to the value, the kind of the value, and what the type
//! expects, unless the value has the same words. Everything here works on text: a second deserializer, whose errors are exact, would have
//! to be compiled for each kind of objects. The path of a value that its type buffers, such as an enum with a tag, is the path of the
//! buffer's container.

use serde_json::Value;

use super::path::Path;

/// Describes why `json` does not decode: `spec.replicas: expected i32, found a string`. `error` is the error of `serde_json` for `json`.
///
/// The description has the path of the field, and repeats no value of the JSON, because a value may be a secret.
///
/// ```
/// let json = br#"{"data": {"password": 5}}"#;
/// let error = serde_json::from_slice::<std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>>>(json).unwrap_err();
/// assert_eq!(windlass_cache::describe_decode_error(json, &error), "data.password: expected a string, found an integer");
/// ```
pub fn describe_decode_error(json: &[u8], error: &serde_json::Error) -> String {
    let Ok(root) = serde_json::from_slice::<Value>(json) else {
        return format!("invalid JSON at line {} column {}", error.line(), error.column());
    };
    // A type whose errors have no position was not read to the end: the problem is the whole value.
    let path = offset(json, error).map(|offset| Path::to_byte(json, offset)).unwrap_or_default();
    let found = path.value_in(&root).unwrap_or(&root);
    let problem = problem(&error.to_string(), found).unwrap_or_else(|| UNKNOWN.to_owned());
    if path.is_root() { problem } else { format!("{path}: {problem}") }
}

/// The problem if the message of the error may contain the value.
const UNKNOWN: &str = "the value is not accepted by its type";

/// Returns the offset of the last byte that was read before the error.
fn offset(json: &[u8], error: &serde_json::Error) -> Option<usize> {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().checked_sub(1)?).map(<[u8]>::len).sum();
    before.checked_add(error.column().checked_sub(1)?)
}

/// The message of `serde_json` for a key that is read as a number and is none.
const NUMERIC_KEY: &str = "invalid value: expected key to be a number in quotes";

/// Words of serde's own messages. These words reveal nothing about a value with the same words.
const COMMON: [&str; 22] = [
    "a", "an", "array", "boolean", "element", "elements", "enum", "fields", "i32", "i64", "integer",
    "length", "map", "number", "of", "one", "or", "sequence", "string", "struct", "u32", "with",
];

/// Describes the problem of a value, if the message of the error repeats no part of the value.
fn problem(message: &str, found: &Value) -> Option<String> {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    if message == NUMERIC_KEY {
        return Some("expected a number as key".to_owned());
    }
    let (known, problem) = match message.split_once(' ')? {
        ("missing", field) => (field, format!("the {field} is missing")),
        ("duplicate", field) => (field, format!("the {field} is given twice")),
        ("invalid", rest) => {
            let (what, found) = rest.split_once([':', ' '])?;
            let (_, expected) = message.rsplit_once(", expected ")?;
            let kind = kind(found.trim_start());
            let found = match what {
                "length" => "another length".to_owned(),
                "value" => format!("{kind} with another value"),
                _ => kind.to_owned(),
            };
            (expected, format!("expected {expected}, found {found}"))
        }
        ("unknown", rest) => {
            let (_, expected) =
                message.rsplit_once(", expected ").or_else(|| message.rsplit_once(", there are "))?;
            let found = if rest.starts_with("field") { "another one" } else { "another string" };
            let what = if rest.starts_with("field") { "the fields " } else { "" };
            (expected, format!("expected {what}{expected}, found {found}"))
        }
        ("data", rest) => {
            let name = rest.strip_prefix("did not match any variant of untagged enum ")?;
            (name, format!("matches no variant of {name}"))
        }
        _ => return None,
    };
    (!shares_word(known, found)).then_some(problem)
}

/// Returns the kind of a value from the words with which serde begins the description of the value.
fn kind(described: &str) -> &'static str {
    match described.split([' ', ',']).next().unwrap_or_default() {
        "boolean" => "a boolean",
        "integer" => "an integer",
        "floating" => "a number with a fraction",
        "string" | "character" => "a string",
        "null" | "unit" | "Option" => "null",
        "sequence" => "an array",
        "map" => "an object",
        _ => "a value of another kind",
    }
}

/// Returns whether a text has a word of a string or a number in `value`, except common words.
fn shares_word(text: &str, value: &Value) -> bool {
    let is_telling = |word: &str| !COMMON.contains(&word);
    let has_word_of = |leaf: &str| {
        words(leaf).filter(|word| is_telling(word)).any(|word| words(text).any(|known| known == word))
    };
    match value {
        Value::String(leaf) => has_word_of(leaf),
        Value::Number(number) => has_word_of(&number.to_string()),
        Value::Array(items) => items.iter().any(|item| shares_word(text, item)),
        Value::Object(members) => members.values().any(|member| shares_word(text, member)),
        Value::Null | Value::Bool(_) => false,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}
