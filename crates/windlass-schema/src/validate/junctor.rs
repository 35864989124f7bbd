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
        let left = self.budget.left();
        if !rules.any_of.is_empty() {
            let branches = self.branches(schema, &rules.any_of, value, old);
            result.merge(self.any_of(branches));
        }
        if !rules.one_of.is_empty() {
            let branches = self.branches(schema, &rules.one_of, value, old);
            result.merge(self.one_of(branches));
        }
        // Most errors of branches are not reported.
        self.budget.rewind(left, &result.errors);
        if !rules.all_of.is_empty() {
            let branches = self.branches(schema, &rules.all_of, value, old);
            result.merge(self.all_of(branches));
        }
        if let Some(not) = &rules.not {
            let left = self.budget.left();
            let is_valid = self.examine(schema.nested(not), value, old).errors.is_empty();
            self.budget.rewind(left, &[]);
            if is_valid {
                result.add(self.junctor_error("must not validate the schema (not)"));
            }
        }
        result
    }

    /// Checks the value against each branch.
    fn branches(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> Vec<ValidationResult> {
        let mut results = Vec::new();
        for branch in branches {
            results.push(self.examine(schema.nested(branch), value, old));
            if self.is_exhausted() {
                break;
            }
        }
        results
    }

    /// Creates an error of a junctor. A junctor has no field: the message contains the path.
    fn junctor_error(&self, text: &str) -> FieldError {
        self.error(|| FieldError::invalid(NO_FIELD, "", format!("{} {text}", go_quote(&self.path))))
    }

    fn any_of(&self, branches: Vec<ValidationResult>) -> ValidationResult {
        let mut best: Option<ValidationResult> = None;
        for branch in branches {
            if branch.errors.is_empty() {
                return branch;
            }
            if best.as_ref().is_none_or(|best| branch.matches > best.matches) {
                best = Some(branch);
            }
        }
        let mut result =
            ValidationResult::failed(self.junctor_error("must validate at least one schema (anyOf)"));
        result.merge(best.unwrap_or_default());
        result
    }

    fn one_of(&self, branches: Vec<ValidationResult>) -> ValidationResult {
        let mut best: Option<ValidationResult> = None;
        let mut first: Option<ValidationResult> = None;
        let mut valid = 0;
        for branch in branches {
            if branch.errors.is_empty() {
                valid += 1;
                best = None;
                first.get_or_insert(branch);
            } else if valid == 0 && best.as_ref().is_none_or(|best| branch.matches > best.matches) {
                best = Some(branch);
            }
        }
        if valid == 1 {
            return first.unwrap_or_default();
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        let mut result = ValidationResult::failed(
            self.junctor_error(&format!("must validate one and only one schema (oneOf). {found}")),
        );
        result.merge(best.unwrap_or_default());
        result
    }

    fn all_of(&self, branches: Vec<ValidationResult>) -> ValidationResult {
        let mut result = ValidationResult::default();
        let (mut valid, total) = (0, branches.len());
        for branch in branches {
            valid += usize::from(branch.errors.is_empty());
            result.merge(branch);
        }
        if valid != total {
            let none = if valid == 0 { ". None validated" } else { "" };
            result.add(self.junctor_error(&format!("must validate all the schemas (allOf){none}")));
        }
        result
    }
}
