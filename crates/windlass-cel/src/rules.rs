//! The validation rules of a custom resource, at all levels of its schema.

mod definition;

mod compile;
mod correlation;
mod field_path;
mod message;

use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json};

use crate::env::Env;
use crate::error::{Error, ErrorKind};
use crate::evaluate::Activation;
use crate::meter::Limits;
use crate::value::Value;
use compile::{Node, Rule};
use correlation::{Correlation, LastComparison};

pub use compile::{RuleCosts, RuleIssue, RuleProblem, check};
pub use definition::{DefinitionIssue, DefinitionProblem, check_definition, estimate_definition};
pub use field_path::{FieldPath, normalize as normalize_field_path, resolve_dotted as resolve_field_path};

/// The cost that the evaluation of a rule may have.
pub const CALL_LIMIT: u64 = 1_000_000;

/// The cost that the rules of an object may have together.
const OBJECT_LIMIT: i64 = 10_000_000;

/// The time that the rules of an object may take together.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The compiled rules of a schema.
pub struct Rules {
    root: Node,
}

/// The kind of a violation: the kind of the error of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// The value is invalid.
    Invalid,
    /// The value is not permitted.
    Forbidden,
    /// A value is missing.
    Required,
    /// The value occurs twice.
    Duplicate,
}

/// A rule that does not hold, or that could not be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The kind of the error.
    pub kind: ViolationKind,
    /// The path of the value, such as `spec.ports[0]`; empty for the whole object.
    pub path: String,
    /// The value that the error shows.
    pub value: Option<Json>,
    /// The message.
    pub detail: String,
}

/// The violations of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Violations {
    /// The violations that refuse the object.
    pub errors: Vec<Violation>,
    /// The violations of values that an update does not change, which do not refuse the object.
    pub unchanged: Vec<Violation>,
}

impl Rules {
    /// Compiles the rules of the OpenAPI schema of a custom resource. Returns `None` if there are no rules.
    pub fn compile(schema: &Json) -> Option<Self> {
        if !compile::has_rules(schema) {
            return None;
        }
        Node::compile(&Env::kubernetes(), schema).map(|root| Self { root })
    }

    /// Evaluates the rules on an object. `old` is the object before an update.
    pub fn validate(&self, object: &Json, old: Option<&Json>) -> Violations {
        let end = Instant::now() + MAX_TIME;
        let mut run =
            Run { end, budget: OBJECT_LIMIT, found: Violations::default(), last: LastComparison::default() };
        let correlation = Correlation::root(object, old, &self.root.schema);
        run.visit(&self.root, &mut String::new(), object, old, correlation);
        run.found
    }
}

/// An evaluation of the rules of an object. A negative budget ends it.
struct Run<'a> {
    /// The time at which the evaluation is interrupted.
    end: Instant,
    budget: i64,
    found: Violations,
    last: LastComparison<'a>,
}

impl<'a> Run<'a> {
    fn visit(
        &mut self,
        node: &'a Node,
        path: &mut String,
        value: &'a Json,
        old: Option<&'a Json>,
        at: Correlation<'a>,
    ) {
        if value.is_null() {
            return;
        }
        self.rules(node, path, value, old, at);
        for nested in &node.all_of {
            if self.budget >= 0 {
                self.visit(nested, path, value, old, at.without_current());
            }
        }
        match value {
            Json::Array(items) => self.items(node, path, items, old, at),
            Json::Object(members) => self.members(node, path, members, old, at),
            _ => {}
        }
    }

    fn items(
        &mut self,
        node: &'a Node,
        path: &mut String,
        items: &'a [Json],
        old: Option<&'a Json>,
        at: Correlation<'a>,
    ) {
        let Some(of_items) = &node.items else { return };
        let known = correlation::by_keys(&node.schema, old);
        let at_items = at.old_items(&node.schema);
        for (index, item) in items.iter().enumerate() {
            if self.budget < 0 {
                return;
            }
            let old_item = known.get(item);
            let length = path.len();
            path.extend(["[", &index.to_string(), "]"]);
            self.visit(of_items, path, item, old_item, at.item(item, &at_items, &of_items.schema));
            path.truncate(length);
        }
    }

    fn members(
        &mut self,
        node: &'a Node,
        path: &mut String,
        members: &'a Map<String, Json>,
        old: Option<&'a Json>,
        at: Correlation<'a>,
    ) {
        let old = old.filter(|_| node.correlatable).and_then(Json::as_object);
        for (name, member) in members {
            let of_member = match &node.additional {
                Some(additional) => Some(&**additional),
                None => node.property(name),
            };
            let Some(of_member) = of_member else { continue };
            if self.budget < 0 {
                return;
            }
            let length = path.len();
            match &node.additional {
                Some(_) => path.extend(["[", name, "]"]),
                None if path.is_empty() => path.push_str(name),
                None => path.extend([".", name]),
            }
            let old_member = old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
            self.visit(of_member, path, member, old_member, at.member(name, member, &of_member.schema));
            path.truncate(length);
        }
    }

