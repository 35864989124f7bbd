//! The content of a field, and the Rust types of the field and of the setter.

use serde_json::Value;

use super::model::Module;
use super::names::snake;

/// The content of a field.
pub(super) enum Shape {
    Text,
    /// A type of Rust, such as `i32`.
    Plain(&'static str),
    /// Any JSON.
    Json,
    /// A type of `k8s_openapi` that values are converted into.
    Leaf(&'static str),
    /// A struct with a configuration, by the name of the definition.
    Struct(String),
    List(Box<Self>),
    Map(Box<Self>),
}

impl Shape {
    pub(super) fn of(schema: &Value) -> Self {
        if let Some(definition) = schema["$ref"].as_str() {
            return Self::of_definition(definition);
        }
        match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("array"), _) => Self::List(Box::new(Self::of(&schema["items"]))),
            (Some("object"), _) if schema["additionalProperties"].is_object() => {
                Self::Map(Box::new(Self::of(&schema["additionalProperties"])))
            }
            (Some("string"), Some("byte")) => Self::Leaf("ByteString"),
            (Some("string"), _) => Self::Text,
            (Some("integer"), Some("int32")) => Self::Plain("i32"),
            (Some("integer"), _) => Self::Plain("i64"),
            (Some("number"), _) => Self::Plain("f64"),
            (Some("boolean"), _) => Self::Plain("bool"),
            _ => Self::Json,
        }
    }

    fn of_definition(definition: &str) -> Self {
        match definition.rsplit('.').next().unwrap_or_default() {
            "ObjectMeta" => Self::Plain("ObjectMeta"),
            "Condition" if definition.contains("meta.v1") => Self::Plain("Condition"),
            "Time" => Self::Leaf("Time"),
            "MicroTime" => Self::Leaf("MicroTime"),
            "Quantity" => Self::Leaf("Quantity"),
            "IntOrString" => Self::Leaf("IntOrString"),
            "FieldsV1" | "RawExtension" | "JSON" => Self::Json,
            name if name.starts_with("JSONSchemaPropsOr") => Self::Json,
            _ => Self::Struct(definition.to_owned()),
        }
    }

    /// Returns the definition in the field, for a struct or a list or map of structs.
    pub(super) fn definition(&self) -> Option<&str> {
        match self {
            Self::Struct(definition) => Some(definition),
            Self::List(inner) | Self::Map(inner) => inner.definition(),
            _ => None,
        }
    }

    /// Returns the type of the field, without `Option`.
    pub(super) fn field_type(&self, module: &Module) -> String {
        match self {
            Self::Struct(_) => format!("Box<{}>", self.item_type(module)),
            _ => self.item_type(module),
        }
    }

    fn item_type(&self, module: &Module) -> String {
        match self {
            Self::Text => "String".to_owned(),
            Self::Plain(name) | Self::Leaf(name) => (*name).to_owned(),
            Self::Json => "Value".to_owned(),
            Self::Struct(definition) => module.configuration(definition),
            Self::List(inner) => format!("Vec<{}>", inner.item_type(module)),
            Self::Map(inner) => format!("BTreeMap<String, {}>", inner.item_type(module)),
        }
    }

    /// Returns the type of the argument of the setter.
    pub(super) fn argument(&self, module: &Module) -> String {
        match self {
            Self::Text => "impl Into<String>".to_owned(),
            Self::Plain(name) => (*name).to_owned(),
            Self::Json => "impl Into<Value>".to_owned(),
            Self::Leaf(name) => format!("impl IntoLeaf<{name}>"),
            Self::Struct(_) => self.item_type(module),
            Self::List(inner) => format!("impl IntoIterator<Item = {}>", inner.argument(module)),
            Self::Map(inner) => {
                format!("impl IntoIterator<Item = (impl Into<String>, {})>", inner.argument(module))
            }
        }
    }

    /// Describes the field in words: the type, and the merge rule of apply.
    pub(super) fn describe(&self, schema: &Value) -> String {
        let texts = |name: &str| -> Vec<String> {
            let values = schema[name].as_array().into_iter().flatten();
            values.filter_map(Value::as_str).map(|text| format!("`{text}`")).collect()
        };
        let kind = match self {
            Self::Text => "string".to_owned(),
            Self::Plain(name) | Self::Leaf(name) => format!("`{name}`"),
            Self::Json => "JSON".to_owned(),
            Self::Struct(definition) => format!("`{}`", last(definition)),
            Self::List(inner) => {
                let inner = inner.describe(&schema["items"]);
                match schema["x-kubernetes-list-type"].as_str() {
                    Some("map") => {
                        let keys = texts("x-kubernetes-list-map-keys").join(" and ");
                        format!("list of {inner}, merged by {keys}")
                    }
                    Some("set") => format!("set of {inner}"),
                    _ => format!("list of {inner}, owned as a whole"),
                }
            }
            Self::Map(inner) => format!("map of {}", inner.describe(&schema["additionalProperties"])),
        };
        match texts("enum") {
            values if values.is_empty() => kind,
            values => format!("{kind}, one of {}", values.join(", ")),
        }
    }
}

/// Returns the last part of the name of a definition.
pub(super) fn last(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

/// Returns the function that makes a configuration.
pub(super) fn function(definition: &str) -> String {
    snake(last(definition))
}
