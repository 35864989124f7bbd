//! A JSON parser that reports duplicate fields and the positions of fields, with the errors of Go's decoder.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use serde_json::{Map, Number, Value};

/// The deepest nesting. (Go's limit is 10,000; functions here recurse on stacks of two megabytes.)
pub(crate) const MAX_DEPTH: usize = 400;

/// The most duplicate fields that are reported, as in kube-apiserver.
const MAX_DUPLICATES: usize = 100;

/// The length of the paths of all reported duplicates together, in bytes.
const MAX_DUPLICATE_BYTES: usize = 256 * 1024;

/// The memory that the values of a document may take, without the bytes of texts. An object that the real server stores (1.5 MiB) hardly
/// takes more, but a body of 3 MiB may take hundreds of megabytes.
const MAX_MEMORY: usize = 40 << 20;

/// The memory of an object with few members, and of an object that gets defaults.
const OBJECT_MEMORY: usize = 640;

/// The memory of a member of a large object.
const MEMBER_MEMORY: usize = 110;

/// An object with more members is packed. The map of members that arrive in order leaves half of each node empty.
const PACKED: usize = 1_000;

/// The memory of an element of an array.
const ELEMENT_MEMORY: usize = 48;

/// A parsed document.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The value. The last of duplicate fields wins.
    pub(crate) value: Value,
    /// The paths of duplicate fields.
    pub(crate) duplicates: Vec<String>,
}

/// Parses a JSON document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let mut reader = Reader::new(bytes);
    let value = reader.document()?;
    Ok(Parsed { value, duplicates: reader.duplicates })
}

/// Where a text names a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occurrences {
    /// The number of fields before the first occurrence.
    pub(crate) first: Option<usize>,
    /// The number of fields before the second occurrence.
    pub(crate) second: Option<usize>,
}

/// Returns the positions of the fields with these paths in a text, in the order of `paths`.
pub(crate) fn occurrences<'p>(bytes: &[u8], paths: impl IntoIterator<Item = &'p str>) -> Vec<Occurrences> {
    let hashes: Vec<PathHash> = paths.into_iter().map(|path| PathHash::default().then(path)).collect();
    let mut reader = Reader::new(bytes);
    reader.wanted = hashes.iter().map(|hash| (*hash, Occurrences::default())).collect();
    // A malformed text is counted up to the error.
    _ = reader.document();
    hashes.iter().map(|hash| reader.wanted.get(hash).copied().unwrap_or_default()).collect()
}

/// A hash of a path that can be extended, so that a long path is not hashed again for each field below the
/// path. A collision of hashes only changes the order of warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct PathHash(u64);

