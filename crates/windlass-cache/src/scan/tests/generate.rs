//! Generates JSON text.

use std::fmt::Write;

use proptest::{prelude::*, sample::select};

/// A value before the serialization.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Literal(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    /// Names may repeat.
    Object(Vec<(String, Json)>),
}

/// Any value.
pub(super) fn value() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::vec((name(), inner), 0..5).prop_map(Json::Object),
        ]
    })
}

/// A value that mostly looks like an object of Kubernetes.
pub(super) fn object() -> impl Strategy<Value = Json> {
    let member = prop_oneof![
        4 => metadata().prop_map(|metadata| ("metadata".to_owned(), metadata)),
        1 => text().prop_map(|text| ("kind".to_owned(), text)),
        4 => (select(vec!["spec", "status", "a"]), value()).prop_map(|(name, value)| (name.to_owned(), value)),
    ];
    prop::collection::vec(member, 1..5).prop_map(Json::Object)
}

fn metadata() -> impl Strategy<Value = Json> {
    let strings = || prop::collection::vec((name(), text()), 0..4).prop_map(Json::Object);
    let owner = prop::collection::vec(
        prop_oneof![
            (select(vec!["apiVersion", "kind", "name", "uid"]), text()),
            (
                select(vec!["controller", "blockOwnerDeletion"]),
                select(vec!["true", "false"]).prop_map(Json::Literal)
            ),
        ]
        .prop_map(|(name, value)| (name.to_owned(), value)),
        0..6,
    );
    let right = prop_oneof![
        6 => Just("name"), 2 => Just("namespace"), 1 => Just("uid"), 1 => Just("resourceVersion"),
        1 => Just("creationTimestamp"), 1 => Just("deletionTimestamp"),
    ]
    .prop_flat_map(|field| text().prop_map(move |text| (field.to_owned(), text)));
    let field = |name: &'static str| move |value| (name.to_owned(), value);
    let member = prop_oneof![
        10 => right,
        2 => strings().prop_map(field("labels")),
        2 => strings().prop_map(field("annotations")),
        2 => prop::collection::vec(owner.prop_map(Json::Object), 0..3).prop_map(Json::Array)
            .prop_map(field("ownerReferences")),
        2 => prop::collection::vec(text(), 0..3).prop_map(Json::Array).prop_map(field("finalizers")),
        1 => any::<i64>().prop_map(|number| Json::Number(number.to_string())).prop_map(field("generation")),
        2 => value().prop_map(field("managedFields")),
        1 => (select(vec!["labels", "name", "generation", "finalizers", "ownerReferences", "annotations", "x"]), value())
            .prop_map(|(name, value)| (name.to_owned(), value)),
    ];
    prop::collection::vec(member, 0..10).prop_map(Json::Object)
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        select(vec!["null", "true", "false"]).prop_map(Json::Literal),
        select(vec!["0", "-0", "1.5", "-1e3", "1E+2", "12345678901234567890123", "1e400", "0.1e-7"])
            .prop_map(|number| Json::Number(number.to_owned())),
        any::<i64>().prop_map(|number| Json::Number(number.to_string())),
        text(),
    ]
}

fn text() -> impl Strategy<Value = Json> {
    prop_oneof![
        4 => "[a-z0-9.-]{0,70}",
        1 => "[0-9a-f]{14,70}",
        1 => "20[0-7][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-7][0-9]:[0-7][0-9]Z",
        1 => any::<String>(),
        1 => "[{}\\[\\]\"\\\\,: ]{0,70}",
    ]
    .prop_map(Json::Text)
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(vec!["a", "b", "c"]).prop_map(str::to_owned), 1 => any::<String>()]
}

/// Serializes a value, with random white space and escapes.
pub(super) fn render(value: &Json, seed: u64) -> String {
    let mut writer = StoreWriter { out: String::new(), random: seed | 1, plain: false };
    writer.value(value);
    writer.space();
    writer.out
}

/// Serializes a value as servers do: without white space and unnecessary escapes.
pub(super) fn compact(value: &Json) -> String {
    let mut writer = StoreWriter { out: String::new(), random: 1, plain: true };
    writer.value(value);
    writer.out
}

/// Returns the same object with some other values: usually an object of the same kind.
pub(super) fn relative(value: &Json, seed: u64) -> Json {
    let mut writer = StoreWriter { out: String::new(), random: seed | 1, plain: false };
    writer.relative(value)
}

struct StoreWriter {
    out: String,
    random: u64,
    /// Serialize without random white space and escapes.
    plain: bool,
}

impl StoreWriter {
    fn relative(&mut self, value: &Json) -> Json {
        match value {
            Json::Literal("true" | "false") if self.chance(3) => Json::Literal("false"),
            Json::Number(_) if self.chance(3) => Json::Number((self.random >> 40).to_string()),
            Json::Text(text) if self.chance(3) => {
                let digit = |this: &mut Self, letter: char| match letter {
                    '0'..='9' if this.chance(4) => char::from(b'0' + (this.random >> 32) as u8 % 10),
                    _ => letter,
                };
                Json::Text(text.chars().map(|letter| digit(self, letter)).collect())
            }
            Json::Text(text) if self.chance(3) => {
                let added = [
                    "",
                    "x",
                    "é",
                    "\\",
                    "\"",
                    "\n",
                    "a much longer text than before, of more than 64 bytes, it is",
                ];
                Json::Text(format!("{text}{}", added[(self.random >> 32) as usize % added.len()]))
            }
            Json::Array(elements) => {
                Json::Array(elements.iter().map(|element| self.relative(element)).collect())
            }
            Json::Object(members) => Json::Object(
                members.iter().map(|(name, member)| (name.clone(), self.relative(member))).collect(),
            ),
            value if self.chance(40) => Json::Array(vec![value.clone()]),
            value => value.clone(),
        }
    }

    fn chance(&mut self, one_in: u64) -> bool {
        if self.plain {
            return false;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.is_multiple_of(one_in)
    }

    fn space(&mut self) {
        while self.chance(6) {
            let space = self.random >> 32 & 3;
            self.out.push([' ', '\n', '\t', '\r'][space as usize]);
        }
    }

    fn value(&mut self, value: &Json) {
        self.space();
        match value {
            Json::Literal(literal) => self.out.push_str(literal),
            Json::Number(number) => self.out.push_str(number),
            Json::Text(text) => self.text(text),
            Json::Array(elements) => {
                self.out.push('[');
                for (number, element) in elements.iter().enumerate() {
                    self.comma(number);
                    self.value(element);
                }
                self.space();
                self.out.push(']');
            }
            Json::Object(members) => {
                self.out.push('{');
                for (number, (name, member)) in members.iter().enumerate() {
                    self.comma(number);
                    self.space();
                    self.text(name);
                    self.space();
                    self.out.push(':');
                    self.value(member);
                }
                self.space();
                self.out.push('}');
            }
        }
    }

    fn comma(&mut self, number: usize) {
        if number > 0 {
            self.space();
            self.out.push(',');
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            if letter < ' ' || matches!(letter, '"' | '\\') || self.chance(12) {
                self.escape(letter);
            } else {
                self.out.push(letter);
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, letter: char) {
        let short = match letter {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            '\n' => Some("\\n"),
            '\t' => Some("\\t"),
            '\r' => Some("\\r"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            _ => None,
        };
        match short {
            Some(short) if self.plain || !self.chance(3) => self.out.push_str(short),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").expect("a string");
                }
            }
        }
    }
}
