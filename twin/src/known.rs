//! The differences that are known.

/// Stands for any text between the parts of a line.
const GAP: &str = " … ";

/// Parts of signatures.
pub struct Known {
    parts: Vec<String>,
}

impl Known {
    /// Reads `known.txt`, the list that belongs to this package.
    pub fn list() -> Self {
        Self::parse(include_str!("../known.txt"))
    }

    /// Reads a list: a part of a signature on each line, and comments that begin with `#`.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Known { parts: lines.map(str::to_owned).collect() }
    }

    /// Returns whether a signature is in the list.
    pub fn covers(&self, signature: &str) -> bool {
        let contains = |line: &String| {
            let mut parts = line.split(GAP);
            parts
                .try_fold(signature, |rest, part| rest.split_once(part.trim()).map(|(_, rest)| rest))
                .is_some()
        };
        self.parts.iter().any(contains)
    }
}
