//! Values of expressions. A value of JSON borrows the JSON.

mod compare;
mod convert;
mod display;
mod encode;
mod json;
mod list;
mod map;
mod message;
mod text;
mod time;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::library::authorizer::Check;
use crate::library::named_format::NamedFormat;
use crate::library::network::Cidr;
use crate::library::quantities::Amount;
use crate::library::semver::Version;
use crate::library::url::Url;
use crate::types::Type;

pub(crate) use compare::{compare, equal, merge};
pub(crate) use convert::{Target, convert, type_of};
pub(crate) use display::go_display;
pub use encode::{Encoder, Numbers};
pub use list::List;
pub use map::{Entries, Key, Map};
pub use message::{Message, NameCheck};
pub use text::Text;
pub use time::{Timestamp, duration_from_text};
pub(crate) use time::{duration_text, worded_duration, zone_offset};

pub(crate) use json::of_schema;

/// A value of an expression.
#[derive(Clone)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(Text<'a>),
    /// A sequence of bytes.
    Bytes(Arc<[u8]>),
    /// A length of time, in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map, or an object.
    Map(Map<'a>),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'a>>>),
    /// A type.
    Type(TypeName),
    /// A value of a library.
    Library(Library<'a>),
}

/// A value of a type of a library.
#[derive(Clone)]
pub enum Library<'a> {
    /// An IP address.
    Ip(Arc<IpAddr>),
    /// A range of IP addresses.
    Cidr(Arc<Cidr>),
    /// A URL.
    Url(Arc<Url>),
    /// An amount of a resource.
    Quantity(Arc<Amount>),
    /// A semantic version.
    Semver(Arc<Version>),
    /// A format of texts.
    Format(&'static NamedFormat),
    /// A question to the authorizer, or its answer.
    Check(Arc<Check>),
    /// JSON without type information in the schema.
    Preserved(&'a serde_json::Value),
    /// An object that the evaluation made, such as `Object.spec{…}`.
    Message(Arc<Message<'a>>),
    /// The variable whose fields are the results of other expressions, with the names of the fields.
    Composition(Arc<Vec<Box<str>>>),
}

/// The name of a type, as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName(pub(crate) Arc<str>);

impl TypeName {
    pub(crate) fn of(known: &Type) -> Self {
        Self(known.name().into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a> Value<'a> {
    /// Returns the value of a JSON value without a schema: numbers are integers or floating-point numbers, as written.
    pub fn from_json(json: &'a serde_json::Value) -> Self {
        json::dynamic(json)
    }

    /// Returns the value of a JSON value that has a schema.
    pub fn with_schema(
        json: &'a serde_json::Value,
        schema: &'a crate::schema::Schema,
    ) -> Result<Self, crate::error::Error> {
        of_schema(json, schema)
    }

    /// Returns a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::String(Text::owned(text.into()))
    }

    /// Returns a type, by its name.
    pub fn type_named(name: &str) -> Self {
        Self::Type(TypeName(name.into()))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Returns the name of the type of the value.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Library(value) => value.type_name(),
        }
    }

    /// Returns the size of the value in costs: characters, bytes, elements or entries; 1 for other values.
    pub(crate) fn size(&self) -> u64 {
        self.counted_size().unwrap_or(1)
    }

    /// Returns the number of characters, bytes, elements or entries.
    pub(crate) fn counted_size(&self) -> Option<u64> {
        Some(match self {
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Library(Library::Ip(ip)) => ip_size(**ip),
            Self::Library(Library::Cidr(cidr)) => u64::from(cidr.bits.div_ceil(8)),
            _ => return None,
        })
    }

    /// Returns whether the value is the zero value of the type.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Duration(nanos) => *nanos == 0,
            Self::Timestamp(at) => at.is_zero(),
            Self::List(list) => list.is_plain() && list.is_empty(),
            Self::Map(map) => map.is_plain() && map.is_empty(),
            _ => false,
        }
    }

    /// Returns the value if it is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// Returns the text if the value is a text.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }
}

fn ip_size(ip: IpAddr) -> u64 {
    if ip.is_ipv4() { 4 } else { 16 }
}

impl Library<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Check(check) => check.type_name(),
            Self::Preserved(_) => "unknown",
            Self::Message(message) => message.kind(),
            Self::Composition(_) => "kubernetes.variables",
        }
    }
}

/// Writes the value as Go prints it, for messages.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&go_display(self))
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.type_name())
    }
}
