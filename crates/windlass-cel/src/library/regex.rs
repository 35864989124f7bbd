//! Regular expressions, in Go's dialect.

use windlass_text::Expression;

use super::{as_int, as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::meter::Meter;
use crate::plan::RegexCall;
use crate::regex::compile;
use crate::value::{List, Text, Value};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("matches", "matches", "string string", "bool", |meter, v| compiled(meter, RegexCall::Matches, v)),
    Row("matches", "matches_string", ".string string", "bool", |meter, v| compiled(meter, RegexCall::Matches, v)),
    Row("find", "string_find_string", ".string string", "string", |meter, v| compiled(meter, RegexCall::Find, v)),
    Row("findAll", "string_find_all_string", ".string string", "list(string)", |meter, v| compiled(meter, RegexCall::FindAll, v)),
    Row("findAll", "string_find_all_string_int", ".string string int", "list(string)", |meter, v| compiled(meter, RegexCall::FindAll, v)),
];

/// The steps of a search of a large expression in a long text; about a twentieth of a second.
const MAX_STEPS: usize = 5_000_000;

/// The limit of the product of the states of an expression and the bytes of the text, for the positions of matches.
const MAX_FIND_STEPS: usize = 100_000_000;

/// The bytes of text that a search for a position looks at, for a unit of work.
const FIND_SPEED: usize = 8;

/// The work of compiling a byte of a pattern, compared with looking at a byte.
const COMPILE: usize = 5000;
/// The work of compiling a state: a short pattern may repeat a part many times.
const COMPILE_STATE: usize = 100;

/// Compiles the pattern of a call, and runs the call.
fn compiled<'a>(meter: &mut Meter, kind: RegexCall, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let pattern = as_text(&arguments[1])?;
    meter.work((pattern.len() + 10) * COMPILE)?;
    let regex = compile(pattern).map_err(|error| match kind {
        RegexCall::Matches => Error::new(error),
        _ => Error::new(format!("Illegal regex: {error}")),
    })?;
    meter.work(regex.states().saturating_mul(COMPILE_STATE))?;
    run(meter, kind, &regex, arguments)
}

/// Runs a call with a compiled pattern.
pub(crate) fn run<'a>(
    meter: &mut Meter,
    kind: RegexCall,
    regex: &Expression,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, Error> {
    let Value::String(text) = &arguments[0] else {
        return if kind == RegexCall::Matches { mismatch() } else { Err(Error::no_overload()) };
    };
    meter.work(text.len() * 4)?;
    // A search that finds nothing takes as long as any other search.
    let mut steps = MAX_STEPS;
    let is_match = regex.is_match_within(text, &mut steps).map_err(|_| Error::resource_limit())?;
    meter.work(MAX_STEPS - steps)?;
    if kind == RegexCall::Matches {
        return Ok(Value::Bool(is_match));
    }
    // The search for the end of a match may take longer than the search for a match.
    let regex = regex.regex().filter(|_| regex.most_steps(text) <= MAX_FIND_STEPS);
    let regex = regex.ok_or_else(Error::resource_limit)?;
    match kind {
        RegexCall::Matches => Ok(Value::Bool(is_match)),
        RegexCall::Find => Ok(Value::text(regex.find(text).map_or("", |found| found.as_str()))),
        RegexCall::FindAll => {
            let limit = arguments.get(2).map_or(Ok(-1), as_int)?;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let mut found = Vec::new();
            for part in regex.find_iter(text).take(limit) {
                // Each search may look at the rest of the text.
                meter.work((text.len() - part.start()) / FIND_SPEED)?;
                meter.allocate(part.len() + size_of::<Value<'_>>())?;
                found.push(Value::String(Text::from(part.as_str())));
            }
            Ok(Value::List(List::of(found)))
        }
    }
}
