//! Checks of the rules in the schema of a definition.

use std::sync::Arc;

use serde_json::Value as Json;

use super::compile::{RuleCosts, RuleProblem, below, check, properties, rules_of, text};
use crate::schema::Schema;

/// The estimated cost that a rule may have, for all values that it can be evaluated on.
const RULE_LIMIT: u64 = 10_000_000;

/// The estimated cost that the rules of a schema may have together.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// The length of the issues of a schema in bytes, after which further issues are left out.
const MAX_TEXT: usize = 1 << 20;

/// The kind of a problem of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum DefinitionProblem {
    /// The rule is invalid; the error shows the rule.
    InvalidRule(Json),
    /// A field of the rule is invalid; the error shows the field.
    InvalidField(Json),
    /// The rule may cost too much.
    Forbidden,
    /// The schema has no type for the rule.
    Internal,
}

/// A problem of a rule in a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionIssue {
    /// The path, such as `schema.properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    /// The kind of the problem.
    pub problem: DefinitionProblem,
    /// The message.
    pub detail: String,
}

/// Checks the rules of the OpenAPI schema of a custom resource: expressions, paths of fields, and estimated costs.
/// Issues have paths below `path`.
pub fn check_definition(schema: &Json, path: &str) -> Vec<DefinitionIssue> {
    if !super::compile::has_rules(schema) {
        return Vec::new();
    }
    let mut checks = Checks::default();
    let place = Place { path: path.to_owned(), cardinality: Some(1), uncorrelatable: None };
    checks.visit(schema, Some(&Schema::compile(schema, true)), &place);
    checks.total(path);
    checks.issues
}

/// Returns the path and the estimated cost of each rule and message expression, for all values of an object that the
/// expression can be evaluated on.
pub fn estimate_definition(schema: &Json, path: &str) -> Vec<(String, u64)> {
    let mut checks = Checks { estimates: Some(Vec::new()), ..Checks::default() };
    let place = Place { path: path.to_owned(), cardinality: Some(1), uncorrelatable: None };
    checks.visit(schema, Some(&Schema::compile(schema, true)), &place);
    checks.estimates.unwrap_or_default()
}

/// The place of a schema in the schema of the whole object.
struct Place {
    path: String,
    /// The number of values that an object can have here, if the schema limits the number.
    cardinality: Option<u64>,
    /// The path of the list or map whose elements before and after an update do not belong together.
    uncorrelatable: Option<String>,
}

#[derive(Default)]
struct Checks {
    issues: Vec<DefinitionIssue>,
    /// The length of the issues.
    length: usize,
    /// The total of the estimated costs.
    total: u64,
    /// The most expensive expressions.
    expensive: Vec<(u64, String)>,
    /// The estimated cost of each expression, if the caller asks for the costs.
    estimates: Option<Vec<(String, u64)>>,
}

impl Checks {
    /// Checks a schema and the schemas below. Returns whether the rules have valid paths.
    fn visit(&mut self, node: &Json, schema: Option<&Arc<Schema>>, place: &Place) -> bool {
        if self.length > MAX_TEXT {
            return true;
        }
        let inner = |keyword: String, correlatable: bool| Place {
            path: format!("{}.{keyword}", place.path),
            cardinality: place.cardinality.and_then(|outer| Some(outer.saturating_mul(elements(node)?))),
            uncorrelatable: if correlatable {
                place.uncorrelatable.clone()
            } else {
                Some(place.path.clone())
            },
        };
        let mut valid = true;
        let part = |key| schema.and_then(|schema| schema.shared_part(key));
        if let Some(values) = below(node, "additionalProperties") {
            let place = inner("additionalProperties".to_owned(), true);
            valid &= self.visit(values, part("@values").as_ref(), &place);
        }
        for (name, property) in properties(node) {
            let field = schema.and_then(|schema| schema.field(name)).map(|field| &field.schema);
            let correlatable = matches!(text(node, "x-kubernetes-map-type"), "" | "granular" | "atomic");
            valid &= self.visit(property, field, &inner(format!("properties[{name}]"), correlatable));
        }
        if let Some(items) = below(node, "items") {
            let place = inner("items".to_owned(), text(node, "x-kubernetes-list-type") == "map");
            valid &= self.visit(items, part("@items").as_ref(), &place);
        }
        valid && self.rules(node, schema, place)
    }

