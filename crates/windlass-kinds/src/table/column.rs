//! The columns of a table.

use serde_json::{Value, json};

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

impl Column {
    const fn new(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, format: "", priority: 0 }
    }

    /// Creates the column of the object's name, the first column of nearly every table.
    pub(crate) const fn name() -> Self {
        Self { name: "Name", kind: "string", format: "name", priority: 0 }
    }

    /// Creates a column of text.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self::new(name, "string")
    }

    /// Creates a column of whole numbers.
    pub(crate) const fn integer(name: &'static str) -> Self {
        Self::new(name, "integer")
    }

    /// Creates a column of booleans.
    pub(crate) const fn boolean(name: &'static str) -> Self {
        Self::new(name, "boolean")
    }

    /// Creates a column of times. Clients show times as ages.
    pub(crate) const fn date(name: &'static str) -> Self {
        Self::new(name, "date")
    }

    /// Creates a column of text that only `-o wide` shows.
    pub(crate) const fn wide(name: &'static str) -> Self {
        Self { name, kind: "string", format: "", priority: 1 }
    }

    /// Shows the column with `-o wide` only.
    pub(crate) const fn only_wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// Marks the column's text as an object's name.
    pub(crate) const fn named(mut self) -> Self {
        self.format = "name";
        self
    }

    pub(crate) fn definition(&self) -> Value {
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
pub(crate) const AGE: Column = Column::text("Age");
