//! The output of `#[derive(ApplyConfiguration)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, Path, Result, Visibility, ext::IdentExt as _, parse_quote,
    spanned::Spanned as _,
};

use crate::{
    attributes::{FieldAttributes, KindAttributes, TypeAttributes},
    shape::Shape,
};

/// Setters that every configuration of a kind has. Setters of the spec with these names are left out.
const TAKEN: [&str; 9] = [
    "annotation",
    "annotations",
    "finalizer",
    "label",
    "labels",
    "metadata",
    "spec",
    "status",
    "owner_references",
];

/// A field of a configuration.
struct Field {
    ident: Ident,
    docs: Vec<Attribute>,
    /// The name in JSON; `None` for a flattened field.
    name: Option<String>,
    shape: Shape,
}

/// The common input of all parts of the output.
struct Output<'a> {
    krate: &'a Path,
    visibility: &'a Visibility,
    /// The type that is derived for.
    of: &'a Ident,
    configuration: Ident,
    fields: &'a [Field],
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = TypeAttributes::of(&input.attrs)?;
    let krate = attributes.krate.clone().unwrap_or_else(|| parse_quote!(::windlass::apply));
    if !input.generics.params.is_empty() {
        return Err(Error::new(
            input.generics.span(),
            "`ApplyConfiguration` supports no generic types; use a type for each",
        ));
    }
    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) if !attributes.atomic => named,
            _ => return Ok(atomic(&input.ident, &krate)),
        },
        Data::Enum(_) => return Ok(atomic(&input.ident, &krate)),
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span, "a union has no fields to apply"));
        }
    };
    if let Some(whole) = &attributes.whole {
        let message = format!(
            "`{}` is not supported by `ApplyConfiguration`, which would send something else; write `#[apply(atomic)]` to send \
             the type as a whole",
            whole.name
        );
        return Err(Error::new(whole.span, message));
    }
    let mut fields = Vec::new();
    for field in &named.named {
        let of_field = FieldAttributes::of(&field.attrs)?;
        if let Some(with) = &of_field.with {
            let message = format!(
                "`{}` is not supported by `ApplyConfiguration`, which would send something else; give the type of the field a \
                 `Serialize` of its own",
                with.name
            );
            return Err(Error::new(with.span, message));
        }
        let Some(ident) = field.ident.clone().filter(|_| !of_field.skip) else { continue };
        let name = of_field.rename.unwrap_or_else(|| attributes.case.rename(&ident.unraw().to_string()));
        fields.push(Field {
            docs: field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect(),
            shape: if of_field.atomic { Shape::atomic(&field.ty) } else { Shape::of(&field.ty) },
            name: (!of_field.flatten).then_some(name),
            ident,
        });
    }
    let output = Output {
        krate: &krate,
        visibility: &input.vis,
        of: &input.ident,
        configuration: format_ident!("{}ApplyConfiguration", input.ident),
        fields: &fields,
    };
    let part = output.part();
    let kind = attributes.kind.map(|kind| output.kind(&kind));
    Ok(quote!(#part #kind))
}

/// Returns the implementation for a type that is sent unchanged.
fn atomic(of: &Ident, krate: &Path) -> TokenStream {
    quote! {
        impl #krate::ApplyField for #of {
            type Configuration = Self;
        }

        impl #krate::__private::Member for #of {
            fn to_json(&self) -> #krate::__private::serde_json::Result<#krate::__private::serde_json::Value> {
                #krate::__private::serde_json::to_value(self)
            }
        }
    }
}

