//! Requests for certificates of pods. A kubelet writes the requests, and a signer answers in the status.

mod key;
mod status;
mod table;
mod validate;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_schema::FieldError;
use windlass_wire::ApiError;

use crate::json::text_at;
use crate::kind::{Kind, KindConfig, Prepare, WriteContext, Writes};

pub(crate) static KIND: Kind =
    Kind { prepare: &Requests, validate: &Requests, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    selectable: &[
        ("spec.signerName", "/spec/signerName"),
        ("spec.podName", "/spec/podName"),
        ("spec.nodeName", "/spec/nodeName"),
    ],
    selects_by_namespace: false,
    unconditional_update: false,
    unsupported: Some("the node asks for no certificates of pods, and old requests are not deleted"),
    writes: Writes::STATUS_ONLY,
    ..KindConfig::DATA
};

struct Requests;

impl Prepare for Requests {
    fn prepare_create(&self, _: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }
}

/// Returns the bytes of a field in base64. The schema refuses other texts.
fn bytes_at(object: &Value, pointer: &str) -> Vec<u8> {
    STANDARD.decode(text_at(object, pointer)).unwrap_or_default()
}

/// Returns an error that does not show the value.
fn omitted(field: &str, why: &str) -> FieldError {
    FieldError { bad_value: None, ..FieldError::invalid(field, Value::Null, why) }
}
