//! Match conditions: expressions that decide whether a webhook or a policy sees a request.

use serde_json::Value;
use windlass_cel::admission::{
    CONDITIONS_BUDGET, Compiler, Declarations, Evaluation, Expression, Input, Output, Variables,
};

use super::scene::Deadline;
use super::trace::{PolicyPart, Trace};
use windlass_store::aggregate;

/// The match conditions of a webhook or a policy.
pub(super) struct Conditions(Vec<Condition>);

/// A match condition.
struct Condition {
    name: String,
    expression: Expression,
}

impl Conditions {
    /// Compiles the conditions of a webhook; `None` without conditions.
    pub(super) fn of_webhook(webhook: &Value) -> Option<Self> {
        let with = Declarations { authorizer: true, ..Declarations::default() };
        Self::compile(&webhook["matchConditions"], &Compiler::new(), with)
    }

    /// Compiles a list of conditions; `None` for an empty list.
    pub(super) fn compile(conditions: &Value, compiler: &Compiler, with: Declarations) -> Option<Self> {
        let conditions = conditions.as_array().into_iter().flatten().map(|condition| {
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            let expression = compiler.compile(text("expression"), Output::Bool, with);
            Condition { name: text("name").to_owned(), expression }
        });
        let conditions: Vec<Condition> = conditions.collect();
        (!conditions.is_empty()).then_some(Self(conditions))
    }

    /// Returns whether all conditions hold. A condition that does not hold outweighs conditions that fail.
    ///
    /// # Errors
    /// A condition fails, and no condition says no.
    pub(super) fn hold(
        &self,
        input: &Input<'_>,
        variables: &Variables,
        deadline: Deadline,
        trace: Trace<'_>,
    ) -> Result<bool, String> {
        let is_over = || deadline.is_over();
        let mut evaluation = Evaluation::new(input, variables, CONDITIONS_BUDGET, Some(&is_over));
        let mut results = Vec::with_capacity(self.0.len());
        for Condition { name, expression } in &self.0 {
            let part = || PolicyPart::Condition(name.clone());
            let result =
                trace.evaluate(&mut evaluation, expression, part).map_err(|error| error.to_string())?;
            results.push(result.map(|value| value.as_bool()));
        }
        if results.contains(&Ok(Some(false))) {
            return Ok(false);
        }
        let errors: Vec<String> = results.into_iter().filter_map(Result::err).collect();
        if errors.is_empty() { Ok(true) } else { Err(aggregate(errors)) }
    }
}
