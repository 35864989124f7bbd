//! JSON with members in insertion order, as in the responses of a server.

use std::fmt::Write;

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Text(String),
    /// A number, a boolean or null.
    Literal(String),
    Array(Vec<Json>),
    Object(Object),
}

/// The members of a JSON object.
#[derive(Clone, Debug, Default)]
pub(super) struct Object(Vec<(String, Json)>);

impl Object {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a member.
    pub(super) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a member, if there is a value.
    pub(super) fn with_some(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(super) fn push(&mut self, name: &str, value: impl Into<Json>) {
        self.0.push((name.to_owned(), value.into()));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        self.0.iter_mut().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Replaces or adds a member.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Json>) {
        match self.get_mut(name) {
            Some(old) => *old = value.into(),
            None => self.push(name, value),
        }
    }

    /// Adds all members of another object.
    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns an object of texts.
pub(super) fn texts<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Object {
    members.into_iter().fold(Object::new(), |object, (name, value)| object.with(name, value))
}

impl Json {
    pub(super) fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(super) fn as_array_mut(&mut self) -> Option<&mut Vec<Self>> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// Appends the compact JSON. Without `values`, strings, numbers and booleans are left out: the structure.
    pub(super) fn write(&self, out: &mut String, values: bool) {
        match self {
            Self::Text(_) | Self::Literal(_) if !values => out.push('.'),
            Self::Text(text) => write_text(out, text),
            Self::Literal(literal) => out.push_str(literal),
            Self::Array(elements) => {
                out.push('[');
                for (number, element) in elements.iter().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    element.write(out, values);
                }
                out.push(']');
            }
            Self::Object(Object(members)) => {
                out.push('{');
                for (number, (name, value)) in members.iter().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    write_text(out, name);
                    out.push(':');
                    value.write(out, values);
                }
                out.push('}');
            }
        }
    }

    /// Returns the fields of the value in the format of `fieldsV1`.
    pub(super) fn fields(&self) -> Object {
        match self {
            Self::Object(Object(members)) => members.iter().fold(Object::new(), |fields, (name, value)| {
                fields.with(&format!("f:{name}"), value.fields())
            }),
            Self::Array(elements) => elements
                .iter()
                .filter_map(element_fields)
                .fold(Object::new().with(".", Object::new()), |fields, (name, element)| {
                    fields.with(&name, element)
                }),
            Self::Text(_) | Self::Literal(_) => Object::new(),
        }
    }
}

/// The merge keys of lists of objects.
const KEYS: [&[&str]; 6] = [
    &["containerPort", "protocol"],
    &["mountPath"],
    &["topologyKey", "whenUnsatisfiable"],
    &["uid"],
    &["name"],
    &["type"],
];

/// Returns the fields of an element of a list that is merged by keys.
fn element_fields(element: &Json) -> Option<(String, Object)> {
    let Json::Object(members) = element else { return None };
    let keys = KEYS.iter().find(|keys| keys.iter().all(|key| members.get(key).is_some()))?;
    let mut name = "k:{".to_owned();
    for (number, key) in keys.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let value = members.get(key)?;
        let quote = if matches!(value, Json::Text(_)) { "\"" } else { "" };
        let _ = write!(name, "{comma}\"{key}\":{quote}{}{quote}", value.text()?);
    }
    name.push('}');
    let Object(fields) = element.fields();
    let mut all = Object::new().with(".", Object::new());
    all.0.extend(fields);
    Some((name, all))
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
    out.push('"');
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Literal(number.to_string())
    }
}

impl From<bool> for Json {
    fn from(truth: bool) -> Self {
        Self::Literal(truth.to_string())
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(elements: Vec<T>) -> Self {
        Self::Array(elements.into_iter().map(Into::into).collect())
    }
}
