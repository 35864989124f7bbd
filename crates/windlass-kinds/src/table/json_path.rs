//! The part of JSONPath that printer columns use: fields, indexes, slices, wildcards, recursive descent, and filters that compare.

use serde_json::Value;

/// A parsed path, such as `.status.conditions[?(@.type=="Ready")].status`.
///
/// ```
/// use serde_json::json;
/// use windlass_kinds::table::JsonPath;
///
/// let path = JsonPath::parse(".spec.names[0]")?;
/// assert_eq!(path.find(&json!({"spec": {"names": ["a", "b"]}})), [&json!("a")]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Fields(Vec<String>),
    Wildcard,
    Descend,
    Slice { start: Option<i64>, end: Option<i64>, step: usize },
    Index(i64),
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Value),
    Path(Vec<Step>),
}

/// The longest path that is accepted, in bytes.
const MAX_STEPS: usize = 64;
/// The most values that a step of a path may find.
const MAX_FOUND: usize = 10_000;

impl JsonPath {
    /// Parses a path, with or without enclosing `{}` and a leading `$`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        let mut parser = Parser { rest: text };
        let steps = parser.steps(str::is_empty)?;
        Ok(Self(steps))
    }

    /// Returns the values at the path, in order.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        walk(&self.0, root)
    }
}

fn walk<'a>(steps: &[Step], root: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![root];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            step.take(value, &mut next);
            if next.len() > MAX_FOUND {
                return Vec::new();
            }
        }
        found = next;
    }
    found
}

impl Step {
    fn take<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>) {
        match self {
            Self::Field(name) => out.extend(value.get(name)),
            Self::Fields(names) => out.extend(names.iter().filter_map(|name| value.get(name))),
            Self::Wildcard => match value {
                Value::Array(items) => out.extend(items),
                Value::Object(fields) => out.extend(fields.values()),
                _ => {}
            },
            Self::Descend => descend(value, out),
            Self::Index(index) => {
                if let Value::Array(items) = value {
                    let at = if *index < 0 { index + items.len() as i64 } else { *index };
                    out.extend(usize::try_from(at).ok().and_then(|at| items.get(at)));
                }
            }
            Self::Slice { start, end, step } => {
                if let Value::Array(items) = value {
                    let length = items.len() as i64;
                    let clamp = |at: i64| (if at < 0 { at + length } else { at }).clamp(0, length) as usize;
                    let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(length)));
                    if start < end {
                        out.extend(items[start..end].iter().step_by(*step));
                    }
                }
            }
            Self::Filter(filter) => {
                if let Value::Array(items) = value {
                    out.extend(items.iter().filter(|item| filter.keeps(item)));
                }
            }
        }
    }
}

fn descend<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    if out.len() > MAX_FOUND {
        return;
    }
    out.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| descend(field, out)),
        _ => {}
    }
}

impl Filter {
    fn keeps(&self, item: &Value) -> bool {
        let left = walk(&self.left, item);
        let Some((comparison, operand)) = &self.comparison else { return !left.is_empty() };
        let Some(left) = left.first() else { return false };
        match operand {
            Operand::Literal(right) => comparison.holds(left, right),
            Operand::Path(path) => {
                walk(path, item).first().is_some_and(|right| comparison.holds(left, right))
            }
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => None,
        };
        let Some(order) = order else { return false };
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn steps(&mut self, ends: fn(&str) -> bool) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        while !ends(self.rest) {
            if steps.len() == MAX_STEPS {
                return Err("path is too long".to_owned());
            }
            if self.skip("..") {
                steps.push(Step::Descend);
                if !self.rest.starts_with('[') {
                    steps.push(self.name()?);
                }
            } else if self.skip(".") {
                if self.rest.starts_with('[') || ends(self.rest) {
                    continue;
                }
                steps.push(self.name()?);
            } else if self.skip("[") {
                steps.push(self.bracket()?);
            } else if steps.is_empty() && !self.rest.is_empty() {
                // kubectl's paths may start without the dot.
                steps.push(self.name()?);
            } else {
                return Err(format!("unexpected {:?}", self.rest));
            }
        }
        Ok(steps)
    }

    fn skip(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn name(&mut self) -> Result<Step, String> {
        let mut name = String::new();
        let mut characters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
                '.' | '[' | ']' | ')' | '=' | '!' | '<' | '>' | ' ' => {
                    end = at;
                    break;
                }
                other => name.push(other),
            }
        }
        self.rest = &self.rest[end..];
        match name.as_str() {
            "" => Err("a field's name is missing".to_owned()),
            "*" => Ok(Step::Wildcard),
            _ => Ok(Step::Field(name)),
        }
    }

    fn bracket(&mut self) -> Result<Step, String> {
        if self.skip("?(") {
            let filter = self.filter()?;
            return self.expect(")]").map(|()| Step::Filter(filter));
        }
        if self.rest.starts_with(['\'', '"']) {
            let mut names = vec![self.quoted()?];
            while self.skip(",") {
                names.push(self.quoted()?);
            }
            self.expect("]")?;
            return Ok(if names.len() == 1 { Step::Field(names.remove(0)) } else { Step::Fields(names) });
        }
        let end = self.rest.find(']').ok_or("unterminated array")?;
        let inside = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if inside == "*" {
            return Ok(Step::Wildcard);
        }
        let number =
            |text: &str| text.trim().parse::<i64>().map_err(|_| format!("invalid array index {text}"));
        if !inside.contains(':') {
            return number(inside).map(Step::Index);
        }
        let mut parts =
            inside.split(':').map(|part| if part.is_empty() { Ok(None) } else { number(part).map(Some) });
        let start = parts.next().transpose()?.flatten();
        let end = parts.next().transpose()?.flatten();
        let step = parts.next().transpose()?.flatten().unwrap_or(1);
        if parts.next().is_some() {
            return Err(format!("invalid array index {inside}"));
        }
        let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or("step must be > 0")?;
        Ok(Step::Slice { start, end, step })
    }

    fn filter(&mut self) -> Result<Filter, String> {
        let left = self.operand_path()?;
        self.rest = self.rest.trim_start();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let Some((_, comparison)) = comparisons.into_iter().find(|(token, _)| self.skip(token)) else {
            return Ok(Filter { left, comparison: None });
        };
        self.rest = self.rest.trim_start();
        let operand = if self.rest.starts_with('@') {
            Operand::Path(self.operand_path()?)
        } else if self.rest.starts_with(['\'', '"']) {
            Operand::Literal(self.quoted()?.into())
        } else {
            let end = self.rest.find(')').ok_or("unterminated filter")?;
            let word = self.rest[..end].trim();
            self.rest = &self.rest[end..];
            Operand::Literal(serde_json::from_str(word).map_err(|_| format!("unrecognized {word}"))?)
        };
        self.rest = self.rest.trim_start();
        Ok(Filter { left, comparison: Some((comparison, operand)) })
    }

    fn operand_path(&mut self) -> Result<Vec<Step>, String> {
        self.expect("@")?;
        self.steps(|rest| rest.is_empty() || rest.starts_with([')', '=', '!', '<', '>', ' ']))
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut characters = self.rest.char_indices();
        let quote = characters.next().map(|(_, quote)| quote).filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or("a quoted name is missing")?;
        let mut text = String::new();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                found if found == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        Err("unterminated quoted string".to_owned())
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.skip(token) { Ok(()) } else { Err(format!("expected {token} at {:?}", self.rest)) }
    }
}

#[cfg(test)]
mod tests;
