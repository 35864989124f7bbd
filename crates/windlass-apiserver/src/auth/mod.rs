//! Authentication and authorisation.

mod authenticate;
mod impersonate;
mod issuer;
mod legacy_token;
mod service_account;
pub(crate) mod subprotocol;
mod token_keys;

mod reviews;

pub(crate) use authenticate::{
    Authenticated, AuthenticationResult, ClientAuth, ListenerTokens, Tokens, authenticate, certificate_user,
};
pub(crate) use impersonate::Impersonation;
pub(crate) use issuer::{ISSUER, Issuer, Verified};
pub(crate) use legacy_token::{LAST_USED, LegacyClaims, day};
pub(crate) use reviews::{Authentication, Reviewer};
pub(crate) use service_account::{Claims, Reference};
pub use windlass_store::Identity;
pub(crate) use windlass_store::{Attributes, Authorizer, Rule};

pub use token_keys::{TokenKeyError, TokenKeys};
