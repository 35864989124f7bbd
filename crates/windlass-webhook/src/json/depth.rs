//! The nesting of JSON text, without recursion.

/// The deepest nesting that is decoded. `serde_json` refuses more than 128 levels.
pub(crate) const MAX_DEPTH: usize = 120;

/// Returns whether arrays and objects of a JSON text are nested deeper than `limit`.
///
/// The text need not be valid JSON.
pub(crate) fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
