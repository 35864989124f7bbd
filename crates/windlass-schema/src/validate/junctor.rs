//! `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;

use super::result::ValidationResult;
use super::{NO_FIELD, Validator};
use crate::graph::{Node, NodeRef};
use crate::{FieldError, go_quote};

impl Validator<'_> {
    pub(super) fn junctors(
        &mut self,
        schema: NodeRef<'_>,
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let mut result = ValidationResult::matched();
        let Some(rules) = schema.node.rules.more.as_deref() else { return result };
        if !rules.any_of.is_empty() {
            result.merge(self.any_of(schema, &rules.any_of, value, old));
        }
        if !rules.one_of.is_empty() {
            result.merge(self.one_of(schema, &rules.one_of, value, old));
        }
        if !rules.all_of.is_empty() {
            result.merge(self.all_of(schema, &rules.all_of, value, old));
        }
        if let Some(not) = &rules.not
            && !self.outcome(schema.nested(not), value, old).is_invalid
        {
            result.add(self.junctor_error("must not validate the schema (not)"));
        }
        result
    }

    /// Checks the value without errors: most errors of branches are not reported.
    fn outcome(&mut self, schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> ValidationResult {
        let was_quiet = std::mem::replace(&mut self.is_quiet, true);
        let outcome = self.examine(schema, value, old);
        self.is_quiet = was_quiet;
        outcome
    }

    /// Adds the errors to an outcome. An outer junctor that asks for outcomes only gets the outcome: a second check at each level would double
    /// the time of each level.
    fn with_errors(
        &mut self,
        outcome: ValidationResult,
        schema: NodeRef<'_>,
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        if self.is_quiet { outcome } else { self.examine(schema, value, old) }
    }

    /// Checks the value against the branches, until as many branches are valid as `enough`.
    fn outcomes(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
        enough: usize,
    ) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for (index, branch) in branches.iter().enumerate() {
            let outcome = self.outcome(schema.nested(branch), value, old);
            if !outcome.is_invalid {
                outcomes.valid += 1;
                outcomes.first_valid.get_or_insert(outcome);
            } else if outcomes.best.as_ref().is_none_or(|(_, best)| outcome.matches > best.matches) {
                outcomes.best = Some((index, outcome));
            }
            if self.is_exhausted() || outcomes.valid >= enough {
                break;
            }
        }
        outcomes
    }

    /// Creates an error of a junctor. A junctor has no field: the message contains the path.
    fn junctor_error(&self, text: &str) -> Option<FieldError> {
        self.error(|| FieldError::invalid(NO_FIELD, "", format!("{} {text}", go_quote(&self.path))))
    }

    fn any_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let outcomes = self.outcomes(schema, branches, value, old, 1);
        if let Some(valid) = outcomes.first_valid {
            return valid;
        }
        let mut result =
            ValidationResult::failed(self.junctor_error("must validate at least one schema (anyOf)"));
        if let Some((index, outcome)) = outcomes.best {
            result.merge(self.with_errors(outcome, schema.nested(&branches[index]), value, old));
        }
        result
    }

    fn one_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let outcomes = self.outcomes(schema, branches, value, old, usize::MAX);
        let found = match (outcomes.valid, outcomes.first_valid) {
            (1, Some(valid)) => return valid,
            (0, _) => "Found none valid".to_owned(),
            (valid, _) => format!("Found {valid} valid alternatives"),
        };
        let mut result = ValidationResult::failed(
            self.junctor_error(&format!("must validate one and only one schema (oneOf). {found}")),
        );
        if let Some((index, outcome)) = outcomes.best.filter(|_| outcomes.valid == 0) {
            result.merge(self.with_errors(outcome, schema.nested(&branches[index]), value, old));
        }
        result
    }

    fn all_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let mut result = ValidationResult::default();
        let (mut valid, mut total) = (0, 0);
        for branch in branches {
            let branch = self.examine(schema.nested(branch), value, old);
            total += 1;
            valid += usize::from(!branch.is_invalid);
            result.merge(branch);
            if self.is_exhausted() {
                break;
            }
        }
        if valid != total {
            let none = if valid == 0 { ". None validated" } else { "" };
            result.add(self.junctor_error(&format!("must validate all the schemas (allOf){none}")));
        }
        result
    }
}

/// The outcomes of the branches of a junctor.
#[derive(Default)]
struct Outcomes {
    /// The number of valid branches.
    valid: usize,
    first_valid: Option<ValidationResult>,
    /// The first of the invalid branches with the most checks, and the outcome. The errors of this branch are reported.
    best: Option<(usize, ValidationResult)>,
}
