//! Evaluates the expressions of a validating policy.

use serde_json::Value;
use windlass_cel::admission::{Evaluation, Input, OutOfBudget, POLICY_BUDGET};

use super::{Annotation, ValidatingPolicy, Validation};
use crate::admission::Objects;
use crate::admission::scene::{Deadline, Scene};
use crate::admission::trace::{PolicyPart, Trace};

/// The length of the longest message that an expression computes, in bytes.
const MAX_MESSAGE: usize = 5 << 10;

/// The result of an expression: a value, or the text of an error.
type Outcome<'a> = Result<windlass_cel::Value<'a>, String>;

/// The violations of a policy.
#[derive(Default)]
pub(super) struct Found {
    pub(super) violations: Vec<Violation>,
    /// The failures that the failure policy ignores.
    pub(super) ignored: Vec<String>,
    /// The errors of audit annotations, which deny the request.
    pub(super) annotation_errors: Vec<String>,
}

/// An expression that is false or fails.
pub(super) struct Violation {
    pub(super) message: String,
    /// The reason of the error for the client.
    pub(super) reason: String,
}

impl ValidatingPolicy {
    /// Evaluates the policy with some parameters.
    pub(super) fn evaluate(
        &self,
        scene: &Scene,
        objects: Objects<'_>,
        params: &Value,
        deadline: Deadline,
        trace: Trace<'_>,
    ) -> Found {
        let definition = &self.definition;
        if let Some(conditions) = &definition.conditions {
            let input = scene.conditions(objects, params);
            match conditions.hold(&input, &definition.variables, deadline, trace) {
                Ok(true) => {}
                Ok(false) => return Found::default(),
                Err(error) => return self.failed(error),
            }
        }
        let input = scene.input(objects, params);
        // Neither messages nor audit annotations can ask the authorizer.
        let without_authorizer = Input { authorizer: None, ..input.clone() };
        let (results, budget) = match self.validations(&input, deadline, trace) {
            Ok(found) => found,
            Err(error) => return self.failed(error.to_string()),
        };
        let messages = self.messages(&without_authorizer, budget, deadline, trace);
        let mut found = self.violations(&results, &messages);
        match self.annotations(&without_authorizer, deadline, trace) {
            Ok(errors) => found.annotation_errors = errors,
            Err(error) => found = self.failed(error.to_string()),
        }
        found
    }

    /// Returns the violation of a policy that could not be evaluated.
    fn failed(&self, message: String) -> Found {
        let mut found = Found::default();
        self.fail(message, &mut found);
        found
    }

    /// Adds the failure of an expression.
    fn fail(&self, message: String, found: &mut Found) {
        if self.definition.ignores_failure {
            found.ignored.push(message);
        } else {
            found.violations.push(Violation { message, reason: "Invalid".to_owned() });
        }
    }

    /// Evaluates the validations. Returns the results, and the rest of the budget.
    fn validations<'a>(
        &self,
        input: &Input<'a>,
        deadline: Deadline,
        trace: Trace<'_>,
    ) -> Result<(Vec<Outcome<'a>>, i64), OutOfBudget> {
        let is_over = || deadline.is_over();
        let mut evaluation =
            Evaluation::new(input, &self.definition.variables, POLICY_BUDGET, Some(&is_over));
        let mut results = Vec::with_capacity(self.validations.len());
        for (index, validation) in self.validations.iter().enumerate() {
            let part = || PolicyPart::Validation(index);
            results.push(trace.evaluate(&mut evaluation, &validation.expression, part)?);
        }
        Ok((results, evaluation.budget()))
    }

    /// Evaluates the expressions of messages.
    fn messages<'a>(
        &self,
        input: &Input<'a>,
        budget: i64,
        deadline: Deadline,
        trace: Trace<'_>,
    ) -> Result<Vec<Option<Outcome<'a>>>, OutOfBudget> {
        let is_over = || deadline.is_over();
        let mut evaluation = Evaluation::new(input, &self.definition.variables, budget, Some(&is_over));
        let mut message = |(index, validation): (usize, &Validation)| {
            let part = || PolicyPart::Message(index);
            let expression = validation.message_expression.as_ref();
            expression.map(|expression| trace.evaluate(&mut evaluation, expression, part)).transpose()
        };
        self.validations.iter().enumerate().map(&mut message).collect()
    }

    fn violations(
        &self,
        results: &[Outcome<'_>],
        messages: &Result<Vec<Option<Outcome<'_>>>, OutOfBudget>,
    ) -> Found {
        let mut found = Found::default();
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            let value = match (result, messages) {
                (Err(error), _) => {
                    self.fail(error.clone(), &mut found);
                    continue;
                }
                (Ok(_), Err(error)) => {
                    self.fail(format!("failed messageExpression: {error}"), &mut found);
                    continue;
                }
                (Ok(value), Ok(_)) => value,
            };
            if value.as_bool() != Some(true) {
                let computed = messages.as_ref().ok().and_then(|messages| messages.get(index)?.as_ref());
                let message = validation.message(computed);
                found.violations.push(Violation { message, reason: validation.reason.clone() });
            }
        }
        found
    }

    /// Evaluates the values of audit annotations. Returns the errors.
    fn annotations(
        &self,
        input: &Input<'_>,
        deadline: Deadline,
        trace: Trace<'_>,
    ) -> Result<Vec<String>, OutOfBudget> {
        let is_over = || deadline.is_over();
        let mut evaluation =
            Evaluation::new(input, &self.definition.variables, POLICY_BUDGET, Some(&is_over));
        let mut errors = Vec::new();
        for Annotation { key, expression } in &self.annotations {
            let part = || PolicyPart::Annotation(key.clone());
            errors.extend(trace.evaluate(&mut evaluation, expression, part)?.err());
        }
        if self.definition.ignores_failure {
            errors.clear();
        }
        Ok(errors)
    }
}

impl Validation {
    /// Returns the message for a violation. `computed` is the result of the expression for messages.
    fn message(&self, computed: Option<&Outcome<'_>>) -> String {
        let computed = computed.and_then(|result| result.as_ref().ok()).and_then(|value| value.as_str());
        let is_usable = |text: &&str| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        match computed.map(str::trim).filter(is_usable) {
            Some(message) => message.to_owned(),
            None if !self.message.is_empty() => self.message.clone(),
            None => format!("failed expression: {}", self.expression.source().trim()),
        }
    }
}
