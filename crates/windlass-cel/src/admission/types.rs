//! The types of the variables of admission.

use std::sync::LazyLock;

use crate::types::{DeclaredFields, Type};

static REQUEST: LazyLock<Type> = LazyLock::new(request_type);
static NAMESPACE: LazyLock<Type> = LazyLock::new(namespace_type);

/// Returns the type of the variable `request`.
pub(super) fn request() -> Type {
    REQUEST.clone()
}

/// Returns the type of the variable `namespaceObject`.
pub(super) fn namespace() -> Type {
    NAMESPACE.clone()
}

/// Returns the type of the variable `variables`.
pub(super) fn variables(fields: &DeclaredFields) -> Type {
    Type::declared("kubernetes.variables", fields)
}

/// Returns the type of a field of `variables`, whose expression has the type `output`. Objects lose their types.
pub(super) fn of_variable(output: &Type) -> Type {
    match output {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => output.clone(),
        Type::List(element) => Type::list(of_variable(element)),
        Type::Map(pair) => Type::map(of_variable(&pair.0), of_variable(&pair.1)),
        _ => Type::Dyn,
    }
}

fn object<const N: usize>(name: &str, fields: [(&str, Type); N]) -> Type {
    let declared = DeclaredFields::default();
    for (field, of) in fields {
        declared.insert(field, of);
    }
    Type::declared(name, &declared)
}

fn texts() -> Type {
    Type::list(Type::String)
}

fn text_map() -> Type {
    Type::map(Type::String, Type::String)
}

fn request_type() -> Type {
    let named = |name: &str, field: &str| {
        object(name, [("group", Type::String), ("version", Type::String), (field, Type::String)])
    };
    let kind = named("kubernetes.GroupVersionKind", "kind");
    let resource = named("kubernetes.GroupVersionResource", "resource");
    let user = object(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace_type() -> Type {
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", text_map()),
            ("annotations", text_map()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", texts()),
        ],
    );
    let status = object(
        "kubernetes.NamespaceStatus",
        [("conditions", Type::list(condition)), ("phase", Type::String)],
    );
    let spec = object("kubernetes.NamespaceSpec", [("finalizers", texts())]);
    object("kubernetes.Namespace", [("metadata", metadata), ("spec", spec), ("status", status)])
}
