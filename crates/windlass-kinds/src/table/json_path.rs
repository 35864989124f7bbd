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

/// The most steps of a path, and of each path in a filter.
const MAX_STEPS: usize = 64;
/// The most values that a search may visit, including the values that its filters visit.
const MAX_VISITS: usize = 100_000;
/// The bytes of two texts that are compared at the price of a visit.
const BYTES_PER_VISIT: usize = 64;

impl JsonPath {
    /// Parses a path, with or without enclosing `{}` and a leading `$`. As in Go, a filter contains no other filter.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        let mut parser = Parser { rest: text, in_filter: false };
        let steps = parser.steps(str::is_empty)?;
        Ok(Self(steps))
    }

    /// Returns the values at the path, in order; no values if the search visits more than 100,000 values.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        Search { visits_left: MAX_VISITS }.walk(&self.0, root).unwrap_or_default()
    }
}

/// A search with a bounded cost. The methods return `None` when the search has become too expensive.
struct Search {
    visits_left: usize,
}

impl Search {
    fn visit(&mut self, count: usize) -> Option<()> {
        self.visits_left = self.visits_left.checked_sub(count)?;
        Some(())
    }

    fn walk<'a>(&mut self, steps: &[Step], root: &'a Value) -> Option<Vec<&'a Value>> {
        let mut found = vec![root];
        for step in steps {
            let mut next = Vec::new();
            for value in found {
                self.visit(1)?;
                self.take(step, value, &mut next)?;
            }
            found = next;
        }
        Some(found)
    }

    fn take<'a>(&mut self, step: &Step, value: &'a Value, out: &mut Vec<&'a Value>) -> Option<()> {
        match (step, value) {
            (Step::Field(name), _) => out.extend(value.get(name)),
            (Step::Fields(names), _) => {
                self.visit(names.len())?;
                out.extend(names.iter().filter_map(|name| value.get(name)));
            }
            (Step::Wildcard, Value::Array(items)) => {
                self.visit(items.len())?;
                out.extend(items);
            }
            (Step::Wildcard, Value::Object(fields)) => {
                self.visit(fields.len())?;
                out.extend(fields.values());
            }
            (Step::Descend, _) => self.descend(value, out)?,
            (Step::Index(index), Value::Array(items)) => {
                let at = if *index < 0 { index + items.len() as i64 } else { *index };
                out.extend(usize::try_from(at).ok().and_then(|at| items.get(at)));
            }
            (Step::Slice { start, end, step }, Value::Array(items)) => {
                let length = items.len() as i64;
                let clamp = |at: i64| (if at < 0 { at + length } else { at }).clamp(0, length) as usize;
                let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(length)));
                if start < end {
                    self.visit(end - start)?;
                    out.extend(items[start..end].iter().step_by(*step));
                }
            }
            (Step::Filter(filter), Value::Array(items)) => {
                for item in items {
                    if self.keeps(filter, item)? {
                        out.push(item);
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn descend<'a>(&mut self, value: &'a Value, out: &mut Vec<&'a Value>) -> Option<()> {
        self.visit(1)?;
        out.push(value);
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.descend(item, out)),
            Value::Object(fields) => fields.values().try_for_each(|field| self.descend(field, out)),
            _ => Some(()),
        }
    }

    fn keeps(&mut self, filter: &Filter, item: &Value) -> Option<bool> {
        let left = self.walk(&filter.left, item)?;
        let Some((comparison, operand)) = &filter.comparison else { return Some(!left.is_empty()) };
        let right = match operand {
            Operand::Literal(right) => Some(right),
            Operand::Path(path) => self.walk(path, item)?.first().copied(),
        };
        let (Some(left), Some(right)) = (left.first(), right) else { return Some(false) };
        if let (Value::String(left), Value::String(right)) = (left, right) {
            self.visit(left.len().min(right.len()) / BYTES_PER_VISIT)?;
        }
        Some(comparison.holds(left, right))
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
    /// True between the parentheses of a filter.
    in_filter: bool,
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
            if std::mem::replace(&mut self.in_filter, true) {
                return Err("unterminated filter".to_owned());
            }
            let filter = self.filter()?;
            self.in_filter = false;
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
