//! Compiled expressions.

use std::collections::HashSet;

use crate::ast::{Id, Kind, Literal, operator};
use crate::check::{Checked, Reference};
use crate::cost::{Range, SizeHints, estimate};
use crate::env::Env;
use crate::error::Error;
use crate::evaluate::{Activation, evaluate};
use crate::meter::Limits;
use crate::plan::{Plan, plan};
use crate::types::Type;
use crate::value::Value;

/// A compiled expression.
pub struct Program {
    checked: Checked,
    env: Env,
    plan: Result<Plan, Error>,
    /// The fields that the expression may use by name at run time, of the variable whose fields are the results of other expressions.
    composed_at_run_time: Vec<Box<str>>,
}

impl Program {
    pub(crate) fn new(checked: Checked, env: &Env) -> Self {
        let plan = plan(&checked, env);
        let composed_at_run_time = match value_of_composition(&checked, env) {
            Some(index) => env.composed_fields(index),
            None => Vec::new(),
        };
        Self { checked, env: env.clone(), plan, composed_at_run_time }
    }

    /// Returns the type of the result.
    pub fn output(&self) -> &Type {
        self.checked.type_of(self.checked.ast.root)
    }

    /// Returns the error of a constant part of the expression, such as `int('a')`. Every evaluation returns the error.
    pub fn constant_error(&self) -> Option<&Error> {
        self.plan.as_ref().err()
    }

    /// Returns whether the expression refers to a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.checked.references.iter().any(|reference| match reference {
            Reference::Variable(index) => self.env.variable_name(*index) == variable,
            _ => false,
        })
    }

    /// Returns the fields that the expression uses, of the variable whose fields are the results of other expressions.
    pub(crate) fn composed(&self) -> Vec<&str> {
        let selected = selected(&self.checked, &self.env).map(|(_, field)| field);
        selected.chain(self.composed_at_run_time.iter().map(|field| &**field)).collect()
    }

    /// Returns the depth of the expression's tree, with expanded macros.
    pub(crate) fn depth(&self) -> u32 {
        self.checked.ast.depth()
    }

    /// Returns the number of lists, maps and optionals that the result can have inside each other.
    pub(crate) fn nesting(&self) -> u32 {
        self.checked.ast.nesting()
    }

    /// Returns whether the whole expression is a literal.
    pub fn is_literal(&self) -> bool {
        matches!(self.checked.ast.kind(self.checked.ast.root), Kind::Literal(_))
    }

    /// Estimates the cost of an evaluation from the largest sizes of values.
    pub fn estimate(&self, hints: &dyn SizeHints) -> Range {
        estimate(&self.checked, &self.env, hints)
    }

    /// Evaluates the expression. Returns the result, and the cost of the evaluation.
    pub fn evaluate<'a>(
        &self,
        variables: &dyn Activation<'a>,
        limits: &Limits<'_>,
    ) -> (Result<Value<'a>, Error>, u64) {
        match &self.plan {
            Ok(plan) => evaluate(plan, variables, limits),
            Err(error) => (Err(error.clone()), 0),
        }
    }
}

/// Returns the index of the variable that a node of the tree names, if the fields of the variable are the results of other expressions.
fn composition(checked: &Checked, env: &Env, id: Id) -> Option<usize> {
    match &checked.references[id as usize] {
        Reference::Variable(index) if env.is_composition(*index) => Some(*index),
        _ => None,
    }
}

/// Returns the selections of fields whose values are the results of other expressions: the operand and the name of each field.
fn selected<'c>(checked: &'c Checked, env: &'c Env) -> impl Iterator<Item = (Id, &'c str)> {
    let found = checked.ast.kinds.iter().filter_map(|kind| match kind {
        Kind::Select { operand, field, .. } => Some((*operand, &**field)),
        Kind::Call { function, arguments, .. } if **function == *operator::OPTIONAL_SELECT => {
            let [operand, field] = arguments.as_slice() else { return None };
            match checked.ast.kind(*field) {
                Kind::Literal(Literal::String(name)) => Some((*operand, &**name)),
                _ => None,
            }
        }
        _ => None,
    });
    found.filter(|(operand, _)| composition(checked, env, *operand).is_some())
}

/// Returns the index of the variable whose fields are the results of other expressions, if the expression uses the variable itself as
/// a value.
fn value_of_composition(checked: &Checked, env: &Env) -> Option<usize> {
    let ids = 0..checked.references.len() as Id;
    let mut named = ids.filter_map(|id| Some((id, composition(checked, env, id)?))).peekable();
    named.peek()?;
    let selected: HashSet<Id> = selected(checked, env).map(|(operand, _)| operand).collect();
    named.find(|(id, _)| !selected.contains(id)).map(|(_, index)| index)
}
