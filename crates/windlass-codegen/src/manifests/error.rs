//! Contradictions in the declarations of an operator.

use crate::DefinitionError;

/// A contradiction in the declarations of an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The definitions of a kind contradict each other.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The hub of a converter is not the version that is stored.
    #[error(
        "{name} converts through its hub {hub}, but stores {stored}: write `#[kube(storage = true)]` at the type of {hub}, \
         and `#[kube(storage = false)]` at the others"
    )]
    Hub {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// The hub.
        hub: String,
        /// The version that is stored.
        stored: String,
    },
    /// A converter has a version without a definition.
    #[error("the converter of {name} has version {version}, which was not added with `Manager::crd`")]
    Undefined {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// The version.
        version: String,
    },
    /// A definition has a version that the converter does not know.
    #[error(
        "{name} serves version {version}, which its converter does not know: add a spoke for it to the `Converter`"
    )]
    Unconverted {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// The version.
        version: String,
    },
    /// The operator issues a certificate for a service in another namespace.
    #[error(
        "the webhook server issues its certificate for the service {service}, but the operator is deployed to the namespace {namespace}: \
             write `SelfIssued::for_service({namespace:?}, ..)`, or give the other namespace"
    )]
    Service {
        /// The service, with the namespace of the service.
        service: String,
        /// The namespace of the operator.
        namespace: String,
    },
    /// A definition cannot be written as JSON.
    #[error("{0}")]
    Json(String),
}
