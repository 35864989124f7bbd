//! `metav1.Table`: objects as rows of cells, for `kubectl get`.
//!
//! Columns and cells of built-in kinds are the real server's; custom resources have the columns of the
//! definition. Cells of wide columns (priority 1) are always present: the client leaves such cells out.

pub(crate) mod age;
pub(crate) mod column;
mod custom;
mod json_path;
pub(crate) mod row;

use std::sync::Arc;

pub use age::human_duration;
use column::Column;
pub use custom::PrinterColumn;
use jiff::Timestamp;
pub use json_path::JsonPath;
use row::Row;
use serde_json::{Map, Value, json};
use windlass_wire::{ApiError, TableVersion};

/// The `object` of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// apiVersion, kind and metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Parses the query parameter `includeObject`. 400 if the value is not known.
    pub fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        match text {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                windlass_schema::go_quote(other)
            ))),
        }
    }
}

/// The columns of a kind.
#[derive(Clone, Debug)]
pub struct TableKind(Kind);

impl TableKind {
    /// Returns whether the rows of an empty list are `null`, as for a built-in kind without columns of its own, and for
    /// definitions.
    pub fn writes_null_for_no_rows(&self) -> bool {
        matches!(&self.0, Kind::BuiltIn(table) if table.null_rows)
    }
}

#[derive(Clone, Debug)]
enum Kind {
    BuiltIn(&'static Table),
    Custom(Arc<[PrinterColumn]>),
}

/// The table of a built-in kind.
#[derive(Debug)]
pub struct Table {
    columns: &'static [Column],
    cells: fn(&Row<'_>) -> Vec<Value>,
    /// Returns the conditions of a row.
    conditions: fn(&Row<'_>) -> Option<Value>,
    /// True if the rows of an empty list are `null`.
    null_rows: bool,
}

/// The table of kinds without columns.
pub(crate) static PLAIN: Table = Table::new(&[Column::name(), Column::date("Created At")], |row| {
    vec![row.name(), row.value("/metadata/creationTimestamp").cloned().unwrap_or(Value::Null)]
})
.with_null_rows();

impl Table {
    /// Creates a table. `cells` returns a cell for each of `columns`.
    pub(crate) const fn new(columns: &'static [Column], cells: fn(&Row<'_>) -> Vec<Value>) -> Self {
        Self { columns, cells, conditions: |_| None, null_rows: false }
    }

    pub(crate) const fn with_null_rows(mut self) -> Self {
        self.null_rows = true;
        self
    }

    pub(crate) const fn with_conditions(mut self, conditions: fn(&Row<'_>) -> Option<Value>) -> Self {
        self.conditions = conditions;
        self
    }
}

/// The table of a custom resource without `additionalPrinterColumns`.
impl Default for TableKind {
    fn default() -> Self {
        Self::custom(&[])
    }
}

impl TableKind {
    /// Returns the columns of a built-in kind.
    pub fn built_in(table: &'static Table) -> Self {
        Self(Kind::BuiltIn(table))
    }

    /// Returns the table of a custom resource: name, and the columns of the definition's
    /// `additionalPrinterColumns`; by default, name and age. A column with a broken path stays empty.
    pub fn custom(additional_printer_columns: &[Value]) -> Self {
        let columns = additional_printer_columns.iter().map(PrinterColumn::parse);
        let default = additional_printer_columns.is_empty().then(PrinterColumn::age);
        Self(Kind::Custom(columns.chain(default).collect()))
    }

    /// Returns the `columnDefinitions`.
    pub fn column_definitions(&self) -> Value {
        match &self.0 {
            Kind::BuiltIn(kind) => kind.columns.iter().map(Column::definition).collect(),
            Kind::Custom(columns) => std::iter::once(Column::name().definition())
                .chain(columns.iter().map(PrinterColumn::definition))
                .collect(),
        }
    }

    /// Returns the row of an object.
    pub fn row(
        &self,
        object: &Value,
        include: IncludeObject,
        version: TableVersion,
        now: Timestamp,
    ) -> Value {
        let row = Row { object, now };
        let cells = match &self.0 {
            Kind::BuiltIn(kind) => (kind.cells)(&row),
            Kind::Custom(columns) => {
                std::iter::once(row.name()).chain(columns.iter().map(|column| column.cell(&row))).collect()
            }
        };
        let mut out = Map::new();
        out.insert("cells".to_owned(), Value::Array(cells));
        if let Kind::BuiltIn(kind) = &self.0
            && let Some(conditions) = (kind.conditions)(&row)
        {
            out.insert("conditions".to_owned(), conditions);
        }
        let object = match include {
            IncludeObject::None => Value::Null,
            IncludeObject::Metadata => partial_object_metadata(object, version),
            IncludeObject::Object => object.clone(),
        };
        out.insert("object".to_owned(), object);
        Value::Object(out)
    }

    /// Returns a whole table; `metadata` is that of the list (`resourceVersion`, `continue`,
    /// `remainingItemCount`), `headers` is false from a watch's second event on.
    pub fn table<'a>(
        &self,
        metadata: Value,
        objects: impl Iterator<Item = &'a Value>,
        options: TableOptions,
    ) -> Value {
        let TableOptions { include, version, headers, now } = options;
        let rows: Vec<Value> = objects.map(|object| self.row(object, include, version, now)).collect();
        json!({
            "kind": "Table",
            "apiVersion": version.api_version(),
            "metadata": metadata,
            "columnDefinitions": if headers { self.column_definitions() } else { Value::Null },
            "rows": rows,
        })
    }

    /// Returns the table of a single object.
    pub fn table_of_one(&self, object: &Value, options: TableOptions) -> Value {
        let mut metadata = Map::new();
        if let Some(version) = object.pointer("/metadata/resourceVersion") {
            metadata.insert("resourceVersion".to_owned(), version.clone());
        }
        self.table(Value::Object(metadata), std::iter::once(object), options)
    }
}

/// The options of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// The `object` of rows.
    pub include: IncludeObject,
    /// The version of the table.
    pub version: TableVersion,
    /// True if the table has `columnDefinitions`.
    pub headers: bool,
    /// The time at which ages are computed.
    pub now: Timestamp,
}

/// Returns the metadata of an object as `PartialObjectMetadata`.
pub fn partial_object_metadata(object: &Value, version: TableVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

#[cfg(test)]
mod tests;
