//! A marker and the effect of the marker on a schema.

use proc_macro2::{Span, TokenStream};
use syn::{Expr, Ident, LitStr};

/// A marker, with the position of the name in the source.
pub(crate) struct Marker {
    pub(crate) span: Span,
    /// The name in the source.
    pub(crate) name: String,
    pub(crate) effect: Effect,
}

/// The effect of a marker on a schema.
pub(crate) enum Effect {
    /// Sets a keyword to a value.
    Set(&'static str, Value),
    /// Replaces the derived type by "an integer or a string".
    IntOrString,
    /// Removes the derived type.
    Schemaless,
    /// Removes the description.
    NoDescription,
    /// Adds a rule in CEL.
    Rule(Rule),
    /// Adds a rule about how many of some fields are set.
    OneOf { operator: &'static str, message: &'static str, fields: Vec<Ident> },
    /// Changes the schema of the items of a list.
    Items(Vec<Marker>),
}

/// The value of a keyword.
pub(crate) enum Value {
    True,
    /// A number.
    Number(Expr, f64),
    Text(LitStr),
    Texts(Vec<LitStr>),
    /// A value of JSON, in the syntax of the macro `json`.
    Any(TokenStream),
    /// Members with texts.
    Members(Vec<(&'static str, LitStr)>),
}

/// A rule in CEL.
pub(crate) struct Rule {
    /// The members of the rule, with the names of the members in a schema.
    pub(crate) texts: Vec<(&'static str, LitStr)>,
    pub(crate) optional_old_self: bool,
}

impl Marker {
    /// Returns the number that the marker sets for a keyword.
    pub(crate) fn number(&self, keyword: &str) -> Option<f64> {
        match &self.effect {
            Effect::Set(name, Value::Number(_, number)) if *name == keyword => Some(*number),
            _ => None,
        }
    }

    /// Returns whether the marker sets a keyword.
    pub(crate) fn sets(&self, keyword: &str) -> bool {
        matches!(&self.effect, Effect::Set(name, _) if *name == keyword)
    }
}