    /// Evaluates the rules of a node.
    fn rules(
        &mut self,
        node: &Node,
        path: &str,
        value: &'a Json,
        old: Option<&'a Json>,
        at: Correlation<'a>,
    ) {
        if let Some(error) = &node.error {
            self.invalid(path, node, format!("rule compiler initialization error: {error}"));
            return;
        }
        if node.rules.is_empty() {
            return;
        }
        if self.budget <= 0 {
            self.out_of_budget(path, node);
            return;
        }
        for rule in &node.rules {
            if self.budget < 0 {
                return;
            }
            if self.is_late() {
                self.invalid(
                    path,
                    node,
                    "validation failed due to running out of time, no further validation rules will be run"
                        .to_owned(),
                );
                self.budget = -1;
                return;
            }
            self.rule(rule, node, path, value, old, at);
        }
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.end
    }

    fn invalid(&mut self, path: &str, node: &Node, detail: String) {
        let value = Some(Json::from(node.kind.as_str()));
        let violation = Violation { kind: ViolationKind::Invalid, path: path.to_owned(), value, detail };
        self.found.errors.push(violation);
    }

    fn out_of_budget(&mut self, path: &str, node: &Node) {
        let detail =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        self.invalid(path, node, detail.to_owned());
        self.budget = -1;
    }

    fn rule(
        &mut self,
        rule: &Rule,
        node: &Node,
        path: &str,
        value: &'a Json,
        old: Option<&'a Json>,
        at: Correlation<'a>,
    ) {
        let program = match &rule.program {
            Ok(Some(program)) => program,
            Ok(None) => return,
            Err(error) => {
                self.invalid(path, node, format!("rule compile error: {error}"));
                return;
            }
        };
        if rule.uses_old && old.is_none() && !rule.optional_old {
            return;
        }
        let variables = Variables { node, value, old, optional: rule.optional_old };
        let is_late = || self.is_late();
        let limits = Limits { cost: CALL_LIMIT, interrupt: Some(&is_late), shared: None };
        let (result, cost) = program.evaluate(&variables, &limits);
        if i64::try_from(cost).map_or(true, |cost| cost > self.budget) {
            self.out_of_budget(path, node);
            return;
        }
        self.budget -= cost as i64;
        match result {
            Ok(Value::Bool(true)) => {}
            Ok(_) => self.violated(rule, &variables, path, at),
            Err(error) => self.failed(rule, node, path, &error),
        }
    }

    /// Reports a rule whose evaluation has failed.
    fn failed(&mut self, rule: &Rule, node: &Node, path: &str, error: &Error) {
        let text = rule.text();
        let message = error.to_string();
        if message.starts_with("no such overload") {
            let why =
                "call arguments did not match a supported operator, function or macro signature for rule";
            self.invalid(path, node, format!("'{message}': {why}: {text}"));
        } else if error.kind() == ErrorKind::CostLimit {
            let why = "no further validation rules will be run due to call cost exceeds limit for rule";
            self.invalid(path, node, format!("'{message}': {why}: {text}"));
            self.budget = -1;
        } else if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ResourceLimit) {
            let why = "no further validation rules will be run due to the resources that the rule needs";
            self.invalid(path, node, format!("'{message}': {why}: {text}"));
            self.budget = -1;
        } else {
            self.invalid(path, node, format!("{message} evaluating rule: {text}"));
        }
    }

    /// Reports a rule that does not hold.
    fn violated(&mut self, rule: &Rule, variables: &Variables<'_>, path: &str, at: Correlation<'a>) {
        let node = variables.node;
        let path = match &rule.field_path {
            Some(field) if path.is_empty() => field.clone(),
            Some(field) => format!("{path}.{field}"),
            None => path.to_owned(),
        };
        let unchanged = !rule.uses_old && at.is_unchanged(&mut self.last);
        let mut message = None;
        if let Some(expression) = &rule.message_expression {
            let is_late = || self.is_late();
            let limits = Limits { cost: CALL_LIMIT, interrupt: Some(&is_late), shared: None };
            match message::evaluate(expression, &rule.message_source, variables, self.budget, &limits) {
                Ok((text, rest)) => {
                    message = text;
                    self.budget = rest;
                }
                Err(detail) => {
                    let value = Some(Json::from(node.kind.as_str()));
                    self.add(unchanged, Violation { kind: ViolationKind::Invalid, path, value, detail });
                    self.budget = -1;
                    return;
                }
            }
        }
        let detail = message.unwrap_or_else(|| rule.default_message());
        let hidden = matches!(node.kind.as_str(), "object" | "array");
        let value = (!hidden).then(|| variables.value.clone());
        let violation = match rule.kind {
            ViolationKind::Duplicate => Violation { kind: rule.kind, path, value, detail: String::new() },
            ViolationKind::Invalid => Violation { kind: rule.kind, path, value, detail },
            kind => Violation { kind, path, value: None, detail },
        };
        self.add(unchanged, violation);
    }

    fn add(&mut self, unchanged: bool, violation: Violation) {
        if unchanged { self.found.unchanged.push(violation) } else { self.found.errors.push(violation) }
    }
}

/// The variables of a rule: `self` and `oldSelf`.
struct Variables<'a> {
    node: &'a Node,
    value: &'a Json,
    old: Option<&'a Json>,
    optional: bool,
}

impl<'a> Activation<'a> for Variables<'a> {
    fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        let schema = &*self.node.schema;
        if index == 0 {
            return Some(Value::with_schema(self.value, schema));
        }
        let old = self.old.map(|old| Value::with_schema(old, schema));
        match (old, self.optional) {
            (Some(old), true) => Some(old.map(Value::some)),
            (None, true) => Some(Ok(Value::Optional(None))),
            (old, false) => old,
        }
    }
}
