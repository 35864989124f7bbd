//! The names of controllers.

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

    /// Removes the name of a controller that has ended. Returns whether there was one.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name)
    }
}

/// Whether a text is a non-empty label value.
fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| inner(*byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}
