//! Targets for schemas, and for functions on schemas.

use serde_json::Value;
use windlass_schema::{
    Catalog, ProtobufEncoder, Schema, check_structural, decode_protobuf, default, prune, validate,
};

use crate::split;

/// Every protobuf message decodes to an object or is an error, and the encoding of an object can be decoded.
pub(crate) fn protobuf(data: &[u8]) {
    let catalog = Catalog::builtin();
    let Ok(object) = decode_protobuf(&catalog, data) else { return };
    assert!(object.is_object(), "the decoded message is not an object");
    if let Ok(bytes) = ProtobufEncoder::new(Catalog::builtin()).object(object.to_string().as_bytes()) {
        decode_protobuf(&catalog, bytes).expect("the encoding of an object can be decoded");
    }
}

/// Every schema that is accepted compiles; pruning and defaulting are idempotent.
pub(crate) fn crd_schemas(data: &[u8]) {
    let (schema, object) = split(data);
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return };
    if !check_structural(&schema, "schema").is_empty() {
        return;
    }
    let schema = Schema::compile(&schema);
    let Ok(mut object) = serde_json::from_slice::<Value>(object) else { return };
    prune(&schema, &mut object);
    default(&schema, &mut object);
    let once = object.clone();
    prune(&schema, &mut object);
    default(&schema, &mut object);
    assert_eq!(once, object, "pruning and defaulting are not idempotent");
    let _ = validate(&schema, &object);
}
