//! The trait of types that can be fields of a derived configuration.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::{
    ByteString,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, MicroTime, ObjectMeta, OwnerReference, Time},
        util::intstr::IntOrString,
    },
};
use serde_json::Value;

use crate::members::Member;

/// A type of fields for `#[derive(ApplyConfiguration)]`: a struct is sent as the struct's configuration, and
/// any other value is sent unchanged.
///
/// A field of another type is a compile-time error with the name of the type:
///
/// ```compile_fail,E0277
/// struct Limits;
///
/// #[derive(windlass_apply::ApplyConfiguration)]
/// #[apply(crate = "windlass_apply")]
/// struct Settings {
///     limits: Limits,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no apply configuration",
    label = "not known to `#[derive(ApplyConfiguration)]`",
    note = "derive `ApplyConfiguration` for `{Self}`, or mark the field `#[apply(atomic)]` to send it as a whole",
    note = "a struct of `k8s_openapi` has a configuration if the feature of its group of `windlass-apply` is enabled"
)]
pub trait ApplyField {
    /// The type in a configuration.
    type Configuration: Member;
}

macro_rules! sent_as_it_is {
    ($($leaf:ty)*) => {$(
        impl ApplyField for $leaf {
            type Configuration = $leaf;
        }
    )*};
}

sent_as_it_is! {
    bool char i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 String Value
    ByteString Condition IntOrString MicroTime ObjectMeta OwnerReference Quantity Time
}

macro_rules! sent_as_inner {
    ($($outer:ident)*) => {$(
        impl<T: ApplyField> ApplyField for $outer<T> {
            type Configuration = T::Configuration;
        }
    )*};
}

sent_as_inner! { Option Box Arc }

impl<T: ApplyField> ApplyField for Vec<T> {
    type Configuration = Vec<T::Configuration>;
}

impl<T: ApplyField> ApplyField for BTreeSet<T> {
    type Configuration = Vec<T::Configuration>;
}

impl<T: ApplyField, S> ApplyField for HashSet<T, S> {
    type Configuration = Vec<T::Configuration>;
}

impl<T: ApplyField> ApplyField for BTreeMap<String, T> {
    type Configuration = BTreeMap<String, T::Configuration>;
}

impl<T: ApplyField, S> ApplyField for HashMap<String, T, S> {
    type Configuration = BTreeMap<String, T::Configuration>;
}
