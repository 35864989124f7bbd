//! Errors about stored objects that a conversion webhook does not convert. The real server cannot decode the bytes
//! of etcd then.

use super::Call;
use crate::store::Stored;
use crate::wire::ApiError;

/// Returns the error of a write that reads the stored object first.
pub(super) fn before_write(stored: &Stored, error: &ApiError) -> ApiError {
    ApiError::unexplained(explain(stored, error))
}

/// Returns the error of a read of the object that the request names.
pub(super) fn at_read(call: &Call<'_>, stored: &Stored, error: &ApiError) -> ApiError {
    let key = call.resource.registry_key(&call.key());
    ApiError::internal(format_args!(
        "StorageError: corrupt object, Code: 7, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: {}",
        key.trim_start_matches("/registry"),
        explain(stored, error)
    ))
}

fn explain(stored: &Stored, error: &ApiError) -> String {
    format!("object not decodable revision={}: {}", stored.rv, error.status().message)
}
