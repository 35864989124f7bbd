//! Certificate signing requests.

mod certificate_signing_request;
mod subject;

pub use self::subject::{attributes, organizations};
use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] =
    &[("certificatesigningrequests", &certificate_signing_request::KIND)];
