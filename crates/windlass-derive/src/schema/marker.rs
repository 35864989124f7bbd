//! What a marker says.

use proc_macro2::{Span, TokenStream};
use syn::{Expr, Ident, LitStr};

/// A marker, with the place of its name in the source.
pub(crate) struct Marker {
    pub(crate) span: Span,
    /// As it is written.
    pub(crate) name: String,
    pub(crate) effect: Effect,
}

/// What a marker does to a schema.
pub(crate) enum Effect {
    /// Sets a keyword to a value.
    Set(&'static str, Value),
    /// Replaces what the type says by "an integer or a string".
    IntOrString,
    /// Removes what the type says.
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
    /// The members of the rule, by their names in a schema.
    pub(crate) texts: Vec<(&'static str, LitStr)>,
    pub(crate) optional_old_self: bool,
}

impl Marker {
    /// Returns the number that it sets a keyword to.
    pub(crate) fn number(&self, keyword: &str) -> Option<f64> {
        match &self.effect {
            Effect::Set(name, Value::Number(_, number)) if *name == keyword => Some(*number),
            _ => None,
        }
    }

    /// Whether it sets a keyword.
    pub(crate) fn sets(&self, keyword: &str) -> bool {
        matches!(&self.effect, Effect::Set(name, _) if *name == keyword)
    }
}
