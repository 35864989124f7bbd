//! Authentication and authorisation.

mod authenticate;
mod authorize;
mod identity;
mod impersonate;
mod reviews;
mod service_account;

pub(crate) use authenticate::{
    Authenticated, ClientAuth, ListenerTokens, Tokens, authenticate, certificate_identity,
};
pub(crate) use authorize::{Attributes, authorize};
pub use identity::Identity;
pub(crate) use impersonate::refuse_impersonation;
pub(crate) use reviews::Reviewer;
pub(crate) use service_account::{Claims, Issuer};
