//! Requests for certificates.

pub(crate) mod certificate_signing_request;
