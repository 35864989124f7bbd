//! Markers from tokens.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Error, Expr, ExprLit, ExprUnary, Ident, Lit, LitBool, LitInt, LitStr, Result, Token, UnOp,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    token::{Brace, Bracket},
};

use super::marker::{Effect, Marker, Rule, Value};

/// Parses markers that are separated by commas.
pub(super) fn markers(input: ParseStream<'_>) -> Result<Vec<Marker>> {
    let markers = Punctuated::<Marker, Token![,]>::parse_terminated(input)?;
    Ok(markers.into_iter().collect())
}

/// The markers with a number: the name, and the keyword of the schema.
const NUMBERS: [(&str, &str); 9] = [
    ("maximum", "maximum"),
    ("minimum", "minimum"),
    ("multiple_of", "multipleOf"),
    ("max_length", "maxLength"),
    ("min_length", "minLength"),
    ("max_items", "maxItems"),
    ("min_items", "minItems"),
    ("max_properties", "maxProperties"),
    ("min_properties", "minProperties"),
];

/// The markers with a text.
const TEXTS: [(&str, &str); 4] =
    [("pattern", "pattern"), ("format", "format"), ("type", "type"), ("title", "title")];

/// The markers without a value.
const FLAGS: [(&str, &str); 5] = [
    ("exclusive_maximum", "exclusiveMaximum"),
    ("exclusive_minimum", "exclusiveMinimum"),
    ("nullable", "nullable"),
    ("preserve_unknown_fields", "x-kubernetes-preserve-unknown-fields"),
    ("embedded_resource", "x-kubernetes-embedded-resource"),
];

/// The markers with a fixed set of values.
const CHOICES: [(&str, &str, &[&str]); 3] = [
    ("list_type", "x-kubernetes-list-type", &["atomic", "set", "map"]),
    ("map_type", "x-kubernetes-map-type", &["atomic", "granular"]),
    ("struct_type", "x-kubernetes-map-type", &["atomic", "granular"]),
];

/// The markers about how many of some fields are set.
const ONE_OF: [(&str, &str, &str); 3] = [
    ("exactly_one_of", "== 1", "exactly one of the fields in [{}] must be set"),
    ("at_most_one_of", "<= 1", "at most one of the fields in [{}] may be set"),
    ("at_least_one_of", ">= 1", "at least one of the fields in [{}] must be set"),
];

impl Parse for Marker {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let ident = Ident::parse_any(input)?;
        let (name, span) = (ident.to_string(), ident.span());
        let effect = effect(&ident, &name, input)?;
        Ok(Self { span, name, effect })
    }
}

fn effect(ident: &Ident, name: &str, input: ParseStream<'_>) -> Result<Effect> {
    if let Some((_, keyword)) = NUMBERS.iter().find(|(known, _)| *known == name) {
        return Ok(Effect::Set(keyword, number(input)?));
    }
    if let Some((_, keyword)) = TEXTS.iter().find(|(known, _)| *known == name) {
        return Ok(Effect::Set(keyword, Value::Text(text(input)?)));
    }
    if let Some((_, keyword)) = FLAGS.iter().find(|(known, _)| *known == name) {
        return Ok(Effect::Set(keyword, Value::True));
    }
    if let Some((_, keyword, words)) = CHOICES.iter().find(|(known, ..)| *known == name) {
        return Ok(Effect::Set(keyword, Value::Text(choice(input, words)?)));
    }
    if let Some((_, operator, message)) = ONE_OF.iter().find(|(known, ..)| *known == name) {
        let fields = list::<Ident>(input)?.iter().map(Ident::unraw).collect();
        return Ok(Effect::OneOf { operator, message, fields });
    }
    match name {
        "enum" => Ok(Effect::Set("enum", Value::Texts(list(input)?))),
        "list_map_key" => Ok(Effect::Set("x-kubernetes-list-map-keys", Value::Texts(list(input)?))),
        "default" => Ok(Effect::Set("default", Value::Any(json(input)?))),
        "example" => Ok(Effect::Set("example", Value::Any(json(input)?))),
        "external_docs" => Ok(Effect::Set("externalDocs", Value::Members(external_docs(input)?))),
        "int_or_string" => Ok(Effect::IntOrString),
        "schemaless" => Ok(Effect::Schemaless),
        "no_description" => Ok(Effect::NoDescription),
        "immutable" => Ok(Effect::Rule(immutable(ident))),
        "rule" => Ok(Effect::Rule(rule(input)?)),
        "items" => {
            let content;
            parenthesized!(content in input);
            Ok(Effect::Items(markers(&content)?))
        }
        "unique_items" => Err(Error::new(
            ident.span(),
            "the API server refuses `uniqueItems` in CRDs; write `list_type = \"set\"`",
        )),
        _ => Err(Error::new(ident.span(), unknown(name))),
    }
}

