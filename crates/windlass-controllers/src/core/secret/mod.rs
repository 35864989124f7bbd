//! Secrets with tokens of service accounts.

mod service_account_token;

pub(crate) use self::service_account_token::{SignToken, controller as service_account_tokens};
