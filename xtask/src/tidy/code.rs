//! The names that the Rust sources of the workspace define and use.

use std::collections::BTreeSet;

use super::files::{read, rust_files};
use crate::Result;
use crate::project::Package;

/// The names in the sources, without comments.
#[derive(Default)]
pub(super) struct Names {
    /// Names after `struct`, `enum`, `trait`, `type` and similar keywords, and names in `use` declarations.
    defined: BTreeSet<String>,
    /// Every identifier.
    used: BTreeSet<String>,
}

const KEYWORDS: &[&str] =
    &["const", "enum", "fn", "macro_rules", "mod", "static", "struct", "trait", "type", "union"];

impl Names {
    pub(super) fn of(packages: &[Package]) -> Result<Self> {
        let mut names = Self::default();
        for package in packages {
            for path in rust_files(package.folder())? {
                names.add(&read(&path)?);
            }
        }
        Ok(names)
    }

    pub(super) fn add(&mut self, source: &str) {
        let mut importing = false;
        for line in source.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
            let code = line.split(" // ").next().unwrap_or(line);
            importing |= code.starts_with("use ") || code.starts_with("pub") && code.contains(" use ");
            let mut before = "";
            for word in words(code) {
                if importing || KEYWORDS.contains(&before) {
                    self.defined.insert(word.to_owned());
                }
                self.used.insert(word.to_owned());
                before = word;
            }
            importing &= !code.contains(';');
        }
    }

    /// Returns whether the workspace defines or imports this name.
    pub(super) fn define(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Returns whether the identifier occurs at all.
    pub(super) fn contain(&self, name: &str) -> bool {
        self.used.contains(name)
    }
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn definitions_and_imports_are_told_from_uses() {
        let mut names = Names::default();
        names.add(
            "use std::{\n    sync::Arc,\n};\npub(crate) struct Gate<T>(Other);\n// struct Gone;\nfn run() {} // Late\n",
        );
        assert!(names.define("Arc") && names.define("Gate") && names.define("run"));
        assert!(!names.define("Other") && names.contain("Other"));
        assert!(!names.contain("Gone") && !names.contain("Late"));
    }
}
