//! Checks of markers: wrong types, contradictions and duplicates.

use syn::{Error, GenericArgument, PathArguments, Result, Type};

use super::{
    NamedField,
    marker::{Effect, Marker},
};

/// The type of a value in a schema, guessed from the name of the Rust type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Number,
    Text,
    List,
    Map,
    Bool,
    Unknown,
}

impl Class {
    fn named(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Bool => "a bool",
            Self::Unknown => "a type that is not known here",
        }
    }

    /// Returns the class of values that a keyword applies to.
    fn of_keyword(keyword: &str) -> Self {
        match keyword {
            "maximum" | "minimum" | "multipleOf" | "exclusiveMaximum" | "exclusiveMinimum" => Self::Number,
            "maxLength" | "minLength" | "pattern" => Self::Text,
            "maxItems" | "minItems" | "x-kubernetes-list-type" | "x-kubernetes-list-map-keys" => Self::List,
            "maxProperties" | "minProperties" => Self::Map,
            _ => Self::Unknown,
        }
    }
}

/// Checks the markers of a field or, if there is no field, of a type. `fields` are the fields of a struct.
pub(super) fn check(markers: &[Marker], field: Option<&Type>, fields: Option<&[NamedField]>) -> Result<()> {
    let (class, item) = field.map_or((Class::Unknown, None), class_of);
    let mut errors: Option<Error> = None;
    let mut add = |error: Error| match &mut errors {
        Some(errors) => errors.combine(error),
        None => errors = Some(error),
    };
    for (index, marker) in markers.iter().enumerate() {
        let error = |message: String| Error::new(marker.span, message);
        if let Some(message) = wrong(marker, markers, index, class) {
            add(error(message));
        }
        match &marker.effect {
            Effect::OneOf { fields: named, .. } => {
                let Some(fields) = fields else {
                    add(error(format!("`{}` is for structs with named fields", marker.name)));
                    continue;
                };
                for ident in named {
                    match fields.iter().find(|field| *ident == field.ident) {
                        Some(NamedField { cel: Some(_), .. }) => {}
                        Some(NamedField { json, .. }) => {
                            add(Error::new(ident.span(), format!("a rule cannot name the field {json:?}")));
                        }
                        None => add(Error::new(ident.span(), format!("the struct has no field `{ident}`"))),
                    }
                }
            }
            Effect::Items(inner) => {
                if let Err(error) = check_items(inner, item) {
                    add(error);
                }
            }
            _ => {}
        }
    }
    errors.map_or(Ok(()), Err)
}

fn check_items(markers: &[Marker], item: Option<&Type>) -> Result<()> {
    check(markers, item, None)
}

/// Returns the error of a marker in a list of markers.
fn wrong(marker: &Marker, all: &[Marker], index: usize, class: Class) -> Option<String> {
    let name = &marker.name;
    let number = |keyword: &str| all.iter().find_map(|marker| marker.number(keyword));
    match &marker.effect {
        Effect::Items(_) if !matches!(class, Class::List | Class::Unknown) => {
            Some(format!("`items` is for a list, and this is {}", class.named()))
        }
        Effect::Set(keyword, _) => {
            if all[..index].iter().any(|other| other.sets(keyword)) {
                return Some(format!("`{name}` is given twice"));
            }
            let wanted = Class::of_keyword(keyword);
            if wanted != class && wanted != Class::Unknown && class != Class::Unknown {
                return Some(format!("`{name}` is for {}, and this is {}", wanted.named(), class.named()));
            }
            let own = marker.number(keyword);
            match *keyword {
                "multipleOf" if own.is_some_and(|own| own <= 0.0) => {
                    Some("`multiple_of` must be greater than 0".to_owned())
                }
                "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
                    if own.is_some_and(|own| own < 0.0 || own.fract() != 0.0) =>
                {
                    Some(format!("`{name}` must be an integer, and at least 0"))
                }
                "exclusiveMaximum" if number("maximum").is_none() => {
                    Some("`exclusive_maximum` needs `maximum`".to_owned())
                }
                "exclusiveMinimum" if number("minimum").is_none() => {
                    Some("`exclusive_minimum` needs `minimum`".to_owned())
                }
                "x-kubernetes-list-map-keys" if !is_map_list(all) => {
                    Some("`list_map_key` needs `list_type = \"map\"`".to_owned())
                }
                "x-kubernetes-list-type"
                    if is_map_list(std::slice::from_ref(marker))
                        && !all.iter().any(|other| other.sets("x-kubernetes-list-map-keys")) =>
                {
                    Some("`list_type = \"map\"` needs `list_map_key`".to_owned())
                }
                _ => above_maximum(marker, keyword, number),
            }
        }
        _ => None,
    }
}

fn is_map_list(markers: &[Marker]) -> bool {
    markers.iter().any(|marker| match &marker.effect {
        Effect::Set("x-kubernetes-list-type", super::marker::Value::Text(kind)) => kind.value() == "map",
        _ => false,
    })
}

/// Returns an error if a minimum is above the maximum.
fn above_maximum(marker: &Marker, keyword: &str, number: impl Fn(&str) -> Option<f64>) -> Option<String> {
    let maximum = keyword.strip_prefix("min").and_then(|rest| number(&format!("max{rest}")))?;
    let own = marker.number(keyword)?;
    (own > maximum).then(|| format!("`{}` is above its maximum, {maximum}", marker.name))
}

/// Returns the class of a type and, for a list, the type of the items.
fn class_of(ty: &Type) -> (Class, Option<&Type>) {
    let Type::Path(path) = ty else { return (Class::Unknown, None) };
    let Some(last) = path.path.segments.last() else { return (Class::Unknown, None) };
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    };
    match last.ident.to_string().as_str() {
        "Option" | "Box" | "Arc" | "Rc" => argument.map_or((Class::Unknown, None), class_of),
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" | "f32" | "f64" => {
            (Class::Number, None)
        }
        "String" | "str" => (Class::Text, None),
        "bool" => (Class::Bool, None),
        "Vec" | "VecDeque" | "BTreeSet" | "HashSet" => (Class::List, argument),
        "BTreeMap" | "HashMap" => (Class::Map, None),
        _ => (Class::Unknown, None),
    }
}
