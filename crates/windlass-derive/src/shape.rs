//! The shape of a field, guessed from the name of the field's type: the types of the configuration's field
//! and of the setter.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{GenericArgument, Path, PathArguments, Type, spanned::Spanned as _};

/// The shape of a field.
pub(crate) enum Shape {
    Text,
    /// A number or a truth value.
    Scalar(Type),
    List(Box<Self>),
    Map(Box<Self>),
    Boxed(Box<Self>),
    /// Any other type. The trait gives the type of the configuration.
    Other(Type),
    /// A type that is sent as a whole.
    Atomic(Type),
}

const SCALARS: [&str; 14] =
    ["bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize"];

impl Shape {
    pub(crate) fn of(field: &Type) -> Self {
        let Some((name, arguments)) = last_segment(field) else { return Self::Other(field.clone()) };
        match (name.as_str(), arguments.as_slice()) {
            ("String", []) => Self::Text,
            (name, []) if SCALARS.contains(&name) => Self::Scalar(field.clone()),
            ("Option", [inner]) => Self::of(inner),
            ("Box", [inner]) => Self::Boxed(Box::new(Self::of(inner))),
            ("Vec" | "BTreeSet" | "HashSet", [item]) => Self::List(Box::new(Self::of(item))),
            ("BTreeMap" | "HashMap", [key, value]) if is_string(key) => Self::Map(Box::new(Self::of(value))),
            _ => Self::Other(field.clone()),
        }
    }

    /// Returns a field that is sent as a whole. `Option` is stripped, since every field of a configuration is
    /// optional.
    pub(crate) fn atomic(field: &Type) -> Self {
        match last_segment(field) {
            Some((name, arguments)) if name == "Option" && arguments.len() == 1 => {
                Self::Atomic(arguments[0].clone())
            }
            _ => Self::Atomic(field.clone()),
        }
    }

    /// Returns the type of the field of the configuration, without `Option`.
    pub(crate) fn field_type(&self, krate: &Path) -> TokenStream {
        match self {
            Self::Text => quote!(::std::string::String),
            Self::Scalar(name) | Self::Atomic(name) => quote!(#name),
            Self::List(item) => {
                let item = item.field_type(krate);
                quote!(::std::vec::Vec<#item>)
            }
            Self::Map(value) => {
                let value = value.field_type(krate);
                quote!(::std::collections::BTreeMap<::std::string::String, #value>)
            }
            Self::Boxed(inner) => {
                let inner = inner.field_type(krate);
                quote!(::std::boxed::Box<#inner>)
            }
            Self::Other(name) => quote_spanned!(name.span()=> <#name as #krate::ApplyField>::Configuration),
        }
    }

    /// Returns the type of the argument of the setter.
    pub(crate) fn argument(&self, krate: &Path) -> TokenStream {
        match self {
            Self::Text => quote!(impl ::core::convert::Into<::std::string::String>),
            Self::Scalar(name) | Self::Atomic(name) => quote!(#name),
            Self::List(item) => {
                let item = item.argument(krate);
                quote!(impl ::core::iter::IntoIterator<Item = #item>)
            }
            Self::Map(value) => {
                let value = value.argument(krate);
                quote!(impl ::core::iter::IntoIterator<
                    Item = (impl ::core::convert::Into<::std::string::String>, #value),
                >)
            }
            Self::Boxed(inner) => inner.argument(krate),
            Self::Other(_) => {
                let configuration = self.field_type(krate);
                quote!(impl #krate::IntoLeaf<#configuration>)
            }
        }
    }

    /// Returns the statement that sets a field to the argument `value`. The field is a place of type
    /// `Option`.
    pub(crate) fn assignment(&self, place: &TokenStream, krate: &Path) -> TokenStream {
        let converted = self.converted(krate);
        match self {
            Self::List(_) | Self::Map(_) => {
                let holder = self.field_type(krate);
                quote! {
                    let values: #holder = #converted;
                    #place.get_or_insert_default().extend(values);
                }
            }
            _ => quote!(#place = ::core::option::Option::Some(#converted);),
        }
    }

    /// Returns the expression that converts the argument `value`.
    fn converted(&self, krate: &Path) -> TokenStream {
        match self {
            Self::Text => quote!(value.into()),
            Self::Scalar(_) | Self::Atomic(_) => quote!(value),
            Self::List(item) => {
                let item = item.converted(krate);
                quote!(::core::iter::IntoIterator::into_iter(value).map(|value| #item).collect())
            }
            Self::Map(item) => {
                let item = item.converted(krate);
                quote!(::core::iter::IntoIterator::into_iter(value).map(|(key, value)| (key.into(), #item)).collect())
            }
            Self::Boxed(inner) => {
                let inner = inner.converted(krate);
                quote!(::std::boxed::Box::new(#inner))
            }
            Self::Other(_) => quote!(#krate::IntoLeaf::into_leaf(value)),
        }
    }
}

/// Returns the last segment of the path of a type, with the type arguments.
fn last_segment(of: &Type) -> Option<(String, Vec<Type>)> {
    let Type::Path(path) = of else { return None };
    let segment = path.path.segments.last().filter(|_| path.qself.is_none())?;
    let arguments = match &segment.arguments {
        PathArguments::None => Vec::new(),
        PathArguments::AngleBracketed(list) => list
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(of) => Some(of.clone()),
                _ => None,
            })
            .collect(),
        PathArguments::Parenthesized(_) => return None,
    };
    Some((segment.ident.to_string(), arguments))
}

fn is_string(of: &Type) -> bool {
    last_segment(of).is_some_and(|(name, _)| name == "String")
}
