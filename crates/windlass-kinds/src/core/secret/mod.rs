//! Secrets.

mod defaults;
mod table;
mod validate;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use windlass_schema::decode_base64;
use windlass_wire::ApiError;

use crate::json::map_at;
use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Secrets,
    prepare: &Secrets,
    validate: &Secrets,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig { selectable: &[("type", "/type")], ..KindConfig::DATA };

pub(super) struct Secrets;

/// Refuses values that are not base64.
fn check_data(object: &Value) -> Result<(), ApiError> {
    map_at(object, "/data")
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_str)
        .try_for_each(check_base64)
}

fn check_base64(text: &str) -> Result<(), ApiError> {
    if decode_base64(text).is_some() {
        return Ok(());
    }
    let at = match STANDARD.decode(text) {
        Err(base64::DecodeError::InvalidByte(at, _)) => at,
        _ => text.len(),
    };
    Err(ApiError::bad_request(format!(
        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte {at}"
    )))
}

impl Prepare for Secrets {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        check_data(object)
    }

    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        check_data(object)
    }
}
