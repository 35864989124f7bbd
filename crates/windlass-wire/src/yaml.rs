//! YAML bodies, with the booleans of YAML 1.1, as in kube-apiserver.

mod node;

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Error, Options};

use self::node::Node;
use super::json::{self, MAX_DEPTH};

/// The stack for the nesting of a document: a level takes tens of kilobytes in a debug build. Only used pages
/// of the stack take memory.
const STACK: usize = 64 << 20;

/// The most values of a document, aliases resolved.
const MAX_NODES: usize = 100_000;

/// A parsed document.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The value. The last of duplicate fields wins.
    pub(crate) value: Value,
    /// The errors about duplicate fields.
    pub(crate) duplicates: Vec<String>,
}

fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_documents: 2,
            max_nodes: MAX_NODES,
        },
    }
}

/// Parses a YAML document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let mut parsed = if let Some(value) = as_json(bytes) {
        Parsed { value, duplicates: Vec::new() }
    } else {
        let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
        on_large_stack(|| read(first_document(text)))?
    };
    whole_numbers(&mut parsed.value);
    Ok(parsed)
}

/// Converts floats without a fraction to integers: the real server converts YAML to JSON, writes a float below 1e21 without an exponent,
/// and reads the text as an integer if the text fits into 64 bits.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            // Beyond 2^53, the last digits of the text are zeros. The text is not the float itself.
            let text =
                number.as_f64().filter(|float| float.fract() == 0.0).map(|float| format!("{}", float + 0.0));
            if let Some(whole) = text.and_then(|text| text.parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Cuts off the documents after the first document: kube-apiserver ignores further documents.
fn first_document(text: &str) -> &str {
    let mut end = 0;
    let mut has_content = false;
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix("---");
        let is_separator =
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if has_content && (is_separator || line.trim_end() == "...") {
            return &text[..end];
        }
        let content = if is_separator { rest.unwrap_or_default() } else { line };
        has_content |= !content.trim().is_empty() && !content.trim_start().starts_with(['#', '%']);
        end += line.len();
    }
    text
}

/// Parses a document that is JSON, because most clients send JSON, and JSON is much faster. Returns `None`
/// for other documents, or for a duplicate field, because YAML reports duplicates differently.
fn as_json(bytes: &[u8]) -> Option<Value> {
    bytes
        .trim_ascii_start()
        .starts_with(b"{")
        .then(|| json::parse(bytes).ok())?
        .filter(|parsed| parsed.duplicates.is_empty())
        .map(|parsed| parsed.value)
}

/// Runs deeply recursive work on a separate thread.
fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let done = worker.map_err(|error| format!("yaml: {error}"))?.join();
        done.unwrap_or_else(|_panic| Err("yaml: the document cannot be read".to_owned()))
    })
}

fn read(text: &str) -> Result<Parsed, String> {
    match serde_saphyr::from_str_with_options::<Node>(text, options(DuplicateKeyPolicy::Error)) {
        Ok(Node(value)) => Ok(Parsed { value, duplicates: Vec::new() }),
        Err(Error::DuplicateMappingKey { key, location }) => {
            let Node(value) =
                serde_saphyr::from_str_with_options(text, options(DuplicateKeyPolicy::LastWins))
                    .map_err(|error| explain(&error))?;
            let key = windlass_schema::go_quote(&key.unwrap_or_default());
            let line = location.line();
            let complaint = format!("yaml: unmarshal errors:\n  line {line}: key {key} already set in map");
            Ok(Parsed { value, duplicates: vec![complaint] })
        }
        Err(error) => Err(explain(&error)),
    }
}

fn explain(error: &Error) -> String {
    let line = error.location().map(|location| format!("line {}: ", location.line()));
    let text = error.without_snippet().to_string();
    format!("yaml: {}{text}", line.unwrap_or_default())
}

/// Writes a value as YAML, for `Accept: application/yaml`.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    on_large_stack(|| serde_saphyr::to_string(value).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests;
