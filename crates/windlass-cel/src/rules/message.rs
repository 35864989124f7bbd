//! Messages that an expression computes.

use windlass_text::go_quote;

use super::Variables;
use crate::error::ErrorKind;
use crate::meter::Limits;
use crate::program::Program;

/// The length of the longest message, in bytes.
const MAX_LENGTH: usize = 5 << 10;

/// Evaluates a message. Returns the message, if the expression has a usable one, and the rest of the budget. An error ends
/// the validation.
pub(super) fn evaluate(
    program: &Program,
    source: &str,
    variables: &Variables<'_>,
    budget: i64,
    limits: &Limits<'_>,
) -> Result<(Option<String>, i64), String> {
    let (result, cost) = program.evaluate(variables, limits);
    let Some(rest) =
        i64::try_from(cost).ok().and_then(|cost| budget.checked_sub(cost)).filter(|rest| *rest >= 0)
    else {
        return Err(
            "messageExpression evaluation failed due to running out of cost budget, no further validation \
                    rules will be run"
                .to_owned(),
        );
    };
    match result {
        Err(error) if error.kind() == ErrorKind::CostLimit => Err(format!(
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
            go_quote(source)
        )),
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ResourceLimit) => {
            Err(format!(
                "no further validation rules will be run due to the resources that messageExpression needs: {}",
                go_quote(source)
            ))
        }
        Err(_) => Ok((None, rest)),
        Ok(value) => {
            let text = value.as_str().map(str::trim).unwrap_or_default();
            let usable = !text.is_empty() && text.len() <= MAX_LENGTH && !text.contains('\n');
            Ok((usable.then(|| text.to_owned()), rest))
        }
    }
}
