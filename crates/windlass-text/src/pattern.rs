//! Regular expressions in Go's dialect (RE2), translated for the `regex` crate.

mod compiled;
mod machine;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use regex::Regex;

use self::machine::{Machine, automaton};

/// A `pattern` of a schema, compiled when a text is matched.
///
/// Equal patterns of the process share the compiled form. The process keeps a limited number of compiled patterns: a schema with
/// thousands of patterns takes little memory, and such patterns are compiled again for each object.
pub struct Pattern {
    source: Box<str>,
    compiled: Mutex<Weak<Expression>>,
}

impl Pattern {
    /// Returns the pattern with this source.
    pub fn new(source: &str) -> Self {
        Self { source: source.into(), compiled: Mutex::default() }
    }

    /// Returns the source of the pattern.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Works like [`Expression::is_match_within`]. The compilation takes steps, too. An invalid pattern never matches.
    ///
    /// # Errors
    /// The search may take more steps, or the pattern is not compiled and no steps are left.
    pub fn is_match_within(&self, text: &str, steps: &mut usize) -> Result<bool, OutOfSteps> {
        let expression = self.expression(steps)?;
        expression.map_or(Ok(false), |expression| expression.is_match_within(text, steps))
    }

    /// Returns the compiled form; `None` for an invalid pattern.
    fn expression(&self, steps: &mut usize) -> Result<Option<Arc<Expression>>, OutOfSteps> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if known.is_some() {
            return Ok(known);
        }
        let compiled = compiled::expression(&self.source, steps)?;
        if let Some(expression) = &compiled {
            *self.compiled.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(expression);
        }
        Ok(compiled)
    }
}

impl Clone for Pattern {
    fn clone(&self) -> Self {
        Self::new(&self.source)
    }
}

/// A compiled regular expression, with a limit for searches.
pub struct Expression {
    source: Box<str>,
    machine: Machine,
    /// Compiled when the machine gives up, or for the positions of matches. `None` if the compiled form is too large.
    regex: OnceLock<Option<Regex>>,
}

impl Expression {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The pattern is not valid. The error has the words of Go's `regexp`.
    pub fn compile(source: &str) -> Result<Self, String> {
        if let Some(error) = rejected_repetition(source) {
            return Err(error);
        }
        let regex = OnceLock::new();
        let machine = if let Ok(automaton) = automaton(&translate(source)) {
            Machine::new(automaton)
        } else {
            // The compilation has the words of the error.
            let _ = regex.set(Some(compile(source)?));
            Machine::missing()
        };
        Ok(Self { source: source.into(), machine, regex })
    }

    /// Returns the number of states of the expression. The memory of the expression, and the time of the compilation, grow with the number.
    pub fn states(&self) -> usize {
        self.machine.states()
    }

    /// Returns the most steps of a search for the positions of matches in `text`: the product of the states and the bytes of the text.
    pub fn most_steps(&self, text: &str) -> usize {
        self.machine.most_steps(text)
    }

