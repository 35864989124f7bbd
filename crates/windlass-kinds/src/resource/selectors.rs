//! Expressions that select devices.

use windlass_cel::devices::{Problem, check};

use super::limits::is_beyond;
use crate::field::{Errors, Field};

/// The largest number of selectors of a class or a request.
const MOST_SELECTORS: usize = 32;
/// The length of the longest expression, in bytes.
const LONGEST_EXPRESSION: usize = 10 * 1024;

/// Validates selectors. The expressions of stored selectors are known to be valid.
pub(super) fn selectors(list: &Field<'_>, are_stored: bool, errors: &mut Errors) {
    if is_beyond(list, MOST_SELECTORS, errors) {
        return;
    }
    for selector in list.items() {
        let cel = selector.at("cel");
        if !cel.is_set() {
            errors.push(cel.required(""));
        } else if !are_stored {
            expression(&cel.at("expression"), errors);
        }
    }
}

fn expression(expression: &Field<'_>, errors: &mut Errors) {
    let source = expression.text();
    if source.len() > LONGEST_EXPRESSION {
        errors.push(expression.too_long(LONGEST_EXPRESSION));
        return;
    }
    match check(source) {
        Ok(()) => {}
        Err(Problem::Invalid(why)) => errors.push(expression.invalid_as(source, why)),
        Err(Problem::Constant(why)) => errors.push(expression.internal(why)),
        Err(Problem::TooComplex) => errors.push(expression.forbidden("too complex, exceeds cost limit")),
    }
}
