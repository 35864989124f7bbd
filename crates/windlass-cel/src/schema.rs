//! Schemas of objects: which types the fields have, and how large values can be.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::escape::{escape, reserved};
use crate::types::{Fields, StructType, Type};

/// The size of the largest request, in bytes.
pub const MAX_REQUEST: u64 = 3 << 20;

/// A schema: the type of values, and bounds for their sizes.
#[derive(Debug)]
pub struct Schema {
    pub(crate) form: Form,
    pub(crate) nullable: bool,
    /// The number of characters, bytes, elements or entries that a value has at most.
    pub(crate) max_elements: u64,
    /// The size of the smallest value in JSON, in bytes.
    pub(crate) min_size: u64,
}

/// How values are checked and converted.
#[derive(Debug)]
pub(crate) enum Form {
    /// Fields by name, in the order of the names.
    Object(Vec<Field>),
    Map(Arc<Schema>),
    List {
        items: Arc<Schema>,
        kind: ListKind,
    },
    IntOrString,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    Bool,
    Double,
    Int,
    /// Any value, which an expression can only compare.
    Preserved,
    /// A schema whose values have no type in expressions.
    Unknown(String),
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    /// The name in expressions. Without one, expressions cannot select the field.
    pub(crate) escaped: Option<Box<str>>,
    pub(crate) schema: Arc<Schema>,
}

/// The value of `x-kubernetes-list-type`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    /// A list with these fields as the keys of elements.
    Map(Vec<Box<str>>),
}

impl Schema {
    /// Compiles the OpenAPI schema of a structural definition. `is_resource` adds `apiVersion`, `kind` and `metadata`,
    /// as the root of a custom resource and embedded resources have these fields.
    pub fn compile(schema: &Json, is_resource: bool) -> Arc<Self> {
        Arc::new(compile(Props(schema.as_object()), is_resource))
    }

    /// Returns whether values have a type in expressions.
    pub fn has_type(&self) -> bool {
        match &self.form {
            Form::Preserved | Form::Unknown(_) => false,
            Form::Map(values) => values.has_type(),
            Form::List { items, .. } => items.has_type(),
            _ => true,
        }
    }

    /// Returns the number of times that a value of the schema can occur in the largest request.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST / (self.min_size + 1)
    }

    /// Returns the schema of a field, by the name of the field in JSON.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let Form::Object(fields) = &self.form else { return None };
        let at = fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some(&fields[at])
    }

    /// Returns a member of an object of this schema, and the schema of the member.
    pub(crate) fn member<'a>(
        &'a self,
        members: &'a Map<String, Json>,
        name: &str,
    ) -> Option<(&'a Json, &'a Self)> {
        let member = members.get(name)?;
        match &self.form {
            Form::Map(values) => Some((member, &**values)),
            _ if member.is_null() => None,
            _ => Some((member, &*self.field(name)?.schema)),
        }
    }

    /// Returns the schema of a member of an object, by the name of the member in JSON.
    pub(crate) fn schema_of_member(&self, name: &str) -> Option<&Self> {
        match &self.form {
            Form::Map(values) => Some(values),
            _ => self.field(name).map(|field| &*field.schema),
        }
    }

    /// Returns the schema of a field, by the name of the field in expressions.
    pub(crate) fn escaped_field(&self, name: &str) -> Option<&Field> {
        let Form::Object(fields) = &self.form else { return None };
        let found = |name: &str| fields.iter().find(|field| field.escaped.as_deref() == Some(name));
        let field = found(name).or_else(|| found(&reserved(name)?))?;
        field.schema.has_type().then_some(field)
    }

    /// Returns the type of values, whose objects get names below `name`.
    pub(crate) fn cel_type(self: &Arc<Self>, name: &str) -> Type {
        match &self.form {
            Form::Object(_) => {
                Type::Struct(StructType { name: name.into(), fields: Fields::Schema(Arc::clone(self)) })
            }
            Form::Map(values) => Type::map(Type::String, values.cel_type(&format!("{name}.@elem"))),
            Form::List { items, .. } => Type::list(items.cel_type(&format!("{name}.@idx"))),
            Form::String => Type::String,
            Form::Bytes => Type::Bytes,
            Form::Duration => Type::Duration,
            Form::Date | Form::DateTime => Type::Timestamp,
            Form::Bool => Type::Bool,
            Form::Double => Type::Double,
            Form::Int => Type::Int,
            Form::IntOrString | Form::Preserved | Form::Unknown(_) => Type::Dyn,
        }
    }
}

