//! Admission: defaulting, validation and handlers of raw requests.

mod context;
mod defaulter;
mod handler;
mod review;
mod validator;

#[cfg(test)]
mod tests;

pub use self::{
    context::AdmissionContext,
    defaulter::Defaulter,
    handler::{AdmissionHandler, Patched},
    validator::{AdmissionChange, Validator},
};
pub(crate) use self::{defaulter::defaulting, handler::handling, validator::validating};
pub(crate) use self::{
    handler::Admit,
    review::{review, review_of_error},
};