/// Returns the names of all markers.
fn names() -> Vec<&'static str> {
    let others = [
        "enum",
        "list_map_key",
        "default",
        "example",
        "external_docs",
        "int_or_string",
        "schemaless",
        "no_description",
        "immutable",
        "rule",
        "items",
    ];
    let mut names: Vec<&str> = NUMBERS.iter().chain(&TEXTS).chain(&FLAGS).map(|(name, _)| *name).collect();
    names.extend(CHOICES.iter().map(|(name, ..)| *name));
    names.extend(ONE_OF.iter().map(|(name, ..)| *name));
    names.extend(others);
    names.sort_unstable();
    names
}

fn unknown(name: &str) -> String {
    // The spelling of a marker: `MaxLength` for `max_length`.
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    match names().into_iter().find(|known| plain(known) == plain(name)) {
        Some(known) => format!("unknown marker; did you mean `{known}`?"),
        None => format!("unknown marker; there are {}", names().join(", ")),
    }
}

fn text(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn value(input: ParseStream<'_>) -> Result<Expr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Parses `= ` and a value of JSON: an expression, or a list or an object in the syntax of the macro `json`.
fn json(input: ParseStream<'_>) -> Result<TokenStream> {
    input.parse::<Token![=]>()?;
    if input.peek(Bracket) || input.peek(Brace) {
        return Ok(input.parse::<TokenTree>()?.into());
    }
    Ok(input.parse::<Expr>()?.into_token_stream())
}

fn choice(input: ParseStream<'_>, words: &[&str]) -> Result<LitStr> {
    let word = text(input)?;
    if words.contains(&word.value().as_str()) {
        return Ok(word);
    }
    Err(Error::new(word.span(), format!("expected one of {words:?}")))
}

fn number(input: ParseStream<'_>) -> Result<Value> {
    let mut expression = value(input)?;
    let wrong = Error::new_spanned(&expression, "expected a number");
    let (negative, literal) = match &mut expression {
        Expr::Lit(ExprLit { lit, .. }) => (false, lit),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match &mut **expr {
            Expr::Lit(ExprLit { lit, .. }) => (true, lit),
            _ => return Err(wrong),
        },
        _ => return Err(wrong),
    };
    let number: f64 = match literal {
        Lit::Int(number) => {
            *number = with_type(number, negative)?;
            number.base10_digits().parse().map_err(|_| wrong)?
        }
        Lit::Float(number) => number.base10_parse()?,
        _ => return Err(wrong),
    };
    let number = if negative { -number } else { number };
    Ok(Value::Number(expression, number))
}

/// Returns an integer with a type if the integer is too large for `i32`, the default of the compiler.
fn with_type(number: &LitInt, negative: bool) -> Result<LitInt> {
    let size: Option<u64> = number.base10_digits().parse().ok();
    let suffix = match size {
        Some(size) if !number.suffix().is_empty() || i32::try_from(size).is_ok() => return Ok(number.clone()),
        Some(size) if i64::try_from(size).is_ok() || negative && size == i64::MIN.unsigned_abs() => "i64",
        Some(_) if !negative => "u64",
        _ => {
            return Err(Error::new(
                number.span(),
                "the number is not between -9223372036854775808 and 18446744073709551615",
            ));
        }
    };
    Ok(LitInt::new(&format!("{}{suffix}", number.base10_digits()), number.span()))
}

/// Parses `("a", "b")`, or `= "a"` for a single value.
fn list<T: Parse>(input: ParseStream<'_>) -> Result<Vec<T>> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        return Ok(vec![input.parse()?]);
    }
    let content;
    let parentheses = parenthesized!(content in input);
    let items: Vec<T> = Punctuated::<T, Token![,]>::parse_terminated(&content)?.into_iter().collect();
    if items.is_empty() {
        return Err(Error::new(parentheses.span.join(), "expected at least one"));
    }
    Ok(items)
}

fn external_docs(input: ParseStream<'_>) -> Result<Vec<(&'static str, LitStr)>> {
    let content;
    let parentheses = parenthesized!(content in input);
    let members = Punctuated::<Member, Token![,]>::parse_terminated(&content)?;
    let mut texts = Vec::new();
    for Member { name, value } in members {
        let known = ["url", "description"].into_iter().find(|known| name == known);
        let known = known.ok_or_else(|| Error::new(name.span(), "expected `url` or `description`"))?;
        texts.push((known, value.text()?));
    }
    if texts.iter().any(|(name, _)| *name == "url") {
        return Ok(texts);
    }
    Err(Error::new(parentheses.span.join(), "expected `url = \"…\"`"))
}

/// `name = literal`.
struct Member {
    name: Ident,
    value: Literal,
}

enum Literal {
    Text(LitStr),
    Bool(LitBool),
}

impl Literal {
    fn text(self) -> Result<LitStr> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Bool(bool) => Err(Error::new(bool.span(), "expected a string")),
        }
    }
}

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = Ident::parse_any(input)?;
        input.parse::<Token![=]>()?;
        let value =
            if input.peek(LitBool) { Literal::Bool(input.parse()?) } else { Literal::Text(input.parse()?) };
        Ok(Self { name, value })
    }
}

