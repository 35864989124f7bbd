//! Service accounts.

use serde_json::{Value, json};

use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

const FACTS: Facts = Facts { returns_deleted_object: true, ..Facts::DATA };

pub(super) struct ServiceAccounts;

impl Strategy for ServiceAccounts {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        keep_names(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        keep_names(object);
        Ok(())
    }
}

/// Keeps only the names of the secrets.
fn keep_names(object: &mut Value) {
    let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let name = secret.get("name").filter(|name| !name.is_null()).cloned();
        *secret = name.map_or_else(|| json!({}), |name| json!({"name": name}));
    }
}