/// The keywords of a schema.
#[derive(Clone, Copy)]
struct Props<'a>(Option<&'a Map<String, Json>>);

impl<'a> Props<'a> {
    fn get(self, name: &str) -> Option<&'a Json> {
        self.0.and_then(|members| members.get(name))
    }

    fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Json::as_str).unwrap_or_default()
    }

    fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Json::as_bool).unwrap_or_default()
    }

    fn count(self, name: &str) -> Option<u64> {
        self.get(name).and_then(Json::as_i64).map(|count| count.max(0) as u64)
    }

    fn schema(self, name: &str) -> Option<Props<'a>> {
        self.get(name).and_then(Json::as_object).map(|members| Props(Some(members)))
    }

    fn is_embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    fn compile(self) -> Arc<Schema> {
        Arc::new(compile(self, self.is_embedded()))
    }
}

fn compile(schema: Props<'_>, is_resource: bool) -> Schema {
    let (form, max_elements, min_size) = form_of(schema, is_resource);
    Schema { form, nullable: schema.flag("nullable"), max_elements, min_size }
}

/// Returns the form of values, the largest number of elements, and the size of the smallest value.
fn form_of(schema: Props<'_>, is_resource: bool) -> (Form, u64, u64) {
    if schema.flag("x-kubernetes-int-or-string") {
        let max = schema.count("maxLength").map_or(MAX_REQUEST - 2, |length| length * 4);
        return (Form::IntOrString, max, 1);
    }
    match schema.text("type") {
        "array" => list(schema),
        "object" => object(schema, is_resource),
        "string" => string(schema),
        "boolean" => (Form::Bool, 0, 4),
        "number" => (Form::Double, 0, 1),
        "integer" => (Form::Int, 0, 1),
        _ if schema.flag("x-kubernetes-preserve-unknown-fields") => (Form::Preserved, 0, 1),
        other => (Form::Unknown(other.to_owned()), 0, 1),
    }
}

fn list(schema: Props<'_>) -> (Form, u64, u64) {
    let Some(items) = schema.schema("items") else { return (Form::Unknown("array".to_owned()), 0, 2) };
    let items = items.compile();
    let max = schema.count("maxItems").unwrap_or((MAX_REQUEST - 2) / (items.min_size + 1));
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
    let kind = match schema.text("x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => ListKind::Map(keys.into_iter().flatten().filter_map(Json::as_str).map(Into::into).collect()),
        _ => ListKind::Atomic,
    };
    (Form::List { items, kind }, max, 2)
}

fn object(schema: Props<'_>, is_resource: bool) -> (Form, u64, u64) {
    if let Some(values) = schema.schema("additionalProperties") {
        let values = values.compile();
        let max = schema.count("maxProperties").unwrap_or((MAX_REQUEST - 2) / (values.min_size + 6));
        return (Form::Map(values), max, 2);
    }
    let required: HashSet<&str> = schema
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let mut fields = Vec::new();
    let mut min_size = 2;
    let properties = schema.get("properties").and_then(Json::as_object);
    // A schema that does not describe a resource completely gets all three fields anew.
    let replaced = is_resource && !is_complete(schema);
    for (name, property) in properties.into_iter().flatten() {
        if replaced && RESOURCE_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let property = Props(property.as_object());
        let compiled = property.compile();
        let has_default = property.get("default").is_some_and(|value| !value.is_null());
        if required.contains(name.as_str()) && !has_default && compiled.has_type() {
            min_size += name.len() as u64 + compiled.min_size + 4;
        }
        fields.push(Field {
            name: name.as_str().into(),
            escaped: escape(name).map(Into::into),
            schema: compiled,
        });
    }
    if replaced {
        for name in RESOURCE_FIELDS {
            let compiled = if name == "metadata" { metadata(schema) } else { plain_string() };
            if required.contains(name) {
                min_size += name.len() as u64 + compiled.min_size + 4;
            }
            fields.push(Field { name: name.into(), escaped: Some(name.into()), schema: compiled });
        }
    }
    fields.sort_by(|one, other| one.name.cmp(&other.name));
    (Form::Object(fields), 0, min_size)
}

