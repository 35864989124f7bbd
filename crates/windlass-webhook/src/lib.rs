//! Admission and conversion webhooks of an operator.
//!
//! - [`Defaulter`], [`Validator`], [`AdmissionHandler`], [`Converter`]: the user's code.
//! - [`Webhooks`]: all webhooks, with declarations ([`AdmissionWebhook`]), as functions from bytes to bytes
//!   ([`Dispatcher`]).
//! - [`WebhookServer`]: the HTTPS server of the webhooks.
//! - [`certificates`]: from files, or self-issued by the operator.
//! - [`manifests`]: the configurations that tell the API server about the webhooks.
//!
//! The crate knows no client of the API server: writes are returned as data, and the runtime sends the
//! writes.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
pub mod manifests;
mod probe;
mod server;

mod webhooks;

mod conversion;
mod declaration;

mod admission;

mod call;
mod decode;
mod denial;
mod json;
mod metrics;

pub mod certificates;

pub use kube_core::{
    admission::{AdmissionRequest, AdmissionResponse, Operation},
    response::{Status, StatusCause, StatusDetails},
};

pub use self::{
    admission::{AdmissionChange, AdmissionContext, AdmissionHandler, Defaulter, Patched, Validator},
    conversion::{Converter, Spoke},
    declaration::{
        AdmissionDeclaration, AdmissionKind, AdmissionWebhook, ConversionDeclaration, FailurePolicy,
        MatchPolicy, ReinvocationPolicy, Rule, SideEffects,
    },
    denial::{AdmissionDenial, BoxError, FieldError},
    metrics::WebhookMetrics,
    probe::{Admission, AdmissionResult},
    server::{
        CertificateSource, DEFAULT_PORT, SelfIssued, ServerDefaults, ServerError, WebhookListener,
        WebhookServer, server_config,
    },
    webhooks::{DeclarationError, Dispatcher, Reply, Request, Webhooks},
};