    /// Returns the expression without a limit; `None` if the expression is too large.
    pub fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compile(&self.source).ok()).as_ref()
    }

    /// Returns whether the expression matches anywhere in `text`.
    ///
    /// The search takes at most about `steps`; a step takes some nanoseconds. The steps of the search are subtracted. Most searches take fewer
    /// steps than the text has bytes.
    ///
    /// # Errors
    /// The search may take more steps.
    pub fn is_match_within(&self, text: &str, steps: &mut usize) -> Result<bool, OutOfSteps> {
        if *steps == 0 {
            return Err(OutOfSteps);
        }
        if let Some(is_match) = self.machine.is_match(text, steps) {
            return Ok(is_match);
        }
        *steps = steps.checked_sub(self.most_steps(text)).ok_or(OutOfSteps)?;
        self.regex().map(|regex| regex.is_match(text)).ok_or(OutOfSteps)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// The error of a search that may take too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSteps;

/// The largest size of the automaton of a small pattern, in bytes. A small pattern takes less than a millisecond to compile.
const SMALL: usize = 64 << 10;

/// The size of the largest pattern that is compiled, in bytes.
const LARGEST: usize = 4 << 20;

/// The most distinct patterns in a schema.
const MAX_PATTERNS: usize = 10_000;

/// The most patterns in a schema that are not [small](SMALL).
const MAX_LARGE: usize = 200;

/// The patterns of a schema. The number of patterns is limited, because the compilation of a pattern may take
/// some milliseconds.
#[derive(Debug, Default)]
pub struct Patterns {
    errors: RefCell<HashMap<String, Option<String>>>,
    large: Cell<usize>,
}

impl Patterns {
    /// Returns the error of a pattern that is not valid.
    pub fn error(&self, source: &str) -> Option<String> {
        if let Some(error) = self.errors.borrow().get(source) {
            return error.clone();
        }
        let error = self.compile(source).err();
        self.errors.borrow_mut().insert(source.to_owned(), error.clone());
        error
    }

    fn compile(&self, source: &str) -> Result<(), String> {
        if self.errors.borrow().len() >= MAX_PATTERNS {
            return Err(format!("the schema has more than {MAX_PATTERNS} patterns"));
        }
        if let Some(error) = rejected_repetition(source) {
            return Err(error);
        }
        match automaton(&translate(source)) {
            // The automaton is enough to know that the pattern is valid, and takes a fraction of the time.
            Ok(automaton) if automaton.memory_usage() <= SMALL => Ok(()),
            Ok(_) if self.large.get() == MAX_LARGE => {
                Err(format!("the schema has more than {MAX_LARGE} patterns that are large when compiled"))
            }
            Ok(_) => {
                self.large.set(self.large.get() + 1);
                Ok(())
            }
            Err(_) => compile(source).map(drop),
        }
    }
}

/// Compiles a pattern. Errors have the words of Go's `regexp`.
pub fn compile(source: &str) -> Result<Regex, String> {
    if let Some(error) = rejected_repetition(source) {
        return Err(error);
    }
    let fail = |what: &str, part: &str| Err(parse_error(what, part));
    let translated = translate(source);
    let error = match regex::RegexBuilder::new(&translated).size_limit(LARGEST).build() {
        Ok(regex) => return Ok(regex),
        Err(error) => error.to_string(),
    };
    let text = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let marked = marked(&error);
    match text {
        "unclosed group" => fail("missing closing )", source),
        "unopened group" => fail("unexpected )", source),
        "unclosed character class" => {
            fail("missing closing ]", source.rfind('[').map_or(source, |start| &source[start..]))
        }
        "repetition operator missing expression" => fail("missing argument to repetition operator", &marked),
        "backreferences are not supported" | "unrecognized escape sequence" => {
            fail("invalid escape sequence", &marked)
        }
        _ if text.starts_with("look-around") => {
            fail("invalid or unsupported Perl syntax", marked.get(..3).unwrap_or(&marked))
        }
        _ => fail(text, source),
    }
}

fn parse_error(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

/// Returns the error of a repetition that Go rejects, and the `regex` crate accepts.
fn rejected_repetition(source: &str) -> Option<String> {
    if let Some(count) = excessive_repetition(source) {
        return Some(parse_error("invalid repeat count", count));
    }
    nested_repetition(source).map(|operators| parse_error("invalid nested repetition operator", operators))
}

/// Returns the part of the pattern that an error of the `regex` crate underlines.
fn marked(error: &str) -> String {
    let mut lines = error.lines().skip(1);
    let (Some(pattern), Some(marks)) = (lines.next(), lines.next()) else { return String::new() };
    pattern
        .chars()
        .zip(marks.chars())
        .filter(|(_, mark)| *mark == '^')
        .map(|(character, _)| character)
        .collect()
}

/// Returns the first repetition with a count over 1000, which Go rejects.
fn excessive_repetition(source: &str) -> Option<&str> {
    source.match_indices('{').find_map(|(start, _)| {
        let times = repetition(&source[start + 1..])?;
        let counts = times.trim_end_matches('}').split(',');
        let excessive = counts.filter_map(|count| count.parse::<u32>().ok()).any(|count| count > 1000);
        excessive.then(|| &source[start..=start + times.len()])
    })
}

/// Returns two repetition operators, one after the other, which Go rejects.
fn nested_repetition(source: &str) -> Option<&str> {
    let bytes = source.as_bytes();
    let mut at = 0;
    let mut in_class = false;
    // The start of the operator before, if there is nothing between.
    let mut last = None;
    while at < bytes.len() {
        let start = at;
        let operator = match bytes[at] {
            b'\\' if source[at..].starts_with("\\Q") => {
                at += source[at..].find("\\E").map_or(source.len() - at, |end| end + 2);
                last = None;
                continue;
            }
            b'\\' => {
                at += 2;
                last = None;
                continue;
            }
            b'[' if !in_class => {
                in_class = true;
                let rest = source[at + 1..].trim_start_matches('^');
                at = source.len() - rest.len() + usize::from(rest.starts_with(']'));
                last = None;
                continue;
            }
            b']' if in_class => {
                in_class = false;
                1
            }
            b'*' | b'+' | b'?' if !in_class => 1,
            b'{' if !in_class => repetition(&source[at + 1..]).map_or(0, |times| times.len() + 1),
            _ => 0,
        };
        let repeats = operator > 0 && bytes[at] != b']';
        at += operator.max(1);
        if !repeats {
            last = None;
            continue;
        }
        if bytes.get(at) == Some(&b'?') {
            at += 1;
        }
        if let Some(first) = last {
            return source.get(first..at);
        }
        last = Some(start);
    }
    None
}

/// Translates the constructs on which the dialects differ. In RE2, Perl classes are ASCII, braces that are not a
/// repetition are literal, `\Q…\E` quotes, and `&&`, `--`, `~~` and `[` are literal in a class.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut rest = source;
    let mut in_class = false;
    let mut class_start = false;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        let at_start = std::mem::take(&mut class_start);
        match character {
            '\\' => rest = escape(&mut out, rest, in_class),
            '[' if !in_class => {
                out.push('[');
                in_class = true;
                class_start = true;
                if let Some(after) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = after;
                }
            }
            '[' if !rest.starts_with(':') => out.push_str("\\["),
            '[' => match rest.find(":]") {
                Some(end) => {
                    out.push('[');
                    out.push_str(&rest[..end + 2]);
                    rest = &rest[end + 2..];
                }
                None => out.push_str("\\["),
            },
            ']' if in_class && at_start => out.push_str("\\]"),
            ']' => {
                if !in_class {
                    out.push('\\');
                }
                out.push(']');
                in_class = false;
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if in_class && rest.starts_with('-') => out.push_str("\\-"),
            '{' if !in_class => match repetition(rest) {
                Some(times) => {
                    out.push('{');
                    out.push_str(times);
                    rest = &rest[times.len()..];
                }
                None => out.push_str("\\{"),
            },
            '}' if !in_class => out.push_str("\\}"),
            other => out.push(other),
        }
    }
    out
}

