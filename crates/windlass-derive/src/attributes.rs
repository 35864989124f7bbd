//! The attributes that the macro reads: the attributes of the macro, of serde and of kube.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Error, Ident, LitStr, Meta, Path, Result, Type, spanned::Spanned as _};

use crate::case::Case;

/// The attributes of a type.
#[derive(Default)]
pub(crate) struct TypeAttributes {
    pub(crate) atomic: bool,
    /// The path of `windlass_apply`.
    pub(crate) krate: Option<Path>,
    pub(crate) case: Case,
    /// The content of `#[kube(…)]` or `#[apply(…)]`, for the spec of a custom resource.
    pub(crate) kind: Option<KindAttributes>,
    /// The attribute of serde that changes the JSON of the whole type, if any.
    pub(crate) whole: Option<SerdeAttribute>,
}

/// An attribute of serde.
pub(crate) struct SerdeAttribute {
    pub(crate) name: String,
    pub(crate) span: proc_macro2::Span,
}

/// The kind of a derived spec.
pub(crate) struct KindAttributes {
    /// The name of the struct that kube makes.
    pub(crate) object: Ident,
    pub(crate) namespaced: bool,
    pub(crate) status: Option<Type>,
    /// True if the fields of the spec are at the root.
    pub(crate) no_spec: bool,
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) atomic: bool,
    pub(crate) rename: Option<String>,
    pub(crate) flatten: bool,
    pub(crate) skip: bool,
    /// The attribute of serde that changes the JSON of the field, if any.
    pub(crate) with: Option<SerdeAttribute>,
}

impl TypeAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut of_type = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("apply") {
                attribute.parse_nested_meta(|meta| {
                    if meta.path.is_ident("atomic") {
                        of_type.atomic = true;
                    } else if meta.path.is_ident("crate") {
                        of_type.krate = Some(meta.value()?.parse::<LitStr>()?.parse()?);
                    } else if !["kind", "namespaced", "status"].iter().any(|name| meta.path.is_ident(name)) {
                        return Err(meta.error(
                            "unknown attribute; a type has `atomic` or `crate = \"…\"`, and a spec without `#[kube(…)]` \
                             has `kind = \"…\"`, `namespaced` and `status = \"…\"`",
                        ));
                    } else if meta.input.peek(syn::Token![=]) {
                        meta.value()?.parse::<LitStr>()?;
                    }
                    Ok(())
                })?;
            } else if attribute.path().is_ident("serde") {
                for entry in entries(attribute)? {
                    if ["into", "remote", "tag", "transparent"].contains(&entry.key.as_str()) {
                        of_type.whole = Some(entry.into());
                    } else if entry.key == "rename_all"
                        && let Some(rule) = entry.text()
                    {
                        let case = Case::parse(&rule.value());
                        of_type.case =
                            case.ok_or_else(|| Error::new(rule.span(), "unknown rule of `rename_all`"))?;
                    }
                }
            }
        }
        of_type.kind = KindAttributes::of(attributes, "kube")?.or(KindAttributes::of(attributes, "apply")?);
        Ok(of_type)
    }
}

impl KindAttributes {
    /// Returns the kind that attributes of a name describe, or `None` without such attributes.
    fn of(attributes: &[Attribute], name: &str) -> Result<Option<Self>> {
        let (mut kind, mut object, mut status) = (None, None, None);
        let (mut namespaced, mut no_spec) = (false, false);
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
            for entry in entries(attribute)? {
                match entry.key.as_str() {
                    "kind" => kind = entry.text(),
                    "root" => object = entry.text(),
                    "namespaced" => namespaced = true,
                    "no_spec" => no_spec = true,
                    "status" => status = entry.text().map(|path| path.parse()).transpose()?,
                    _ => {}
                }
            }
        }
        let Some(name) = object.or(kind) else { return Ok(None) };
        Ok(Some(Self { object: name.parse()?, namespaced, status, no_spec }))
    }
}

impl FieldAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut of_field = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("apply") {
                attribute.parse_nested_meta(|meta| {
                    if !meta.path.is_ident("atomic") {
                        return Err(meta.error("unknown attribute; a field has `atomic`"));
                    }
                    of_field.atomic = true;
                    Ok(())
                })?;
            } else if attribute.path().is_ident("serde") {
                entries(attribute)?.into_iter().for_each(|entry| of_field.read_serde(entry));
            }
        }
        Ok(of_field)
    }

    fn read_serde(&mut self, entry: Entry) {
        match entry.key.as_str() {
            "rename" => self.rename = entry.text().map(|name| name.value()).or(self.rename.take()),
            "flatten" => self.flatten = true,
            "skip" | "skip_serializing" => self.skip = true,
            "with" | "serialize_with" => self.with = Some(entry.into()),
            _ => {}
        }
    }
}

/// One entry of an attribute: `key`, `key = value` or `key(…)`.
struct Entry {
    key: String,
    span: proc_macro2::Span,
    value: Vec<TokenTree>,
}

impl From<Entry> for SerdeAttribute {
    fn from(entry: Entry) -> Self {
        Self { name: entry.key, span: entry.span }
    }
}

impl Entry {
    /// Returns the value as a string literal. If serializing and deserializing have different values, the
    /// value for serializing.
    fn text(&self) -> Option<LitStr> {
        match self.value.as_slice() {
            [TokenTree::Punct(equals), value] if equals.as_char() == '=' => {
                syn::parse2(TokenStream::from(value.clone())).ok()
            }
            [TokenTree::Group(directions)] => {
                let mut entries = split(directions.stream()).into_iter();
                entries.find(|entry| entry.key == "serialize").and_then(|entry| entry.text())
            }
            _ => None,
        }
    }
}

/// Returns the entries of an attribute, without reading values that are of no interest here.
fn entries(attribute: &Attribute) -> Result<Vec<Entry>> {
    match &attribute.meta {
        Meta::List(list) => Ok(split(list.tokens.clone())),
        other => Err(Error::new(other.span(), "expected a list of attributes in parentheses")),
    }
}

fn split(tokens: TokenStream) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut current: Option<Entry> = None;
    for token in tokens {
        match (token, &mut current) {
            (TokenTree::Punct(comma), _) if comma.as_char() == ',' => entries.extend(current.take()),
            (token, Some(entry)) => entry.value.push(token),
            (token, None) => {
                current = Some(Entry { key: token.to_string(), span: token.span(), value: Vec::new() });
            }
        }
    }
    entries.extend(current);
    entries
}
