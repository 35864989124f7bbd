//! `'…'.format([…])`

use std::fmt::Write;

use windlass_text::go_quote;

use crate::error::Error;
use crate::meter::Meter;
use crate::value::{List, Target, Value, convert};

/// The digits after the point, if a clause does not say.
const PRECISION: usize = 6;

/// The largest number of digits after the point.
const MAX_PRECISION: usize = 1000;

/// A part of a format: text, or a clause that takes an argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Clause<'a> {
    Text(&'a str),
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

impl Clause<'_> {
    /// Returns the message for an argument of a type that the clause does not take.
    pub(crate) fn mismatch(&self, found: &str) -> String {
        let expected = match self {
            Self::Text(_) => "",
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{expected}, was given {found}")
    }
}

/// Returns the parts of a format. The first error ends them.
pub(crate) fn clauses(text: &str) -> Vec<Result<Clause<'_>, String>> {
    let mut clauses = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            clauses.push(Ok(Clause::Text(&rest[..at])));
        }
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            clauses.push(Ok(Clause::Text("%")));
            rest = after;
            continue;
        }
        match clause(rest) {
            Ok((parsed, after)) => {
                clauses.push(Ok(parsed));
                rest = after;
            }
            Err(error) => {
                clauses.push(Err(error));
                return clauses;
            }
        }
    }
    if !rest.is_empty() {
        clauses.push(Ok(Clause::Text(rest)));
    }
    clauses
}

/// Parses a clause after its `%`.
fn clause(text: &str) -> Result<(Clause<'static>, &str), String> {
    let fail = |message: String| Err(format!("could not parse formatting clause: {message}"));
    if text.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let mut rest = text;
    let mut precision = PRECISION;
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if digits == after.len() {
            return fail(
                "error while parsing precision: could not find end of precision specifier".to_owned(),
            );
        }
        precision = match after[..digits].parse::<usize>() {
            Ok(precision) => precision.min(MAX_PRECISION),
            Err(_) => {
                return fail(format!(
                    "error while parsing precision: error while converting precision to integer: \
                     strconv.Atoi: parsing \"{}\": invalid syntax",
                    &after[..digits]
                ));
            }
        };
        rest = &after[digits..];
    }
    let verb = rest.chars().next().unwrap_or_default();
    let parsed = match verb {
        's' => Clause::String,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hex { upper: verb == 'X' },
        'o' => Clause::Octal,
        other => return fail(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((parsed, &rest[1..]))
}

/// Formats arguments.
pub(super) fn format<'a>(meter: &mut Meter, text: &str, arguments: &List<'_>) -> Result<Value<'a>, Error> {
    meter.work(text.len())?;
    let mut out = String::new();
    let mut used = 0;
    for clause in clauses(text) {
        if let Ok(Clause::Text(text)) = clause {
            out.push_str(text);
            continue;
        }
        let argument = arguments.get(used);
        let argument = argument.ok_or_else(|| Error::new(format!("index {used} out of range")))??;
        used += 1;
        let clause = clause.map_err(Error::new)?;
        let formatted = one(meter, &argument, &clause)
            .map_err(|message| Error::new(format!("error during formatting: {message}")))?;
        meter.allocate(formatted.len())?;
        out.push_str(&formatted);
    }
    meter.allocate(out.len())?;
    Ok(Value::text(out))
}

