//! The structs and enums of a group and version, with names that do not clash.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::occurrences::{Identity, Occurrences};
use super::shape::Shape;
use super::shared::Shared;
use crate::definition::{Definition, Version};
use crate::names;

/// Names that the files use otherwise.
const TAKEN: &[&str] = &[
    "BTreeMap",
    "Box",
    "Condition",
    "CustomResource",
    "Debug",
    "Default",
    "Deserialize",
    "IntOrString",
    "JsonSchema",
    "ObjectMeta",
    "Option",
    "Quantity",
    "Result",
    "Serialize",
    "Some",
    "None",
    "Ok",
    "Err",
    "String",
    "Time",
    "Value",
    "Vec",
];

/// The field for all fields that a schema does not name.
pub(super) const OTHER_FIELDS: &str = "other_fields";

/// The types of a group and version.
pub(super) struct Model<'s> {
    pub(super) types: Vec<Type>,
    /// True if a type of several versions is named.
    pub(super) uses_shared: bool,
    shared: &'s mut Shared,
    names: BTreeSet<String>,
    occurrences: Occurrences,
    /// The names of the structs and enums that were declared.
    declared: BTreeMap<Identity, String>,
    /// The kind of the current types.
    kind: String,
}

/// A type to declare.
pub(super) struct Type {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) body: Body,
    /// The schema of a spec or a status, because the limits of a spec or status belong to the type. The
    /// limits of all other types belong to fields.
    pub(super) part: Option<Value>,
}

pub(super) enum Body {
    /// The spec of a kind. If each object has a spec, the derive macro of kube derives the kind from the
    /// spec.
    Spec {
        kind: Box<Kind>,
        fields: Vec<Field>,
        is_open: bool,
    },
    Struct {
        fields: Vec<Field>,
        is_open: bool,
    },
    Enum(Vec<Variant>),
    /// A kind that kube's derive macro cannot make: the fields of the root.
    Object {
        kind: Box<Kind>,
        fields: Vec<Field>,
        is_open: bool,
    },
}

/// The attributes of a kind.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) definition: Definition,
    pub(super) version: Version,
    pub(super) status: Option<String>,
    pub(super) is_default: bool,
    /// True if the derive macro of kube makes the kind: each object has a spec, and no unknown fields at the
    /// root.
    pub(super) is_derived: bool,
}

pub(super) struct Field {
    /// The name in JSON.
    pub(super) name: String,
    pub(super) rust_name: String,
    pub(super) rust_type: String,
    /// True if the field may be absent or null.
    pub(super) optional: bool,
    /// True if the field may not be absent.
    pub(super) required: bool,
    pub(super) doc: String,
    pub(super) schema: Value,
}

pub(super) struct Variant {
    pub(super) value: String,
    pub(super) name: String,
}

impl<'s> Model<'s> {
    /// Makes the types of the kinds of a group and version. Types that several versions have are added to
    /// `shared`.
    pub(super) fn of(kinds: &[(&Definition, &Version)], shared: &'s mut Shared) -> Self {
        let mut model = Self {
            types: Vec::new(),
            uses_shared: false,
            shared,
            // The derive macro declares the name of the kind.
            names: kinds.iter().map(|(definition, _)| definition.spec.names.kind.clone()).collect(),
            occurrences: Occurrences::of(kinds),
            declared: BTreeMap::new(),
            kind: String::new(),
        };
        kinds.iter().for_each(|(definition, version)| model.add(definition, version));
        model
    }

    /// Adds the types of a version of a kind.
    fn add(&mut self, definition: &Definition, version: &Version) {
        self.kind.clone_from(&definition.spec.names.kind);
        let schema = version.open_api_schema();
        if has_usual_fields(schema) {
            self.add_kind(definition, version, schema);
        } else {
            self.add_object(definition, version, schema);
        }
    }

    /// Adds a kind with a spec, and perhaps a status.
    fn add_kind(&mut self, definition: &Definition, version: &Version, schema: &Value) {
        let kind = &definition.spec.names.kind;
        let place = self.types.len();
        let spec_name = self.name(&format!("{kind}Spec"));
        let spec = &schema["properties"]["spec"];
        let fields = self.fields(spec, kind, 1);
        let status = &schema["properties"]["status"];
        let status = (!status.is_null()).then(|| {
            let name = self.name(&format!("{kind}Status"));
            let fields = self.fields(status, &name, 1);
            let body = Body::Struct { fields, is_open: is_open(status) };
            self.types.push(Type { name: name.clone(), doc: doc(status), body, part: Some(status.clone()) });
            name
        });
        let kind = Kind {
            definition: definition.clone(),
            version: version.clone(),
            status,
            is_default: fields.iter().all(Field::has_default),
            is_derived: always_has_spec(schema) && !is_open(schema),
        };
        if !kind.is_derived {
            self.add_root(&kind, &spec_name, schema);
        }
        let documentation = if doc(spec).is_empty() { doc(schema) } else { doc(spec) };
        let body = Body::Spec { kind: Box::new(kind), fields, is_open: is_open(spec) };
        self.types
            .insert(place, Type { name: spec_name, doc: documentation, body, part: Some(spec.clone()) });
    }