impl PathHash {
    fn then(self, text: &str) -> Self {
        let step =
            |hash: u64, byte| (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        Self(text.bytes().fold(self.0, step))
    }
}

/// A step of a path.
enum Step {
    /// A member, with the position of the key in the text.
    Key(usize),
    /// An element of an array.
    Index(usize),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// The path of the current position.
    steps: Vec<Step>,
    hash: PathHash,
    duplicates: Vec<String>,
    /// The bytes that are left for the paths of duplicates.
    duplicate_bytes: usize,
    /// The memory that is left for values.
    memory: usize,
    /// The number of fields until now; counted only for wanted fields.
    fields: usize,
    wanted: HashMap<PathHash, Occurrences>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            depth: 0,
            steps: Vec::new(),
            hash: PathHash::default(),
            duplicates: Vec::new(),
            duplicate_bytes: MAX_DUPLICATE_BYTES,
            memory: MAX_MEMORY,
            fields: 0,
            wanted: HashMap::new(),
        }
    }

    /// Counts memory of values.
    fn take_memory(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.memory.checked_sub(bytes);
        self.memory = left.ok_or_else(|| {
            format!(
                "json: the document has too many values: they would take more than {} MiB",
                MAX_MEMORY >> 20
            )
        })?;
        Ok(())
    }

    fn document(&mut self) -> Result<Value, String> {
        let value = self.value()?;
        self.skip_space();
        if self.at < self.bytes.len() {
            return Err(self.unexpected("after top-level value"));
        }
        Ok(value)
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    fn unexpected(&self, context: &str) -> String {
        match self.bytes.get(self.at) {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quote_byte(*byte)),
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        if self.depth == MAX_DEPTH {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut map = Map::new();
        let mut repeated = BTreeSet::new();
        self.take_memory(OBJECT_MEMORY)?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let start = self.at;
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            self.take_memory(MEMBER_MEMORY)?;
            let parent = self.hash;
            self.steps.push(Step::Key(start));
            self.note_field(&key);
            if map.contains_key(&key) && repeated.insert(key.clone()) {
                self.note_duplicate();
            }
            let value = self.value()?;
            self.steps.pop();
            self.hash = parent;
            // Go decodes the type of an object into strings. A null leaves such a string unchanged.
            let is_type = self.steps.is_empty() && matches!(key.as_str(), "kind" | "apiVersion");
            if !(is_type && value.is_null() && map.contains_key(&key)) {
                map.insert(key, value);
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(packed(map)));
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    fn note_field(&mut self, key: &str) {
        if self.wanted.is_empty() {
            return;
        }
        let parent = if self.steps.len() > 1 { self.hash.then(".") } else { self.hash };
        self.hash = parent.then(key);
        if let Some(occurrences) = self.wanted.get_mut(&self.hash) {
            match occurrences.first {
                None => occurrences.first = Some(self.fields),
                Some(_) => _ = occurrences.second.get_or_insert(self.fields),
            }
        }
        self.fields += 1;
    }

    fn note_duplicate(&mut self) {
        if self.duplicates.len() < MAX_DUPLICATES && self.duplicate_bytes > 0 {
            let path = self.path();
            self.duplicate_bytes = self.duplicate_bytes.saturating_sub(path.len());
            self.duplicates.push(path);
        }
    }

    /// Returns the path of the current position.
    fn path(&self) -> String {
        let mut path = String::new();
        for (index, step) in self.steps.iter().enumerate() {
            match step {
                Step::Key(start) => {
                    if index > 0 {
                        path.push('.');
                    }
                    let mut key = Reader::new(self.bytes);
                    key.at = *start;
                    path.push_str(&key.string().unwrap_or_default());
                }
                Step::Index(index) => _ = write!(path, "[{index}]"),
            }
        }
        path
    }

    fn array(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.take_memory(ELEMENT_MEMORY)?;
            let parent = self.hash;
            self.steps.push(Step::Index(items.len()));
            if !self.wanted.is_empty() {
                self.hash = self.hash.then(&format!("[{}]", items.len()));
            }
            items.push(self.value()?);
            self.steps.pop();
            self.hash = parent;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for expected in word.bytes() {
            if self.bytes.get(self.at) != Some(&expected) {
                return Err(self.unexpected(&format!("in literal {word} (expecting '{}')", expected as char)));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        if !self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            return Err(self.unexpected(context));
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        let mut whole = true;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            whole = false;
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = String::from_utf8_lossy(&self.bytes[start..self.at]);
        if whole && let Ok(integer) = text.parse::<i64>() {
            return Ok(Value::Number(integer.into()));
        }
        text.parse::<f64>()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| format!("json: cannot unmarshal number {text} into Go value of type float64"))
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let start = self.at;
        // Most strings need no unescaping: copy such strings as a whole.
        while self.bytes.get(self.at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
            self.at += 1;
        }
        let mut out = self.bytes[start..self.at].to_vec();
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.unexpected("")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match String::from_utf8(out) {
                        Ok(text) => text,
                        Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
                    });
                }
                Some(b'\\') => {
                    self.at += 1;
                    let character = self.escape()?;
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(0..=0x1f) => return Err(self.unexpected("in string literal")),
                Some(byte) => {
                    out.push(*byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let character = match self.bytes.get(self.at) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Result<char, String> {
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first)
            && self.bytes.get(self.at..self.at + 2) == Some(br"\u".as_slice())
        {
            let back = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.bytes.get(self.at).and_then(|byte| (*byte as char).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Packs the members of a large object.
fn packed(map: Map<String, Value>) -> Map<String, Value> {
    if map.len() > PACKED { map.into_iter().collect() } else { map }
}

fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        other => {
            let quoted = windlass_schema::go_quote(&(other as char).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

#[cfg(test)]
mod tests;
