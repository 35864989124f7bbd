//! A path in a command line that a person copies.

use std::path::Path;

/// Characters beside letters and digits that have no meaning in a shell.
const PLAIN: &str = "/._-+:@%,=";

/// Returns a path as a word of a POSIX shell. A path with a space or another special character is in single
/// quotes.
///
/// ```
/// use windlass_dev::shell_word;
///
/// assert_eq!(shell_word("/home/ann/.windlass/kubeconfig".as_ref()), "/home/ann/.windlass/kubeconfig");
/// assert_eq!(shell_word("/home/ann/my work/it's".as_ref()), r"'/home/ann/my work/it'\''s'");
/// ```
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
