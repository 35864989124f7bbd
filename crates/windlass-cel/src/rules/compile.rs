//! Compiles the rules of a schema.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{ViolationKind, field_path};
use crate::env::Env;
use crate::program::Program;
use crate::schema::Schema;
use crate::types::Type;

/// A level of a schema that has rules, or whose parts have rules.
pub(super) struct Node {
    pub(super) schema: Arc<Schema>,
    /// The type in the schema, such as `object`.
    pub(super) kind: String,
    pub(super) rules: Vec<Rule>,
    /// The reason why the rules cannot be compiled.
    pub(super) error: Option<&'static str>,
    pub(super) items: Option<Box<Node>>,
    pub(super) additional: Option<Box<Node>>,
    /// The fields with rules, in the order of their names.
    properties: Vec<(String, Node)>,
    pub(super) all_of: Vec<Node>,
    /// True if the members of an object before and after an update belong together.
    pub(super) correlatable: bool,
}

/// A rule.
pub(super) struct Rule {
    /// The program, or the error of the compilation. `None` for an empty rule.
    pub(super) program: Result<Option<Program>, String>,
    pub(super) message_expression: Option<Program>,
    pub(super) message_source: String,
    source: String,
    message: String,
    pub(super) kind: ViolationKind,
    /// The path of the field that the error is about, from the value on.
    pub(super) field_path: Option<String>,
    pub(super) uses_old: bool,
    pub(super) optional_old: bool,
}

pub(super) fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_default()
}

pub(super) fn rules_of(schema: &Json) -> &[Json] {
    schema["x-kubernetes-validations"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the schema below a keyword.
pub(super) fn below<'a>(schema: &'a Json, name: &str) -> Option<&'a Json> {
    schema.get(name).filter(|schema| schema.is_object())
}

pub(super) fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Returns whether a schema has rules at any level.
pub(super) fn has_rules(schema: &Json) -> bool {
    !rules_of(schema).is_empty()
        || below(schema, "items").is_some_and(has_rules)
        || below(schema, "additionalProperties").is_some_and(has_rules)
        || properties(schema).any(|(_, property)| has_rules(property))
}

impl Node {
    /// Compiles the rules of a resource's schema.
    pub(super) fn compile(env: &Env, schema: &Json) -> Option<Self> {
        build(env, schema, schema, &Schema::compile(schema, true))
    }

    /// Returns the rules of a field.
    pub(super) fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }
}

/// Compiles the rules of `validation`, which is the schema `node` or one of its `allOf`.
fn build(env: &Env, validation: &Json, node: &Json, schema: &Arc<Schema>) -> Option<Node> {
    let has_type = schema.has_type();
    let sources = rules_of(validation);
    let error = (!sources.is_empty() && !has_type)
        .then_some("failed to convert to declType for CEL validation rules");
    let rules: Vec<Rule> = if has_type {
        sources.iter().map(|source| compile_rule(env, source, node, schema)).collect()
    } else {
        Vec::new()
    };
    let part = |name: &str, key: &str| {
        let (inner, of_node) = (below(validation, name)?, below(node, name)?);
        build(env, inner, of_node, &schema.shared_part(key)?).map(Box::new)
    };
    let items = part("items", "@items");
    let additional = part("additionalProperties", "@values");
    let mut fields = Vec::new();
    for (name, property) in properties(validation) {
        let of_node = &node["properties"][name];
        if let Some(field) = schema.field(name).filter(|field| field.schema.has_type() && of_node.is_object())
            && let Some(built) = build(env, property, of_node, &field.schema)
        {
            fields.push((name.clone(), built));
        }
    }
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    let all_of = validation["allOf"].as_array().into_iter().flatten();
    let all_of: Vec<Node> = all_of.filter_map(|nested| build(env, nested, node, schema)).collect();
    let empty = rules.is_empty()
        && error.is_none()
        && items.is_none()
        && additional.is_none()
        && fields.is_empty()
        && all_of.is_empty();
    let map_type = text(node, "x-kubernetes-map-type");
    (!empty).then(|| Node {
        schema: Arc::clone(schema),
        kind: text(node, "type").to_owned(),
        rules,
        error,
        items,
        additional,
        properties: fields,
        all_of,
        correlatable: matches!(map_type, "" | "granular" | "atomic"),
    })
}

/// Returns the environment of a rule.
fn environment(env: &Env, rule: &Json, schema: &Arc<Schema>) -> Env {
    let known = Type::of_schema(schema, "selfType");
    let optional = rule["optionalOldSelf"].as_bool().unwrap_or_default();
    let old = if optional { Type::optional(known.clone()) } else { known.clone() };
    env.clone().with_variable("self", known).with_variable("oldSelf", old)
}