/// The schema of the keys of maps, which have no size in estimates.
static KEY: Schema = Schema { form: Form::String, nullable: false, max_elements: 0, min_size: 2 };

/// The longest name of an object.
const LONGEST_NAME: u64 = 253;

/// The fields that every resource has.
const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns whether a schema has the fields of a resource that expressions can see.
fn is_complete(schema: Props<'_>) -> bool {
    let Some(properties) = schema.schema("properties") else { return false };
    let has_type = |object: Props<'_>, name: &str, kind: &str| {
        object.schema(name).is_some_and(|property| property.text("type") == kind)
    };
    let metadata = properties.schema("metadata").and_then(|metadata| metadata.schema("properties"));
    has_type(properties, "kind", "string")
        && has_type(properties, "apiVersion", "string")
        && has_type(properties, "metadata", "object")
        && metadata.is_some_and(|metadata| {
            has_type(metadata, "name", "string") && has_type(metadata, "generateName", "string")
        })
}

/// Returns the schema of `metadata` of a resource: only `name` and `generateName`, which are as long as the name of a
/// subdomain, or as the schema of the resource says.
fn metadata(resource: Props<'_>) -> Arc<Schema> {
    let described = ["properties", "metadata", "properties"];
    let described = described.into_iter().try_fold(resource, Props::schema);
    let field = |name: &str, longest: u64| {
        let described = described.and_then(|properties| properties.schema(name));
        let length =
            described.and_then(|property| property.count("maxLength")).unwrap_or(longest).min(longest);
        let schema = Schema { form: Form::String, nullable: false, max_elements: length * 4, min_size: 2 };
        Field { name: name.into(), escaped: Some(name.into()), schema: Arc::new(schema) }
    };
    // The server adds at least a letter to `generateName`.
    let form = Form::Object(vec![field("generateName", LONGEST_NAME - 1), field("name", LONGEST_NAME)]);
    Arc::new(Schema { form, nullable: false, max_elements: 0, min_size: 2 })
}

fn plain_string() -> Arc<Schema> {
    let max_elements = MAX_REQUEST - 2;
    Arc::new(Schema { form: Form::String, nullable: false, max_elements, min_size: 2 })
}

fn string(schema: Props<'_>) -> (Form, u64, u64) {
    match schema.text("format") {
        "byte" => (Form::Bytes, schema.count("maxLength").unwrap_or(MAX_REQUEST - 2), 2),
        "duration" => (Form::Duration, 32, 3),
        "date" => (Form::Date, 12, 12),
        "date-time" => (Form::DateTime, 32, 21),
        _ => {
            let values = schema.get("enum").and_then(Json::as_array).filter(|values| !values.is_empty());
            let longest = || values.map(|values| values.iter().filter_map(Json::as_str).map(str::len).max());
            let max = match schema.count("maxLength") {
                Some(length) => length * 4,
                None => longest().map_or(MAX_REQUEST - 2, |longest| longest.unwrap_or(0) as u64),
            };
            (Form::String, max, 2)
        }
    }
}

impl Schema {
    /// Returns the schema of a field, or of the items, keys or values.
    pub(crate) fn part(&self, name: &str) -> Option<&Self> {
        match (&self.form, name) {
            (Form::List { items, .. }, "@items") => Some(items),
            (Form::Map(values), "@values") => Some(values),
            (Form::Map(_), "@keys") => Some(&KEY),
            (Form::Object(_), name) => self.escaped_field(name).map(|field| &*field.schema),
            _ => None,
        }
    }

    /// Returns the schema of the items, or of the values of a map.
    pub(crate) fn shared_part(&self, name: &str) -> Option<Arc<Self>> {
        match (&self.form, name) {
            (Form::List { items, .. }, "@items") => Some(Arc::clone(items)),
            (Form::Map(values), "@values") => Some(Arc::clone(values)),
            _ => None,
        }
    }

    /// Returns whether values are objects with fields.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self.form, Form::Object(_))
    }

    /// Returns whether the value is an object or a map.
    pub(crate) fn has_members(&self) -> bool {
        matches!(self.form, Form::Object(_) | Form::Map(_))
    }
}
