//! Types of expressions.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::schema::Schema;

/// The type of an expression.
#[derive(Clone, Debug)]
pub enum Type {
    /// The type of a node with an issue.
    Error,
    /// Any type; known only when the expression is evaluated.
    Dyn,
    /// Any type, of a value with the declared type `google.protobuf.Any`. Messages name the type `any`.
    Any,
    /// The null type.
    Null,
    /// A boolean.
    Bool,
    /// A signed integer with 64 bits.
    Int,
    /// An unsigned integer with 64 bits.
    Uint,
    /// A floating-point number with 64 bits.
    Double,
    /// A text.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A length of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A list, with the type of its elements.
    List(Arc<Type>),
    /// A map, with the types of its keys and values.
    Map(Arc<(Type, Type)>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// A type of a library, such as `net.IP`.
    Opaque(&'static str),
    /// A type of a library that is declared as an object, such as `kubernetes.Quantity`.
    Object(&'static str),
    /// An object with fields.
    Struct(StructType),
    /// The type of a type.
    Type(Arc<Type>),
    /// A type parameter of a declaration.
    Parameter(&'static str),
    /// A type that the checker has yet to find.
    Variable(u32),
}

/// An object with fields, by its name.
#[derive(Clone, Debug)]
pub struct StructType {
    /// The name in messages, such as `selfType.spec`.
    pub(crate) name: Arc<str>,
    pub(crate) fields: Fields,
}

/// The fields of an object.
#[derive(Clone, Debug)]
pub(crate) enum Fields {
    /// The fields of a schema.
    Schema(Arc<Schema>),
    /// Fields that a program declares.
    Declared(DeclaredFields),
    /// Any field, of any type.
    Any,
}

/// The fields of an object that a program declares. Clones share the fields, and see fields that are declared later.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeclaredFields(Arc<RwLock<HashMap<Box<str>, Type>>>);

impl DeclaredFields {
    /// Declares a field.
    pub(crate) fn insert(&self, name: &str, of: Type) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), of);
    }

    fn get(&self, name: &str) -> Option<Type> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns the names of the fields.
    fn names(&self) -> Vec<Box<str>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl StructType {
    /// Returns the type of a field, by the name of the field in expressions.
    pub(crate) fn field(&self, name: &str) -> Option<Type> {
        match &self.fields {
            Fields::Schema(schema) => {
                let field = schema.escaped_field(name)?;
                Some(field.schema.cel_type(&format!("{}.{name}", self.name)))
            }
            Fields::Declared(fields) => fields.get(name),
            Fields::Any => Some(Type::Dyn),
        }
    }
}

/// A kind of types, which ignores parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeKind {
    Error,
    Dyn,
    Null,
    Scalar,
    List,
    Map,
    Opaque,
    Struct,
    Type,
    Parameter,
}

impl Type {
    /// Returns the type of a list.
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    /// Returns the type of a map.
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// Returns the type of a value that may be absent.
    pub fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// Returns the type of values of a schema, whose objects get names below `name`.
    pub fn of_schema(schema: &Arc<Schema>, name: &str) -> Self {
        schema.cel_type(name)
    }

    /// Returns the type of an object with fields of these names and types.
    pub(crate) fn declared(name: &str, fields: &DeclaredFields) -> Self {
        Self::Struct(StructType { name: name.into(), fields: Fields::Declared(fields.clone()) })
    }

    /// Returns the names of the fields that a program has declared until now; none for any other type.
    pub(crate) fn declared_fields(&self) -> Vec<Box<str>> {
        match self {
            Self::Struct(StructType { fields: Fields::Declared(fields), .. }) => fields.names(),
            _ => Vec::new(),
        }
    }

    /// Returns the name with parameters, as Go prints a type: `list(google.protobuf.Duration)`.
    pub(crate) fn go_name(&self) -> String {
        let parameters: Vec<String> = self.parameters().into_iter().map(Self::go_name).collect();
        if parameters.is_empty() {
            self.name()
        } else {
            format!("{}({})", self.name(), parameters.join(", "))
        }
    }

    pub(crate) fn kind(&self) -> TypeKind {
        match self {
            Self::Error => TypeKind::Error,
            Self::Dyn | Self::Any => TypeKind::Dyn,
            Self::Null => TypeKind::Null,
            Self::List(_) => TypeKind::List,
            Self::Map(_) => TypeKind::Map,
            Self::Optional(_) | Self::Opaque(_) => TypeKind::Opaque,
            Self::Object(_) | Self::Struct(_) => TypeKind::Struct,
            Self::Type(_) => TypeKind::Type,
            Self::Parameter(_) | Self::Variable(_) => TypeKind::Parameter,
            _ => TypeKind::Scalar,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Error)
    }

    /// Returns whether values of the type have a constant size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Returns the name of the type, without parameters.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            Self::Error => "error",
            Self::Dyn => "dyn",
            Self::Any => "google.protobuf.Any",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Opaque(name) | Self::Object(name) | Self::Parameter(name) => name,
            Self::Struct(object) => return object.name.to_string(),
            Self::Type(_) => "type",
            Self::Variable(index) => return format!("_var{index}"),
        };
        name.to_owned()
    }

    /// Returns the parameters of the type.
    pub(crate) fn parameters(&self) -> Vec<&Self> {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Type(inner) => vec![inner],
            Self::Map(pair) => vec![&pair.0, &pair.1],
            _ => Vec::new(),
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b))
            | (Self::Optional(a), Self::Optional(b))
            | (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b))
            | (Self::Object(a), Self::Object(b))
            | (Self::Parameter(a), Self::Parameter(b)) => a == b,
            (Self::Struct(a), Self::Struct(b)) => a.name == b.name,
            (Self::Variable(a), Self::Variable(b)) => a == b,
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other) && self.parameters().is_empty()
            }
        }
    }
}

impl Eq for Type {}

/// Writes the type as messages of the checker have it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Any => f.write_str("any"),
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            _ => {
                f.write_str(&self.name())?;
                let parameters: Vec<String> = self.parameters().iter().map(ToString::to_string).collect();
                if parameters.is_empty() { Ok(()) } else { write!(f, "({})", parameters.join(", ")) }
            }
        }
    }
}