impl Output<'_> {
    /// Returns the configuration of the type.
    fn part(&self) -> TokenStream {
        let Self { krate, visibility, of, configuration, fields } = self;
        let doc = format!("The fields to apply of a [`{of}`]. [`{of}::apply`] makes an empty configuration.");
        let apply_doc = format!("Makes an empty configuration of a [`{of}`], for server-side apply.");
        let declared = fields.iter().map(|field| {
            let (ident, docs, kind) = (&field.ident, &field.docs, field.shape.field_type(krate));
            let docs = if docs.is_empty() { default_docs(field) } else { quote!(#(#docs)*) };
            quote!(#docs pub #ident: ::core::option::Option<#kind>,)
        });
        let setters = fields.iter().map(|field| {
            let ident = &field.ident;
            self.setter(field, &quote!(self.#ident))
        });
        let members = fields.iter().map(|field| {
            let ident = &field.ident;
            match (&field.name, &field.shape) {
                (Some(name), Shape::Atomic(_)) => quote!(to.set_atomic(#name, &self.#ident);),
                (Some(name), _) => quote!(to.set(#name, &self.#ident);),
                (None, _) => quote!(to.flatten(&self.#ident);),
            }
        });
        quote! {
            #[doc = #doc]
            #[derive(::core::clone::Clone, ::core::default::Default)]
            #[must_use]
            #visibility struct #configuration {
                #(#declared)*
            }

            #krate::__configuration!(#configuration of #of);

            impl #of {
                #[doc = #apply_doc]
                #visibility fn apply() -> #configuration {
                    ::core::default::Default::default()
                }
            }

            #[allow(dead_code)]
            impl #configuration {
                #(#setters)*
            }

            impl #krate::__private::Configuration for #configuration {
                #[allow(unused_variables)]
                fn members(&self, to: &mut #krate::__private::Members) {
                    #(#members)*
                }
            }
        }
    }

    /// Returns the setter of a field. The field is at `place`.
    fn setter(&self, field: &Field, place: &TokenStream) -> TokenStream {
        let (ident, docs) = (&field.ident, &field.docs);
        let docs = if docs.is_empty() { default_docs(field) } else { quote!(#(#docs)*) };
        let (argument, assignment) =
            (field.shape.argument(self.krate), field.shape.assignment(place, self.krate));
        quote! {
            #docs
            pub fn #ident(mut self, value: #argument) -> Self {
                #assignment
                self
            }
        }
    }

    /// Returns the configuration of a kind. The type is the spec of the kind.
    fn kind(&self, kind: &KindAttributes) -> TokenStream {
        let (krate, visibility, spec) = (self.krate, self.visibility, &self.configuration);
        let object = &kind.object;
        let configuration = format_ident!("{object}ApplyConfiguration");
        let doc = format!(
            "The fields to apply of a [`{object}`]. [`{object}::apply`] makes an empty configuration."
        );
        let spec_member =
            if kind.no_spec { quote!(to.flatten(&self.spec);) } else { quote!(to.set("spec", &self.spec);) };
        let setters = self.fields.iter().filter(|field| !TAKEN.contains(&field.ident.to_string().as_str()));
        let setters = setters.map(|field| {
            let ident = &field.ident;
            self.setter(field, &quote!(self.spec.get_or_insert_default().#ident))
        });
        let status = kind.status.as_ref().map(|status| StatusParts::of(status, krate));
        let (status_field, status_setter, status_member) =
            status.map_or_else(Default::default, |parts| (parts.field, parts.setter, parts.member));
        let (arguments, namespace) = if kind.namespaced {
            (
                quote!(name: impl ::core::convert::Into<::std::string::String>, namespace: impl ::core::convert::Into<::std::string::String>),
                Some(quote!(metadata.namespace = ::core::option::Option::Some(namespace.into());)),
            )
        } else {
            (quote!(name: impl ::core::convert::Into<::std::string::String>), None)
        };
        let apply_doc =
            format!("Makes a configuration of the `{object}` of this name, for server-side apply.");
        quote! {
            #[doc = #doc]
            #[derive(::core::clone::Clone, ::core::default::Default)]
            #[must_use]
            #visibility struct #configuration {
                /// Name, namespace, labels and other metadata.
                pub metadata: #krate::__private::kube_core::ObjectMeta,
                /// The desired state.
                pub spec: ::core::option::Option<::std::boxed::Box<#spec>>,
                #status_field
            }

            #krate::__configuration!(#configuration of #object);
            #krate::__kind!(#configuration of #object);

            impl #object {
                #[doc = #apply_doc]
                #visibility fn apply(#arguments) -> #configuration {
                    let mut metadata = #krate::__private::kube_core::ObjectMeta::default();
                    metadata.name = ::core::option::Option::Some(name.into());
                    #namespace
                    #configuration { metadata, ..::core::default::Default::default() }
                }
            }

            #[allow(dead_code)]
            impl #configuration {
                /// Sets the whole spec.
                pub fn spec(mut self, value: #spec) -> Self {
                    self.spec = ::core::option::Option::Some(::std::boxed::Box::new(value));
                    self
                }

                #status_setter
                #(#setters)*
            }

            impl #krate::__private::Configuration for #configuration {
                fn members(&self, to: &mut #krate::__private::Members) {
                    to.set_object(
                        &<#object as #krate::__private::kube_core::Resource>::api_version(&()),
                        &<#object as #krate::__private::kube_core::Resource>::kind(&()),
                        &self.metadata,
                    );
                    #spec_member
                    #status_member
                }
            }
        }
    }
}

/// The parts of a kind's configuration for the status.
struct StatusParts {
    field: TokenStream,
    setter: TokenStream,
    member: TokenStream,
}

impl StatusParts {
    fn of(status: &syn::Type, krate: &Path) -> Self {
        let configuration = quote_spanned!(status.span()=> <#status as #krate::ApplyField>::Configuration);
        Self {
            field: quote! {
                /// The observed state.
                pub status: ::core::option::Option<#configuration>,
            },
            setter: quote! {
                /// Sets the whole status. `apply_status` sends the status.
                pub fn status(mut self, value: #configuration) -> Self {
                    self.status = ::core::option::Option::Some(value);
                    self
                }
            },
            member: quote!(to.set("status", &self.status);),
        }
    }
}

fn default_docs(field: &Field) -> TokenStream {
    let doc = match &field.name {
        Some(name) => format!("`{name}`."),
        None => format!("The fields of `{}`.", field.ident.unraw()),
    };
    quote!(#[doc = #doc])
}