    fn rules(&mut self, node: &Json, schema: Option<&Arc<Schema>>, place: &Place) -> bool {
        let rules = rules_of(node);
        if rules.is_empty() {
            return true;
        }
        let Some(schema) = schema.filter(|schema| schema.has_type()) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                unable to convert structural schema to CEL declarations";
            let path = format!("{}.x-kubernetes-validations", place.path);
            self.add(path, DefinitionProblem::Internal, detail);
            return true;
        };
        let mut checked = Vec::new();
        let mut length = self.length;
        for rule in rules {
            if length > MAX_TEXT {
                break;
            }
            let (issues, costs) = check(rule, node, schema);
            length += issues.iter().map(|issue| issue.detail.len()).sum::<usize>();
            checked.push((issues, costs));
        }
        let at =
            |index: usize, field: &str| format!("{}.x-kubernetes-validations[{index}].{field}", place.path);
        let mut valid = true;
        for (index, (rule, (issues, _))) in rules.iter().zip(&checked).enumerate() {
            if issues.iter().any(|issue| issue.problem == RuleProblem::FieldPath) {
                valid = false;
                let problem = DefinitionProblem::InvalidField(rule["fieldPath"].clone());
                self.add(at(index, "fieldPath"), problem, "must be a valid path");
            }
        }
        if !valid {
            return false;
        }
        for (index, (rule, (issues, costs))) in rules.iter().zip(checked).enumerate() {
            let cardinality = place.cardinality.unwrap_or_else(|| schema.max_cardinality());
            self.cost(at(index, "rule"), "rule", costs.rule.saturating_mul(cardinality));
            for issue in issues {
                let field = if issue.problem == RuleProblem::Rule { "rule" } else { "messageExpression" };
                self.add(at(index, field), DefinitionProblem::InvalidRule(rule.clone()), &issue.detail);
            }
            self.cost(at(index, "messageExpression"), "messageExpression", costs.message);
            self.old_value(rule, &costs, place, |field| at(index, field));
        }
        true
    }

    /// Checks the use of the value before an update.
    fn old_value(&mut self, rule: &Json, costs: &RuleCosts, place: &Place, at: impl Fn(&str) -> String) {
        let optional = &rule["optionalOldSelf"];
        if costs.uses_old {
            if let Some(within) = &place.uncorrelatable {
                let why = "oldSelf cannot be used on the uncorrelatable portion of the schema within";
                let problem = DefinitionProblem::InvalidField(rule["rule"].clone());
                self.add(at("rule"), problem, &format!("{why} {within}"));
            }
        } else if optional.is_boolean() {
            let detail = "may not be set if oldSelf is not used in rule";
            self.add(at("optionalOldSelf"), DefinitionProblem::InvalidField(optional.clone()), detail);
        }
    }

    fn add(&mut self, path: String, problem: DefinitionProblem, detail: &str) {
        if self.length > MAX_TEXT {
            return;
        }
        let shown = match &problem {
            DefinitionProblem::InvalidRule(value) | DefinitionProblem::InvalidField(value) => {
                value.to_string().len()
            }
            DefinitionProblem::Forbidden | DefinitionProblem::Internal => 0,
        };
        self.length += path.len() + shown + detail.len();
        self.issues.push(DefinitionIssue { path, problem, detail: detail.to_owned() });
    }

    /// Counts the estimated cost of an expression.
    fn cost(&mut self, path: String, name: &str, cost: u64) {
        if cost > RULE_LIMIT {
            let detail = too_expensive(&format!("estimated {name} cost"), cost, RULE_LIMIT);
            self.add(path.clone(), DefinitionProblem::Forbidden, &detail);
        }
        self.total = self.total.saturating_add(cost);
        if let Some(estimates) = &mut self.estimates {
            estimates.push((path.clone(), cost));
        }
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((cost, path));
        }
    }

    /// Reports a total that is too large.
    fn total(&mut self, path: &str) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        let mut expensive = std::mem::take(&mut self.expensive);
        expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        for (_, path) in expensive.into_iter().take(4) {
            self.add(path, DefinitionProblem::Forbidden, detail);
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = too_expensive(name, self.total, SCHEMA_LIMIT);
        self.add(path.to_owned(), DefinitionProblem::Forbidden, &detail);
    }
}

/// Returns the number of values that a value of the schema can have at each place directly below.
fn elements(node: &Json) -> Option<u64> {
    let limit = |name: &str| node[name].as_i64().map(|limit| limit.max(0) as u64);
    match text(node, "type") {
        "object" if below(node, "additionalProperties").is_some() => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = if times > 100.0 {
        "more than 100x".to_owned()
    } else if times < 1.5 {
        format!("{times:.6}x")
    } else {
        format!("{times:.1}x")
    };
    let advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared";
    format!("{name} exceeds budget by factor of {factor} ({advice})")
}