fn immutable(ident: &Ident) -> Rule {
    let text = |text: &str| LitStr::new(text, ident.span());
    Rule {
        texts: vec![("rule", text("self == oldSelf")), ("message", text("field is immutable"))],
        optional_old_self: false,
    }
}

/// The members of a rule: the name in a marker, and the name in a schema.
const MEMBERS: [(&str, &str); 4] = [
    ("message", "message"),
    ("message_expression", "messageExpression"),
    ("reason", "reason"),
    ("field_path", "fieldPath"),
];

const REASONS: [&str; 4] =
    ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];

/// Parses `("self > 1", message = "…", …)`.
fn rule(input: ParseStream<'_>) -> Result<Rule> {
    let content;
    parenthesized!(content in input);
    let rule: LitStr = content.parse()?;
    let mut parsed = Rule { texts: vec![("rule", rule)], optional_old_self: false };
    if content.is_empty() {
        return Ok(parsed);
    }
    content.parse::<Token![,]>()?;
    for Member { name, value } in Punctuated::<Member, Token![,]>::parse_terminated(&content)? {
        if name == "optional_old_self" {
            match value {
                Literal::Bool(bool) => parsed.optional_old_self = bool.value,
                Literal::Text(text) => return Err(Error::new(text.span(), "expected `true` or `false`")),
            }
            continue;
        }
        let known = MEMBERS.iter().find(|(known, _)| name == known).ok_or_else(|| {
            let names = "`message`, `message_expression`, `reason`, `field_path` or `optional_old_self`";
            Error::new(name.span(), format!("expected {names}"))
        })?;
        let text = value.text()?;
        if known.0 == "reason" && !REASONS.contains(&text.value().as_str()) {
            return Err(Error::new(text.span(), format!("expected one of {REASONS:?}")));
        }
        parsed.texts.push((known.1, text));
    }
    let (_, rule) = &parsed.texts[0];
    if parsed.optional_old_self && !rule.value().contains("oldSelf") {
        return Err(Error::new(rule.span(), "`optional_old_self` is for rules with `oldSelf`"));
    }
    Ok(parsed)
}