fn escape<'a>(out: &mut String, rest: &'a str, in_class: bool) -> &'a str {
    let Some(character) = rest.chars().next() else {
        out.push('\\');
        return rest;
    };
    let after = &rest[character.len_utf8()..];
    match (character, in_class) {
        ('Q', false) => {
            let (quoted, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(quoted));
            return after;
        }
        ('d', _) => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        ('s', _) => out.push_str(if in_class { "\\t\\n\\x0C\\r " } else { "[\\t\\n\\x0C\\r ]" }),
        ('w', _) => out.push_str(if in_class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
        ('D', _) => out.push_str("[^0-9]"),
        ('S', _) => out.push_str("[^\\t\\n\\x0C\\r ]"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('b', false) => out.push_str("(?-u:\\b)"),
        // `\B` without Unicode may split a character, so `regex` rejects it on `str`.
        ('C', false) => out.push_str("(?s:.)"),
        ('p' | 'P' | 'x', _) if after.starts_with('{') => {
            let name = after.split_inclusive('}').next().unwrap_or_default();
            out.push('\\');
            out.push(character);
            out.push_str(name);
            return &after[name.len()..];
        }
        _ => {
            out.push('\\');
            out.push(character);
        }
    }
    after
}

/// Returns the text after the `{` of a repetition, up to and including the `}`.
fn repetition(rest: &str) -> Option<&str> {
    let (inside, _) = rest.split_once('}')?;
    let (low, high) = inside.split_once(',').unwrap_or((inside, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!low.is_empty() && digits(low) && digits(high)).then(|| &rest[..=inside.len()])
}

#[cfg(test)]
mod tests;
