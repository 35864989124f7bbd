//! Impersonation (`kubectl --as`), which this server refuses.

use http::HeaderMap;

use crate::wire::{ApiError, GroupResource};

const USER: &str = "impersonate-user";

/// Refuses a request that asks to be run as another user: it would run with the rights of the caller instead.
///
/// # Errors
/// 403 if there is a header `Impersonate-User`, `Impersonate-Group`, `Impersonate-Uid` or `Impersonate-Extra-…`.
pub(crate) fn refuse_impersonation(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(header) = headers.keys().map(http::HeaderName::as_str).find(|name| impersonates(name)) else {
        return Ok(());
    };
    let user = headers.get(USER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let users = if user.is_empty() { GroupResource::default() } else { GroupResource::new("", "users") };
    let why = format!("this server does not support impersonation yet, remove the header {header} (--as)");
    Err(ApiError::forbidden(&users, user, why))
}

fn impersonates(header: &str) -> bool {
    matches!(header, USER | "impersonate-group" | "impersonate-uid")
        || header.starts_with("impersonate-extra-")
}
