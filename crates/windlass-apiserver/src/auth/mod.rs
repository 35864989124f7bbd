//! Who asks, and what they may do.

mod authenticate;
mod identity;

pub(crate) use authenticate::{Authenticated, Tokens, authenticate, certificate_identity};
pub use identity::Identity;