/// Compiles an expression whose result has a type.
fn expression(env: &Env, source: &str, expected: &Type) -> Result<Program, (String, Problem)> {
    let program = env.compile(source).map_err(|issues| (issues.to_string(), Problem::Compilation))?;
    if program.output() != expected {
        return Err((expected.to_string(), Problem::Type));
    }
    match program.constant_error() {
        Some(error) => Err((error.to_string(), Problem::Constant)),
        None => Ok(program),
    }
}

/// The reason why an expression does not compile.
enum Problem {
    Compilation,
    Type,
    Constant,
}

fn rule_program(env: &Env, source: &str) -> Result<Program, String> {
    expression(env, source, &Type::Bool).map_err(|(text, problem)| match problem {
        Problem::Compilation => format!("compilation failed: {text}"),
        Problem::Type => "cel expression must evaluate to a bool".to_owned(),
        Problem::Constant => format!("program instantiation failed: {text}"),
    })
}

fn message_program(env: &Env, source: &str) -> Result<Program, String> {
    expression(env, source, &Type::String).map_err(|(text, problem)| match problem {
        Problem::Compilation => format!("messageExpression compilation failed: {text}"),
        Problem::Type => "messageExpression must evaluate to a string".to_owned(),
        Problem::Constant => format!("messageExpression instantiation failed: {text}"),
    })
}

fn compile_rule(env: &Env, rule: &Json, node: &Json, schema: &Arc<Schema>) -> Rule {
    let env = environment(env, rule, schema);
    let source = text(rule, "rule");
    let program = if source.trim().is_empty() { Ok(None) } else { rule_program(&env, source).map(Some) };
    let uses_old = matches!(&program, Ok(Some(program)) if program.uses("oldSelf"));
    let message_source = text(rule, "messageExpression");
    let message_expression =
        if message_source.is_empty() { None } else { message_program(&env, message_source).ok() };
    let field = text(rule, "fieldPath");
    Rule {
        program,
        message_expression,
        message_source: message_source.to_owned(),
        source: source.to_owned(),
        message: text(rule, "message").to_owned(),
        kind: match text(rule, "reason") {
            "FieldValueForbidden" => ViolationKind::Forbidden,
            "FieldValueRequired" => ViolationKind::Required,
            "FieldValueDuplicate" => ViolationKind::Duplicate,
            _ => ViolationKind::Invalid,
        },
        field_path: if field.is_empty() { None } else { field_path::normalize(field, node).ok() },
        uses_old,
        optional_old: rule["optionalOldSelf"].as_bool().unwrap_or_default(),
    }
}

impl Rule {
    /// Returns the text that stands for the rule in messages.
    pub(super) fn text(&self) -> &str {
        if self.message.is_empty() { self.source.trim() } else { self.message.trim() }
    }

    pub(super) fn default_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.source.trim())
        } else {
            self.message.trim().to_owned()
        }
    }
}

/// An expression of a rule that a definition may not have.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleIssue {
    /// The place of the problem in the rule.
    pub problem: RuleProblem,
    /// The message.
    pub detail: String,
}

/// The part of a rule that has a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleProblem {
    /// The field `rule`.
    Rule,
    /// The field `messageExpression`.
    MessageExpression,
    /// The field `fieldPath`.
    FieldPath,
}

/// The largest estimated costs of a rule that compiles.
pub struct RuleCosts {
    /// The cost of the rule.
    pub rule: u64,
    /// The cost of the message expression, or 0.
    pub message: u64,
    /// True if the rule uses `oldSelf`.
    pub uses_old: bool,
}

/// Checks a rule at a level of a schema: compiles its expressions, and estimates their costs.
pub fn check(rule: &Json, node: &Json, schema: &Arc<Schema>) -> (Vec<RuleIssue>, RuleCosts) {
    let mut issues = Vec::new();
    let mut costs = RuleCosts { rule: 0, message: 0, uses_old: false };
    let env = environment(&Env::kubernetes(), rule, schema);
    let source = text(rule, "rule");
    if source.trim().is_empty() {
        return (issues, costs);
    }
    match rule_program(&env, source) {
        Ok(program) => {
            costs.rule = program.estimate(&**schema).max;
            costs.uses_old = program.uses("oldSelf");
        }
        Err(detail) => {
            issues.push(RuleIssue { problem: RuleProblem::Rule, detail });
            return (issues, costs);
        }
    }
    let message = text(rule, "messageExpression");
    if !message.is_empty() {
        match message_program(&env, message) {
            Ok(program) => costs.message = program.estimate(&**schema).max,
            Err(detail) => issues.push(RuleIssue { problem: RuleProblem::MessageExpression, detail }),
        }
    }
    let field = text(rule, "fieldPath");
    if !field.is_empty()
        && let Err(detail) = field_path::normalize(field, node)
    {
        issues.push(RuleIssue { problem: RuleProblem::FieldPath, detail });
    }
    (issues, costs)
}
