//! Validation of expressions: the expressions compile, and have results of the right type.

use std::collections::BTreeSet;

use windlass_cel::admission::{Compiler, Declarations, Output};

use crate::field::{Errors, Field};
use windlass_wire::names;

/// The most match conditions of a webhook or a policy.
const MAX_CONDITIONS: usize = 64;

/// Validates the match conditions of a webhook, or of a policy with or without parameters.
pub(super) fn match_conditions(conditions: &Field<'_>, has_params: bool, errors: &mut Errors) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(conditions.too_many(MAX_CONDITIONS));
    }
    let with = Declarations { params: has_params, authorizer: true, patches: false };
    let compiler = Compiler::new();
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let (expression, name) = (condition.at("expression"), condition.at("name"));
        let source = expression.text().trim();
        if source.is_empty() {
            errors.push(expression.required(""));
        } else {
            compile(&compiler, &expression, source, Output::Bool, with, errors);
        }
        name.require_check(names::label_key, errors);
        if !name.text().is_empty() && !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

/// Reports an expression that does not compile. The error shows `source`.
pub(super) fn compile(
    compiler: &Compiler,
    field: &Field<'_>,
    source: &str,
    output: Output,
    with: Declarations,
    errors: &mut Errors,
) {
    if let Some(error) = compiler.compile(source, output, with).error() {
        errors.push(if is_internal(error) { field.internal(error) } else { field.invalid_as(source, error) });
    }
}

/// Returns whether kube-apiserver reports an error of the compiler as an error of the server: constants that cannot be computed.
fn is_internal(error: &str) -> bool {
    error.starts_with("program instantiation failed")
}

/// Validates the variables of a policy, and declares the variables for expressions that are validated later.
pub(super) fn variables(
    variables: &Field<'_>,
    compiler: &mut Compiler,
    with: Declarations,
    errors: &mut Errors,
) {
    for variable in variables.items() {
        let (name, expression) = (variable.at("name"), variable.at("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.text().trim().is_empty() {
            errors.push(expression.required("expression is not specified"));
        } else if let Err(error) = compiler.add_variable(name.text(), expression.text(), with) {
            let is_internal = is_internal(&error);
            errors.push(if is_internal { expression.internal(error) } else { expression.invalid(error) });
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !windlass_cel::is_reserved(name)
}
