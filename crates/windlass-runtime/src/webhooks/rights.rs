//! The rights that self-issued certificates need.

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Secret,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use windlass_webhook::{ConversionDeclaration, SelfIssued};

use crate::permission::{Permission, Verb};

/// Returns the rights to share the Secret and to write the authorities where the webhooks are configured.
pub(super) fn permissions(issued: &SelfIssued, conversions: &[ConversionDeclaration]) -> Vec<Permission> {
    let (namespace, secret) = issued.secret_name();
    let mut needed = vec![
        Permission::to::<Secret>([Verb::Get, Verb::Patch]).named(secret).in_namespace(namespace),
        Permission::to::<Secret>([Verb::Create]).in_namespace(namespace),
        Permission::to::<MutatingWebhookConfiguration>([Verb::List, Verb::Watch, Verb::Patch]),
        Permission::to::<ValidatingWebhookConfiguration>([Verb::List, Verb::Watch, Verb::Patch]),
    ];
    needed.extend(conversions.iter().map(|conversion| {
        Permission::to::<CustomResourceDefinition>([Verb::Get, Verb::Patch]).named(conversion.crd_name())
    }));
    needed
}
