//! The differences that are known.

/// Parts of signatures.
pub struct Known {
    parts: Vec<String>,
}

impl Known {
    /// Reads `known.txt`, the list that belongs to this package.
    pub fn list() -> Self {
        Self::parse(include_str!("../known.txt"))
    }

    /// Reads a list: one part of a signature on each line, and comments that begin with `#`.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Known { parts: lines.map(str::to_owned).collect() }
    }

    /// Whether a signature is in the list.
    pub fn covers(&self, signature: &str) -> bool {
        self.parts.iter().any(|part| signature.contains(part))
    }
}