    /// Adds the struct of a kind with a spec and perhaps a status, if the derive macro does not make the
    /// struct.
    fn add_root(&mut self, kind: &Kind, spec: &str, schema: &Value) {
        let parts = [("spec", Some(spec)), ("status", kind.status.as_deref())];
        let parts = parts.into_iter().filter_map(|(name, rust_type)| Some((name, rust_type?)));
        let fields = parts.map(|(name, rust_type)| Field {
            name: name.to_owned(),
            rust_name: name.to_owned(),
            rust_type: rust_type.to_owned(),
            optional: name == "status" || !always_has_spec(schema),
            required: is_required(schema, name),
            doc: String::new(),
            // The rules of a part are at the type of the part.
            schema: serde_json::json!({ "nullable": schema["properties"][name]["nullable"] }),
        });
        let body =
            Body::Object { kind: Box::new(kind.clone()), fields: fields.collect(), is_open: is_open(schema) };
        let name = kind.definition.spec.names.kind.clone();
        self.types.push(Type { name, doc: doc(schema), body, part: None });
    }

    /// Adds a kind with other fields than spec and status.
    fn add_object(&mut self, definition: &Definition, version: &Version, schema: &Value) {
        let name = definition.spec.names.kind.clone();
        let place = self.types.len();
        let mut fields = self.fields(schema, &name, 1);
        fields.retain(|field| !matches!(field.name.as_str(), "apiVersion" | "kind" | "metadata"));
        let kind = Kind {
            definition: definition.clone(),
            version: version.clone(),
            status: None,
            is_default: false,
            is_derived: false,
        };
        let body = Body::Object { kind: Box::new(kind), fields, is_open: is_open(schema) };
        self.types.insert(place, Type { name, doc: doc(schema), body, part: None });
    }

    fn fields(&mut self, schema: &Value, owner: &str, depth: usize) -> Vec<Field> {
        let mut taken = BTreeSet::new();
        if is_open(schema) {
            taken.insert(OTHER_FIELDS.to_owned());
        }
        let mut fields = Vec::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let inner = format!("{owner}{}", upper(&names::camel(name)));
            let rust_type = self.rust_type(property, &inner, depth + 1);
            let required = is_required(schema, name);
            fields.push(Field {
                rust_name: unique(&mut taken, &names::snake(name), "_"),
                name: name.clone(),
                rust_type,
                optional: !required || property["nullable"] == true,
                required,
                doc: doc(property),
                schema: property.clone(),
            });
        }
        fields
    }

    /// Returns the Rust type of a schema. Structs and enums are declared under a name that begins with
    /// `name`.
    fn rust_type(&mut self, schema: &Value, name: &str, depth: usize) -> String {
        match Shape::of(schema, depth) {
            Shape::Plain(rust) => rust.to_owned(),
            Shape::Json => "Value".to_owned(),
            Shape::List(items) => format!("Vec<{}>", self.element(items, name, depth)),
            Shape::Map(values) => format!("BTreeMap<String, {}>", self.element(values, name, depth)),
            Shape::Enum(schema) => self.declare(schema, name, |_, _| Body::Enum(variants(schema))),
            Shape::Struct(schema) => self.declare(schema, name, |model, name| {
                let fields = model.fields(schema, name, depth);
                Body::Struct { fields, is_open: is_open(schema) }
            }),
        }
    }

    /// Returns the Rust type of the elements of a list or map.
    fn element(&mut self, schema: &Value, name: &str, depth: usize) -> String {
        let rust_type = self.rust_type(schema, name, depth + 1);
        let takes_null = schema["nullable"] == true && rust_type != "Value";
        if takes_null { format!("Option<{rust_type}>") } else { rust_type }
    }

    /// Returns the name of the type of a schema. Declares the type at the first occurrence of the schema.
    fn declare(&mut self, schema: &Value, path: &str, body: impl FnOnce(&mut Self, &str) -> Body) -> String {
        let identity = Identity::of(schema);
        if self.shared.has(&identity) {
            return self.declare_shared(schema, identity, path, body);
        }
        if let Some(name) = self.declared.get(&identity) {
            return name.clone();
        }
        let name = self.name(self.without_kind(path, &identity).unwrap_or(path));
        self.declared.insert(identity, name.clone());
        let place = self.types.len();
        let body = body(self, &name);
        self.types.insert(place, Type { name: name.clone(), doc: doc(schema), body, part: None });
        name
    }

    /// Declares a type that several versions have.
    fn declare_shared(
        &mut self,
        schema: &Value,
        identity: Identity,
        path: &str,
        body: impl FnOnce(&mut Self, &str) -> Body,
    ) -> String {
        self.uses_shared = true;
        if let Some(name) = self.shared.name_of(&identity) {
            return name.clone();
        }
        let wanted = allowed(self.without_kind(path, &identity).unwrap_or(path));
        let name = numbered(&wanted, "", |name| self.shared.is_free(name));
        self.shared.declare(identity, &name);
        let place = self.shared.types.len();
        let body = body(self, &name);
        self.shared.types.insert(place, Type { name: name.clone(), doc: doc(schema), body, part: None });
        name
    }

    /// Returns the path of a type that several kinds have, without the first kind. Returns `None` if the name
    /// is taken.
    fn without_kind<'p>(&self, path: &'p str, identity: &Identity) -> Option<&'p str> {
        let rest = path.strip_prefix(self.kind.as_str())?;
        let is_used = self.names.contains(rest) || self.shared.uses(rest);
        let is_free = !rest.is_empty() && !is_used && !TAKEN.contains(&rest);
        (self.occurrences.is_shared(identity) && is_free).then_some(rest)
    }

    fn name(&mut self, wanted: &str) -> String {
        let is_free = |name: &str| !self.names.contains(name) && !self.shared.uses(name);
        let name = numbered(&allowed(wanted), "", is_free);
        self.names.insert(name.clone());
        self.shared.reserve(&name);
        name
    }
}

