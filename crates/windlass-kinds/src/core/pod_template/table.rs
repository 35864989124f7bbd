//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::Column;
use crate::table::row::format_labels;

/// The columns of podtemplates.
pub(super) static TABLE: Table = Table::new(
    &[Column::name(), Column::text("Containers"), Column::text("Images"), Column::text("Pod Labels")],
    |row| {
        let [names, images] = row.containers("/template/spec/containers");
        vec![row.name(), names, images, format_labels(row.map("/template/metadata/labels")).into()]
    },
);
