//! Compiles regular expressions, in Go's dialect.

use windlass_text::Expression;

/// Compiles a regular expression. Errors have the words of Go.
pub(crate) fn compile(pattern: &str) -> Result<Expression, String> {
    Expression::compile(pattern)
}
