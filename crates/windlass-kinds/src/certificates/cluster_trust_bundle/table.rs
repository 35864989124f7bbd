//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::Column;

/// The columns of clustertrustbundles.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("SignerName")], |row| {
    vec![row.name(), row.text_or("/spec/signerName", "<none>")]
});