fn one(meter: &mut Meter, value: &Value<'_>, clause: &Clause<'_>) -> Result<String, String> {
    let formatted = match (clause, value) {
        (Clause::Text(text), _) => Some((*text).to_owned()),
        (Clause::String, value) => return string(meter, value),
        (Clause::Decimal, Value::Int(value)) => Some(value.to_string()),
        (Clause::Decimal, Value::Uint(value)) => Some(value.to_string()),
        (Clause::Fixed(precision), value) => double(value).map(|value| fixed(value, *precision)),
        (Clause::Scientific(precision), value) => double(value).map(|value| scientific(value, *precision)),
        (Clause::Binary, Value::Bool(value)) => Some(u8::from(*value).to_string()),
        (Clause::Binary, Value::Uint(value)) => Some(format!("{value:b}")),
        (Clause::Binary, Value::Int(value)) => Some(format!("{}{:b}", sign(*value), value.unsigned_abs())),
        (Clause::Octal, Value::Uint(value)) => Some(format!("{value:o}")),
        (Clause::Octal, Value::Int(value)) => Some(format!("{}{:o}", sign(*value), value.unsigned_abs())),
        (Clause::Hex { upper }, value) => hex(value).map(|hex| if *upper { hex.to_uppercase() } else { hex }),
        _ => None,
    };
    formatted.ok_or_else(|| clause.mismatch(value.type_name()))
}

fn sign(value: i64) -> &'static str {
    if value < 0 { "-" } else { "" }
}

fn hex(value: &Value<'_>) -> Option<String> {
    let of_bytes = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    };
    match value {
        Value::String(text) => Some(of_bytes(text.as_bytes())),
        Value::Bytes(bytes) => Some(of_bytes(bytes)),
        Value::Int(value) => Some(format!("{}{:x}", sign(*value), value.unsigned_abs())),
        Value::Uint(value) => Some(format!("{value:x}")),
        _ => None,
    }
}

/// Returns the number of an argument of `%f` and `%e`.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        _ if value == f64::INFINITY => Some("∞"),
        _ if value == f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// Writes a number with a fixed number of digits after the point, and commas between thousands.
fn fixed(value: f64, precision: usize) -> String {
    if let Some(special) = special(value) {
        return special.to_owned();
    }
    let plain = format!("{:.precision$}", value.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut out = String::from(if value.is_sign_negative() { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Writes a number as a power of ten, such as `1.5×10⁰³`.
fn scientific(value: f64, precision: usize) -> String {
    if let Some(special) = special(value) {
        return special.to_owned();
    }
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits: String = format!("{:02}", exponent.abs()).chars().map(superscript).collect();
    format!("{mantissa}×10{sign}{digits}")
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    }
}

/// Formats a value for `%s`.
fn string(meter: &mut Meter, value: &Value<'_>) -> Result<String, String> {
    meter.work(8).map_err(|error| error.to_string())?;
    match value {
        Value::Null => Ok("null".to_owned()),
        Value::List(list) => {
            let mut parts = Vec::new();
            for element in list.iter() {
                let element = element.map_err(|error| error.to_string())?;
                parts.push(literal(meter, &element)?);
            }
            Ok(format!("[{}]", parts.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries() {
                let value = value.map_err(|error| error.to_string())?;
                if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                    return Err(format!("no formatting function for map key of type {}", key.type_name()));
                }
                entries.push((literal(meter, &key)?, literal(meter, &value)?));
            }
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Value::Library(_) | Value::Optional(_) => Err(Clause::String.mismatch(value.type_name())),
        value => match convert(value, Target::String) {
            Ok(Value::String(text)) => Ok(text.to_string()),
            Ok(_) => Err(Clause::String.mismatch(value.type_name())),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Formats an element of a list or map as a literal.
fn literal(meter: &mut Meter, value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => go_quote(text),
        Value::Bytes(_) => format!("b{}", go_quote(&string(meter, value)?)),
        Value::Double(value) if !value.is_finite() => {
            let text = if value.is_nan() {
                "NaN"
            } else if *value > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            go_quote(text)
        }
        Value::Double(value) => format!("{value:.PRECISION$}"),
        Value::Timestamp(timestamp) => format!("timestamp({})", go_quote(&timestamp.to_string())),
        Value::Duration(_) => format!("duration({})", go_quote(&string(meter, value)?)),
        Value::Library(_) | Value::Optional(_) => {
            return Err(format!("no formatting function for {}", value.type_name()));
        }
        value => string(meter, value)?,
    })
}
