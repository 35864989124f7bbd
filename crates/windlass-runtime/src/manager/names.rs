//! The names of controllers, and the selection of running controllers.

use std::collections::BTreeSet;

use crate::error::{Error, Result};

/// The names of the controllers of a manager. A name is a metric label and a field manager, and is unique.
#[derive(Default)]
pub(super) struct ControllerNames(BTreeSet<String>);

impl ControllerNames {
    /// Adds a name.
    pub(super) fn add(&mut self, name: &str) -> Result<()> {
        if !is_label_value(name) {
            return Err(Error::setup(format!(
                "{name:?} cannot be a controller's name, which is a field manager and a label value: it has at most 63 \
                 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit; set one with `.named(..)`"
            )));
        }
        if !self.0.insert(name.to_owned()) {
            return Err(Error::setup(format!(
                "two controllers are called {name:?}; give one another name with `.named(..)`"
            )));
        }
        Ok(())
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Removes the name of an ended controller. Returns whether the name was known.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name)
    }
}

/// Returns whether a text is a non-empty label value.
fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| inner(*byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// The selection of running controllers: the flag `--controllers` of kube-controller-manager.
#[derive(Clone, Debug)]
pub(super) struct Selection(Vec<String>);

impl Selection {
    pub(super) fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(patterns.into_iter().map(Into::into).filter(|pattern: &String| !pattern.is_empty()).collect())
    }

    /// Returns whether a controller runs. An empty selection has all.
    pub(super) fn has(&self, name: &str) -> bool {
        let own = self.0.iter().find_map(|pattern| match pattern.strip_prefix('-') {
            Some(excluded) => (excluded == name).then_some(false),
            None => (pattern == name).then_some(true),
        });
        own.unwrap_or_else(|| self.0.is_empty() || self.0.iter().any(|pattern| pattern == "*"))
    }

    /// Returns a warning if no controller runs.
    pub(super) fn warning(&self, names: &[&str]) -> Option<String> {
        if names.is_empty() || names.iter().any(|name| self.has(name)) {
            return None;
        }
        let (patterns, names) = (self.0.join(","), names.join(", "));
        Some(format!(
            "no controller runs: `--controllers={patterns}` selects none of {names}; to run all controllers but the excluded ones, \
             add a star: `--controllers=*,{patterns}`"
        ))
    }

    /// Fails if a pattern names no controller.
    pub(super) fn check(&self, names: &[&str]) -> Result<()> {
        let known = |pattern: &&String| {
            let name = pattern.strip_prefix('-').unwrap_or(pattern);
            name == "*" || names.contains(&name)
        };
        match self.0.iter().find(|pattern| !known(pattern)) {
            Some(pattern) => Err(Error::setup(format!(
                "{pattern:?} is not in the list of known controllers: {}",
                names.join(", ")
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Selection;

    #[test]
    fn a_selection_is_read_as_kube_controller_manager_reads_it() {
        let runs = |patterns: &str| {
            let selection = Selection::new(patterns.split(','));
            ["pod", "ecs"].into_iter().filter(|name| selection.has(name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(runs(""), "pod ecs");
        assert_eq!(runs("*"), "pod ecs");
        assert_eq!(runs("*,-pod"), "ecs");
        assert_eq!(runs("pod"), "pod");
        assert_eq!(runs("-pod"), "", "without a star, only those that are named run");
        assert_eq!(runs("pod,-pod,*"), "pod ecs", "the first one counts");
        let warning = |patterns: &str| Selection::new(patterns.split(',')).warning(&["ecs", "pod"]);
        let said = warning("-pod").expect("a warning");
        assert!(said.contains("`--controllers=-pod` selects none of ecs, pod"), "{said}");
        assert!(said.ends_with("`--controllers=*,-pod`"), "{said}");
        assert_eq!([warning(""), warning("*,-pod"), warning("pod")], [None, None, None]);
        assert_eq!(Selection::new(["-pod"]).warning(&[]), None, "there is no controller to run");
        let error = Selection::new(["*", "-pods"]).check(&["ecs", "pod"]).expect_err("no such controller");
        assert_eq!(error.to_string(), "\"-pods\" is not in the list of known controllers: ecs, pod");
    }
}
