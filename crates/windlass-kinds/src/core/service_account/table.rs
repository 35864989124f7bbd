//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of serviceaccounts.
pub(super) static TABLE: Table = Table::new(&[Column::name(), AGE], |row| vec![row.name(), row.age()]);
