//! The attribute macro `schema`: controller-gen's markers as attributes.

mod apply;
mod check;
mod escape;
mod marker;
mod parse;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Result, ext::IdentExt as _,
    parse::Parser as _, parse_quote,
};

use self::{
    apply::statements,
    check::check,
    marker::{Effect, Marker},
};
use crate::attributes::{FieldAttributes, TypeAttributes};

/// The name of the attribute.
const NAME: &str = "schema";

/// Replaces the markers of a type and its fields by attributes of schemars.
pub(crate) fn expand(arguments: TokenStream, input: TokenStream) -> Result<TokenStream> {
    let mut input: DeriveInput = syn::parse2(input)?;
    let derives = input.attrs.iter().any(|attribute| attribute.path().is_ident("derive"));
    if !derives {
        return Err(Error::new_spanned(
            &input.ident,
            "write `#[schema]` above `#[derive(…)]`: it adds attributes that `JsonSchema` reads",
        ));
    }
    let mut errors = Errors::default();
    let mut on_type = errors.take(parse::markers.parse2(arguments));
    on_type.extend(errors.take(take_markers(&mut input.attrs)));
    let fields = field_names(&input);
    errors.check(check(&on_type, None, fields.as_deref()));
    let mut transforms = Transforms::new(&input.ident);
    transforms.add(&mut input.attrs, &on_type, fields.as_deref().unwrap_or_default());
    for field in fields_of(&mut input.data) {
        let markers = errors.take(take_markers(&mut field.attrs));
        errors.check(check(&markers, Some(&field.ty), None));
        transforms.add(&mut field.attrs, &markers, &[]);
    }
    errors.end()?;
    let functions = transforms.functions;
    Ok(quote!(#input #functions))
}

/// Returns the type without markers, together with the errors. The compiler therefore reports no errors about
/// uses of the type.
pub(crate) fn with_errors(input: TokenStream, error: &Error) -> TokenStream {
    let errors = error.to_compile_error();
    let Ok(mut input) = syn::parse2::<DeriveInput>(input) else { return errors };
    let own = |attribute: &Attribute| attribute.path().is_ident(NAME);
    input.attrs.retain(|attribute| !own(attribute));
    fields_of(&mut input.data).into_iter().for_each(|field| field.attrs.retain(|attribute| !own(attribute)));
    quote!(#input #errors)
}

/// A field of a struct, with the name in JSON.
pub(crate) struct NamedField {
    pub(crate) ident: String,
    pub(crate) json: String,
    /// The name in CEL; `None` if CEL cannot name the field.
    pub(crate) cel: Option<String>,
}

/// Returns the fields of a struct; `None` for an enum or a tuple.
fn field_names(input: &DeriveInput) -> Option<Vec<NamedField>> {
    let Data::Struct(data) = &input.data else { return None };
    let Fields::Named(fields) = &data.fields else { return None };
    // serde reports wrong attributes.
    let of_type = TypeAttributes::of(&input.attrs).unwrap_or_default();
    let named = |field: &Field| {
        let ident = field.ident.as_ref()?.unraw().to_string();
        let rename = FieldAttributes::of(&field.attrs).unwrap_or_default().rename;
        let json = rename.unwrap_or_else(|| of_type.case.rename(&ident));
        let cel = escape::escape(&json);
        Some(NamedField { ident, json, cel })
    };
    Some(fields.named.iter().filter_map(named).collect())
}

fn fields_of(data: &mut Data) -> Vec<&mut Field> {
    match data {
        Data::Struct(data) => data.fields.iter_mut().collect(),
        Data::Enum(data) => data.variants.iter_mut().flat_map(|variant| variant.fields.iter_mut()).collect(),
        Data::Union(_) => Vec::new(),
    }
}

/// Removes the attributes of this macro, and returns the markers of the attributes.
fn take_markers(attributes: &mut Vec<Attribute>) -> Result<Vec<Marker>> {
    let own = |attribute: &Attribute| attribute.path().is_ident(NAME);
    let mut markers = Vec::new();
    let mut failed: Option<Error> = None;
    for attribute in attributes.iter().filter(|attribute| own(attribute)) {
        match attribute.parse_args_with(parse::markers) {
            Ok(found) => markers.extend(found),
            Err(error) => match &mut failed {
                Some(errors) => errors.combine(error),
                None => failed = Some(error),
            },
        }
    }
    attributes.retain(|attribute| !own(attribute));
    failed.map_or(Ok(markers), Err)
}

/// The functions that carry out the markers, beside the type.
struct Transforms {
    prefix: String,
    count: usize,
    functions: TokenStream,
}

impl Transforms {
    fn new(of_type: &Ident) -> Self {
        Self { prefix: format!("__schema_of_{of_type}"), count: 0, functions: TokenStream::new() }
    }

    /// Adds an attribute that names a function, and the function.
    fn add(&mut self, attributes: &mut Vec<Attribute>, markers: &[Marker], fields: &[NamedField]) {
        if markers.is_empty() {
            return;
        }
        let function = format_ident!("{}_{}", self.prefix, self.count);
        self.count += 1;
        let mut statements = statements(markers, fields, &quote!(schema));
        let is_schemaless = markers.iter().any(|marker| matches!(marker.effect, Effect::Schemaless));
        if is_schemaless && !attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
            // Remove the description of the type together with the rest of the schema.
            statements.extend(quote! { schema.remove("description"); });
        }
        self.functions.extend(quote! {
            #[doc(hidden)]
            #[allow(non_snake_case)]
            fn #function(schema: &mut ::schemars::Schema) {
                let schema = schema.ensure_object();
                #statements
            }
        });
        attributes.push(parse_quote!(#[schemars(transform = #function)]));
    }
}

/// Collects errors, to report all errors at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn take<T>(&mut self, result: Result<Vec<T>>) -> Vec<T> {
        match result {
            Ok(values) => values,
            Err(error) => {
                match &mut self.0 {
                    Some(errors) => errors.combine(error),
                    None => self.0 = Some(error),
                }
                Vec::new()
            }
        }
    }

    fn check(&mut self, result: Result<()>) {
        self.take(result.map(|()| Vec::<Marker>::new()));
    }

    fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
