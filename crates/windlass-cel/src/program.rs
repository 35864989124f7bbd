//! Compiled expressions.

use crate::ast::Kind;
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
}

impl Program {
    pub(crate) fn new(checked: Checked, env: &Env) -> Self {
        let plan = plan(&checked, env);
        Self { checked, env: env.clone(), plan }
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
