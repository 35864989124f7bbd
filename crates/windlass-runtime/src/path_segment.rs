//! Names of objects and namespaces as segments of request paths.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The encoded characters. Go's `url.URL` encodes the same characters in a path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// A text that cannot be the name of an object or a namespace in a request path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be a name: a name is not empty, `.` or `..`, and has no `/` or `%`")]
pub struct InvalidName {
    name: String,
}

/// Returns the name of an object or a namespace as a segment of a request path, percent-encoded as in client-go. No name reaches the path of
/// a second object, a subresource or a query, even if a stranger chose the name.
///
/// ```
/// use windlass_runtime::client::path_segment;
///
/// assert_eq!(path_segment("system:node").as_deref(), Ok("system:node"));
/// assert_eq!(path_segment("a?b#c").as_deref(), Ok("a%3Fb%23c"));
/// assert!(path_segment("../secrets").is_err());
/// ```
///
/// # Errors
/// The name is empty, `.` or `..`, or contains `/` or `%`: Kubernetes allows no such name.
pub fn path_segment(name: &str) -> Result<Cow<'_, str>, InvalidName> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '%']) {
        return Err(InvalidName { name: name.to_owned() });
    }
    Ok(utf8_percent_encode(name, ENCODED).into())
}

/// Returns the name that a segment of a request path stands for.
pub(crate) fn segment_name(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8_lossy()
}
