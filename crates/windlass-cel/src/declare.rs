//! Declarations of functions: signatures, and what the functions do.

use std::collections::HashMap;

use crate::error::Error;
use crate::meter::Meter;
use crate::types::Type;
use crate::value::Value;

/// The implementation of a function.
pub(crate) type Run = for<'a> fn(&mut Meter, &[Value<'a>]) -> Result<Value<'a>, Error>;

/// A row in the table of a library: the function, the id of the overload, the parameters, the result, the
/// implementation. The parameters of a method begin with a dot.
pub(crate) struct Row(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) Run,
);

/// A signature of a function.
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Type,
    /// True if the signature has type parameters.
    pub(crate) generic: bool,
    pub(crate) run: Run,
}

/// A function with all its signatures.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
    /// True if the same implementation takes the arguments of every signature.
    pub(crate) singleton: bool,
}

/// All functions of an environment.
#[derive(Default)]
pub(crate) struct Functions {
    by_name: HashMap<&'static str, Function>,
}

impl Functions {
    /// Adds the functions of a table. A singleton's signatures share one implementation.
    pub(crate) fn add(&mut self, rows: &[Row], singleton: bool) {
        for Row(name, id, parameters, result, run) in rows {
            let function = self.by_name.entry(name).or_insert_with(|| Function {
                name,
                overloads: Vec::new(),
                singleton,
            });
            function.singleton &= singleton;
            let member = parameters.starts_with('.');
            let parameters = types(parameters.trim_start_matches('.'));
            let result = types(result).pop().unwrap_or(Type::Dyn);
            let generic = parameters.iter().chain([&result]).any(has_parameter);
            let overload = Overload { id, member, parameters, result, generic, run: *run };
            function.overloads.push(overload);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name)
    }
}

fn has_parameter(of: &Type) -> bool {
    matches!(of, Type::Parameter(_)) || of.parameters().into_iter().any(has_parameter)
}

/// Reads types that are separated by spaces, such as `list(A) int`.
fn types(text: &'static str) -> Vec<Type> {
    let mut rest = text;
    let mut types = Vec::new();
    while !rest.is_empty() {
        let (next, after) = one(rest);
        types.push(next);
        rest = after.trim_start_matches([' ', ',']);
    }
    types
}

fn one(text: &'static str) -> (Type, &'static str) {
    let end = text.find(['(', ')', ' ', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !matches!(name, "list" | "map" | "optional" | "type") || !rest.starts_with('(') {
        return (named(name), rest);
    }
    let (first, rest) = one(&rest[1..]);
    let (second, rest) = match rest.strip_prefix(',') {
        Some(rest) => {
            let (second, rest) = one(rest.trim_start());
            (Some(second), rest)
        }
        None => (None, rest),
    };
    let rest = rest.strip_prefix(')').unwrap_or(rest);
    let built = match (name, second) {
        ("map", Some(value)) => Type::map(first, value),
        ("optional", _) => Type::optional(first),
        ("type", _) => Type::Type(first.into()),
        _ => Type::list(first),
    };
    (built, rest)
}

fn named(name: &'static str) -> Type {
    match name {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "net.IP" | "net.CIDR" => Type::Opaque(name),
        _ if name.len() == 1 => Type::Parameter(name),
        _ => Type::Object(name),
    }
}
