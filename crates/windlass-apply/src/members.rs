//! The serialization of a configuration to JSON. The code is not generic over the serializer, and is
//! therefore compiled once instead of in every crate with configurations.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    ByteString,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, MicroTime, ObjectMeta, OwnerReference, Time},
        util::intstr::IntOrString,
    },
};
use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Value};

/// A struct of optional members.
pub trait Configuration {
    /// Adds the members that are set.
    fn members(&self, to: &mut Members);
}

/// A value of a member.
pub trait Member {
    /// Converts the value to JSON.
    fn to_json(&self) -> serde_json::Result<Value>;
}

/// The members of a configuration that are set.
#[derive(Default)]
pub struct Members {
    members: Map<String, Value>,
    /// The first failure. Types of this crate do not fail; a type of a user may.
    error: Option<serde_json::Error>,
}

impl Members {
    /// Adds a member that is set.
    pub fn set<T: Member>(&mut self, name: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.put(name, value.to_json());
        }
    }

    /// Adds a member of any serializable type that is set.
    pub fn set_atomic<T: Serialize>(&mut self, name: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.put(name, serde_json::to_value(value));
        }
    }

    /// Adds the API version, kind and metadata of an object.
    pub fn set_object(&mut self, api_version: &str, kind: &str, metadata: &ObjectMeta) {
        self.put("apiVersion", Ok(api_version.into()));
        self.put("kind", Ok(kind.into()));
        self.put("metadata", metadata.to_json());
    }

    /// Adds the members of another configuration, like serde's `flatten`.
    pub fn flatten<T: Member>(&mut self, value: &Option<T>) {
        match value.as_ref().map(Member::to_json) {
            None => {}
            Some(Ok(Value::Object(members))) => self.members.extend(members),
            Some(Ok(_)) => {
                self.error
                    .get_or_insert_with(|| serde_json::Error::custom("only a struct or map is flattened"));
            }
            Some(Err(error)) => drop(self.error.get_or_insert(error)),
        }
    }

    /// Returns the members as an object.
    pub fn into_json(self) -> serde_json::Result<Value> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(Value::Object(self.members)),
        }
    }

    fn put(&mut self, name: &str, value: serde_json::Result<Value>) {
        match value {
            Ok(value) => drop(self.members.insert(name.to_owned(), value)),
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }
}

/// Serializes the JSON of a configuration.
pub fn serialize<S: Serializer>(json: serde_json::Result<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    json.map_err(S::Error::custom)?.serialize(serializer)
}

/// Prints the JSON of a configuration.
pub fn debug(json: serde_json::Result<Value>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match json {
        Ok(value) if f.alternate() => write!(f, "{value:#}"),
        Ok(value) => write!(f, "{value}"),
        Err(error) => write!(f, "{error}"),
    }
}

/// Returns whether two configurations send the same JSON.
pub fn equal(one: serde_json::Result<Value>, other: serde_json::Result<Value>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

macro_rules! serialized {
    ($($leaf:ty)*) => {$(
        impl Member for $leaf {
            fn to_json(&self) -> serde_json::Result<Value> {
                serde_json::to_value(self)
            }
        }
    )*};
}

serialized! {
    bool char i8 i16 i32 i64 isize u8 u16 u32 u64 usize f64 String Value
    ByteString Condition IntOrString MicroTime ObjectMeta OwnerReference Quantity Time
}

impl Member for f32 {
    fn to_json(&self) -> serde_json::Result<Value> {
        // The conversion to `f64` would add digits: 0.1 would become 0.10000000149011612.
        let shortest: f64 = self.to_string().parse().map_err(serde_json::Error::custom)?;
        Ok(shortest.into())
    }
}

impl<T: Member> Member for Box<T> {
    fn to_json(&self) -> serde_json::Result<Value> {
        T::to_json(self)
    }
}

impl<T: Member> Member for Vec<T> {
    fn to_json(&self) -> serde_json::Result<Value> {
        self.iter().map(Member::to_json).collect()
    }
}

impl<T: Member> Member for BTreeMap<String, T> {
    fn to_json(&self) -> serde_json::Result<Value> {
        self.iter().map(|(key, value)| Ok((key.clone(), value.to_json()?))).collect()
    }
}

/// Converts the texts of a list.
#[allow(dead_code, reason = "the rows of some features use the function")]
pub(crate) fn texts(list: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    list.into_iter().map(Into::into).collect()
}
