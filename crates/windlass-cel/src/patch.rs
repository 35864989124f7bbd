//! The types of patches: `Object`, with a type for each path of fields, and `JSONPatch`.

use std::sync::LazyLock;

use crate::types::{DeclaredFields, Fields, StructType, Type};

/// The name of the type of operations on JSON.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

/// The name of the type of apply configurations.
const OBJECT: &str = "Object";

static OPERATION: LazyLock<Type> = LazyLock::new(|| {
    let fields = DeclaredFields::default();
    for text in ["op", "path", "from"] {
        fields.insert(text, Type::String);
    }
    fields.insert("value", Type::Dyn);
    Type::declared(JSON_PATCH, &fields)
});

/// Returns the type of a patch, by its name.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    if name == JSON_PATCH {
        return Some(operation());
    }
    let is_object = name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    is_object.then(|| Type::Struct(StructType { name: name.into(), fields: Fields::Any }))
}

/// Returns the type of an operation on JSON.
pub(crate) fn operation() -> Type {
    OPERATION.clone()
}

/// Returns the type of an apply configuration.
pub(crate) fn object() -> Type {
    Type::Struct(StructType { name: OBJECT.into(), fields: Fields::Any })
}
