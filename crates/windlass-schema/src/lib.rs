//! Kubernetes schemas, and functions that default, prune, validate, merge and decode objects with schemas.
//!
//! A [`Schema`] comes from the `openAPIV3Schema` of a CustomResourceDefinition ([`Schema::compile`]) or from the
//! [`Catalog`] of built-in kinds. The functions take a `&Schema` and a `serde_json::Value`: [`default`], [`prune`],
//! [`validate`], [`strategic_merge`], [`decode_error`]. [`fields`] is the core of server-side apply.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod definitions;
pub mod fields;
mod merge;
mod openapi;
mod restore;
mod structural;
mod zero;

mod compile;
mod prune;
mod typecheck;

mod protobuf;

mod default;
mod validate;

mod catalog;
mod error_list;
mod path;

mod field_error;
mod graph;

mod go;
mod timestamp;

pub use catalog::{
    Catalog, GroupVersion, Gvk, KubernetesVersion, Resource, Subresource, UnknownKubernetesVersion,
};
pub use default::{default, default_missing};
pub use definitions::Definitions;
pub use error_list::{ErrorBudget, ErrorList};
pub use field_error::{FieldError, FieldErrorKind};
pub use go::{decode_base64, go_json, go_quote, go_type, go_value, json_type};
pub use graph::{EmptyPolicy, ListType, NodeRef, PatchMeta, Schema, Type};
pub use merge::{PatchError, strategic_merge};
pub use openapi::{
    CustomKind, ExtensionDocument, discovery_names, openapi_v2, openapi_v2_protobuf, openapi_v3,
    openapi_v3_discovery,
};
pub use protobuf::{DecodeError, EncodeError, ProtobufEncoder, ProtobufList, decode_protobuf};
pub use prune::prune;
pub use restore::restore;
pub use structural::check_structural;
pub use typecheck::{decode_error, metadata_error};
pub use validate::{
    for_each_embedded_resource, knows_format, validate, validate_status, validate_structure, validate_update,
};
pub use windlass_text::{Quantity, QuantityError, Rounding};
pub use zero::zero;
