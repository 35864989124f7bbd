//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, text};

/// The columns of mutatingwebhookconfigurations and validatingwebhookconfigurations.
pub(super) static WEBHOOKS: Table = Table::new(WEBHOOK_COLUMNS, |row| counted(row, "/webhooks"));

/// The columns of validatingadmissionpolicies.
pub(super) static VALIDATING_POLICIES: Table =
    Table::new(&[Column::name(), Column::integer("Validations"), Column::text("ParamKind"), AGE], |row| {
        policy(row, "/spec/validations")
    });

/// The columns of mutatingadmissionpolicies.
pub(super) static MUTATING_POLICIES: Table =
    Table::new(&[Column::name(), Column::integer("Mutations"), Column::text("ParamKind"), AGE], |row| {
        policy(row, "/spec/mutations")
    });

/// The columns of validatingadmissionpolicybindings and mutatingadmissionpolicybindings.
pub(super) static POLICY_BINDINGS: Table = Table::new(POLICY_BINDING_COLUMNS, policy_binding);

const WEBHOOK_COLUMNS: &[Column] = &[Column::name(), Column::integer("Webhooks"), AGE];

const POLICY_BINDING_COLUMNS: &[Column] =
    &[Column::name(), Column::text("PolicyName"), Column::text("ParamRef"), AGE];

fn counted(row: &Row<'_>, pointer: &str) -> Vec<Value> {
    vec![row.name(), row.list(pointer).len().into(), row.age()]
}

fn policy(row: &Row<'_>, pointer: &str) -> Vec<Value> {
    let parameter = row.value("/spec/paramKind").map_or_else(
        || "<unset>".to_owned(),
        |kind| format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    );
    vec![row.name(), row.list(pointer).len().into(), parameter.into(), row.age()]
}

fn policy_binding(row: &Row<'_>) -> Vec<Value> {
    let parameter = match row.value("/spec/paramRef") {
        None => "<unset>".to_owned(),
        Some(reference) => match (text(reference, "namespace"), text(reference, "name")) {
            (_, "") => {
                row.value("/spec/paramRef/selector").map_or_else(|| "<unset>".to_owned(), Value::to_string)
            }
            ("", name) => format!("*/{name}"),
            (namespace, name) => format!("{namespace}/{name}"),
        },
    };
    vec![row.name(), row.text("/spec/policyName"), parameter.into(), row.age()]
}
