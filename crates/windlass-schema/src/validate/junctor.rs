//! `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;

use super::result::ValidationResult;
use super::{NO_FIELD, Validator};
use crate::graph::{Node, NodeRef};
use crate::{FieldError, go_quote};

impl Validator {
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
            && self.examine(schema.nested(not), value, old).errors.is_empty()
        {
            result.add(self.error("must not validate the schema (not)"));
        }
        result
    }

    /// Creates an error of a junctor, which has no field: the message contains the path.
    fn error(&self, text: &str) -> FieldError {
        FieldError::invalid(NO_FIELD, "", format!("{} {text}", go_quote(&self.path)))
    }

    fn any_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let mut best: Option<ValidationResult> = None;
        for branch in branches {
            let branch_result = self.examine(schema.nested(branch), value, old);
            if branch_result.errors.is_empty() {
                return branch_result;
            }
            if best.as_ref().is_none_or(|best| branch_result.matches > best.matches) {
                best = Some(branch_result);
            }
        }
        let mut result = ValidationResult::failed(self.error("must validate at least one schema (anyOf)"));
        result.merge(best.unwrap_or_default());
        result
    }

    fn one_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let mut best: Option<ValidationResult> = None;
        let mut first: Option<ValidationResult> = None;
        let mut valid = 0;
        for branch in branches {
            let branch_result = self.examine(schema.nested(branch), value, old);
            if branch_result.errors.is_empty() {
                valid += 1;
                best = None;
                first.get_or_insert(branch_result);
            } else if valid == 0 && best.as_ref().is_none_or(|best| branch_result.matches > best.matches) {
                best = Some(branch_result);
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
            self.error(&format!("must validate one and only one schema (oneOf). {found}")),
        );
        result.merge(best.unwrap_or_default());
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
        let mut valid = 0;
        for branch in branches {
            let branch_result = self.examine(schema.nested(branch), value, old);
            valid += usize::from(branch_result.errors.is_empty());
            result.merge(branch_result);
        }
        if valid != branches.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            result.add(self.error(&format!("must validate all the schemas (allOf){none}")));
        }
        result
    }
}
