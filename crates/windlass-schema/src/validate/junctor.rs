//! `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;

use super::verdict::Verdict;
use super::{NO_FIELD, Walk};
use crate::graph::{Node, NodeRef};
use crate::{FieldError, go_quote};

impl Walk {
    pub(super) fn junctors(&mut self, schema: NodeRef<'_>, value: &Value, old: Option<&Value>) -> Verdict {
        let mut verdict = Verdict::matched();
        let Some(rules) = schema.node.rules.more.as_deref() else { return verdict };
        if !rules.any_of.is_empty() {
            verdict.merge(self.any_of(schema, &rules.any_of, value, old));
        }
        if !rules.one_of.is_empty() {
            verdict.merge(self.one_of(schema, &rules.one_of, value, old));
        }
        if !rules.all_of.is_empty() {
            verdict.merge(self.all_of(schema, &rules.all_of, value, old));
        }
        if let Some(not) = &rules.not
            && self.examine(schema.nested(not), value, old).errors.is_empty()
        {
            verdict.add(self.complaint("must not validate the schema (not)"));
        }
        verdict
    }

    /// An error of a junctor concerns no field; its text names the place.
    fn complaint(&self, text: &str) -> FieldError {
        FieldError::invalid(NO_FIELD, "", format!("{} {text}", go_quote(&self.path)))
    }

    fn any_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> Verdict {
        let mut best: Option<Verdict> = None;
        for branch in branches {
            let result = self.examine(schema.nested(branch), value, old);
            if result.errors.is_empty() {
                return result;
            }
            if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        let mut verdict = Verdict::of(self.complaint("must validate at least one schema (anyOf)"));
        verdict.merge(best.unwrap_or_default());
        verdict
    }

    fn one_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> Verdict {
        let mut best: Option<Verdict> = None;
        let mut first: Option<Verdict> = None;
        let mut valid = 0;
        for branch in branches {
            let result = self.examine(schema.nested(branch), value, old);
            if result.errors.is_empty() {
                valid += 1;
                best = None;
                first.get_or_insert(result);
            } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        if valid == 1 {
            return first.unwrap_or_default();
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        let mut verdict =
            Verdict::of(self.complaint(&format!("must validate one and only one schema (oneOf). {found}")));
        verdict.merge(best.unwrap_or_default());
        verdict
    }

    fn all_of(
        &mut self,
        schema: NodeRef<'_>,
        branches: &[Node],
        value: &Value,
        old: Option<&Value>,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let mut valid = 0;
        for branch in branches {
            let result = self.examine(schema.nested(branch), value, old);
            valid += usize::from(result.errors.is_empty());
            verdict.merge(result);
        }
        if valid != branches.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            verdict.add(self.complaint(&format!("must validate all the schemas (allOf){none}")));
        }
        verdict
    }
}
