//! CustomResourceDefinitions.

pub mod custom_resource_definition;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] =
    &[("customresourcedefinitions", &custom_resource_definition::KIND)];
