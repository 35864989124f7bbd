//! Errors about stored objects that a conversion webhook does not convert. The real server cannot decode the bytes
//! of etcd then.

use super::Call;
use crate::meta;
use crate::resource::Unconverted;
use crate::store::Stored;
use crate::wire::ApiError;

/// Returns the error of a write that reads the stored object first.
pub(super) fn before_write(stored: &Stored, error: &ApiError) -> ApiError {
    ApiError::unexplained(explain(stored, error))
}

/// Returns the error of a read of the object that the request names.
pub(super) fn at_read(call: &Call<'_>, stored: &Stored, error: &ApiError) -> ApiError {
    let key = call.resource.registry_key(&call.key());
    ApiError::internal(corrupt(key.trim_start_matches("/registry"), stored, error))
}

/// Returns the error of a list, which names each object.
pub(super) fn at_list(call: &Call<'_>, objects: &[Unconverted]) -> ApiError {
    let failures = objects.iter().map(|Unconverted { object, error }| {
        let value = object.value();
        let (namespace, name) = (meta::text(&value, "namespace"), meta::text(&value, "name"));
        let key = call.resource.registry_key(&call.resource.key(namespace, name));
        let why = corrupt(&key, object, error);
        (key, why)
    });
    ApiError::unreadable_list(&call.resource.group_resource(), failures.collect())
}

fn corrupt(key: &str, stored: &Stored, error: &ApiError) -> String {
    let why = explain(stored, error);
    format!(
        "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    )
}

fn explain(stored: &Stored, error: &ApiError) -> String {
    format!("object not decodable revision={}: {}", stored.rv, error.status().message)
}
