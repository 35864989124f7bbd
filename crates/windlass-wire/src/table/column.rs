//! The columns of a table.

use serde_json::{Value, json};

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

impl Column {
    const fn new(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, format: "", priority: 0 }
    }

    /// The name of the object, the first column of nearly every table.
    pub(super) const fn name() -> Self {
        Self { name: "Name", kind: "string", format: "name", priority: 0 }
    }

    /// A column of text.
    pub(super) const fn text(name: &'static str) -> Self {
        Self::new(name, "string")
    }

    /// A column of whole numbers.
    pub(super) const fn integer(name: &'static str) -> Self {
        Self::new(name, "integer")
    }

    /// A column of booleans.
    pub(super) const fn boolean(name: &'static str) -> Self {
        Self::new(name, "boolean")
    }

    /// Returns a column of times. Clients show times as ages.
    pub(super) const fn date(name: &'static str) -> Self {
        Self::new(name, "date")
    }

    /// A column of text that only `-o wide` shows.
    pub(super) const fn wide(name: &'static str) -> Self {
        Self { name, kind: "string", format: "", priority: 1 }
    }

    /// The column's text is an object's name.
    pub(super) const fn named(mut self) -> Self {
        self.format = "name";
        self
    }

    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        })
    }
}

/// The age of the object.
pub(super) const AGE: Column = Column::text("Age");
