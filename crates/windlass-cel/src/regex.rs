//! Compiles regular expressions, in Go's dialect.

/// Compiles a regular expression. Errors have the words of Go.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, String> {
    windlass_text::compile_pattern(pattern)
}
