//! Compiled expressions.

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

    /// Returns the fields of the variable whose fields are the results of other expressions.
    pub(crate) fn composed(&self) -> Vec<&str> {
        let Checked { ast, references, .. } = &self.checked;
        let is_composition = |id: Id| match &references[id as usize] {
            Reference::Variable(index) => self.env.is_composition(*index),
            _ => false,
        };
        let mut fields = Vec::new();
        for kind in &ast.kinds {
            match kind {
                Kind::Select { operand, field, .. } if is_composition(*operand) => fields.push(&**field),
                Kind::Call { function, arguments, .. } if **function == *operator::OPTIONAL_SELECT => {
                    if let [operand, field] = arguments.as_slice()
                        && is_composition(*operand)
                        && let Kind::Literal(Literal::String(name)) = ast.kind(*field)
                    {
                        fields.push(&**name);
                    }
                }
                _ => {}
            }
        }
        fields
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