impl Field {
    /// Returns whether the type of the field has an empty default value.
    pub(super) fn has_default(&self) -> bool {
        let plain = ["String", "Quantity", "i32", "i64", "f64", "bool", "Value"];
        self.optional
            || plain.contains(&self.rust_type.as_str())
            || self.rust_type.starts_with("Vec<")
            || self.rust_type.starts_with("BTreeMap<")
    }
}

/// Returns whether the root of a kind has a spec, and no other fields than spec and status.
pub(super) fn has_usual_fields(schema: &Value) -> bool {
    let is_usual =
        |name: &String| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "spec" | "status");
    let spec = &schema["properties"]["spec"];
    let has_spec = spec["properties"].is_object() || spec["type"] == "object";
    has_spec && schema["properties"].as_object().is_some_and(|fields| fields.keys().all(is_usual))
}

/// Returns whether each object of a kind has a spec: the spec is required, or the server adds a default.
fn always_has_spec(schema: &Value) -> bool {
    let spec = &schema["properties"]["spec"];
    (is_required(schema, "spec") || !spec["default"].is_null()) && spec["nullable"] != true
}

fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|name| name == field))
}

/// Returns whether an object may have fields that the schema does not name.
fn is_open(schema: &Value) -> bool {
    let additional = &schema["additionalProperties"];
    schema["x-kubernetes-preserve-unknown-fields"] == true || additional.is_object() || *additional == true
}

fn doc(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().trim().to_owned()
}

fn variants(schema: &Value) -> Vec<Variant> {
    let mut taken = BTreeSet::new();
    let values = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut seen = BTreeSet::new();
    values
        .filter(|value| seen.insert(*value))
        .map(|value| {
            let name = match value {
                "" => "Empty".to_owned(),
                value => upper(&names::camel(
                    &value.replace('*', "-any-").replace('!', "-not-").replace('=', "-equal-"),
                )),
            };
            Variant { value: value.to_owned(), name: unique(&mut taken, &name, "") }
        })
        .collect()
}

/// Returns the first letter in upper case.
fn upper(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

/// Returns the name. If the name is taken, adds a number.
fn unique(taken: &mut BTreeSet<String>, wanted: &str, separator: &str) -> String {
    let name = numbered(wanted, separator, |name| !taken.contains(name));
    taken.insert(name.clone());
    name
}

/// Returns the name with the first number that makes the name free.
fn numbered(wanted: &str, separator: &str, is_free: impl Fn(&str) -> bool) -> String {
    let others = (2..).map(|number: u32| format!("{wanted}{separator}{number}"));
    std::iter::once(wanted.to_owned()).chain(others).find(|name| is_free(name)).unwrap_or_default()
}

/// Returns the name of a type, or a different name if the files use the name otherwise.
fn allowed(wanted: &str) -> String {
    if TAKEN.contains(&wanted) { format!("{wanted}Object") } else { wanted.to_owned() }
}
