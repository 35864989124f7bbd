//! Reads the body of a reply into the form that is compared.

use serde_json::Value;
use windlass_schema::{Catalog, decode_protobuf};

use crate::op::Op;
use crate::outcome::Outcome;

/// Stands for a body in protobuf that is not decoded: metadata alone, and all such bodies in older transcripts.
pub(crate) const PROTOBUF: &str = "(protobuf)";

/// Documents with the server's version, checks or groups. Only the code and the headers of such documents are
/// compared.
const DOCUMENTS: [&str; 9] = [
    "/index.html",
    "/version",
    "/metrics",
    "/healthz",
    "/livez",
    "/readyz",
    "/openapi",
    "/.well-known",
    "/openid",
];

/// Puts the body of a reply into an outcome: JSON, YAML and protobuf as a value, anything else as text.
pub(crate) fn read(outcome: &mut Outcome, op: &Op, bytes: &[u8]) {
    if outcome.code == 200 && is_document(op.path()) {
        return;
    }
    let text = || Value::String(String::from_utf8_lossy(bytes).into_owned());
    let media = outcome.headers.get("content-type").and_then(|values| values.first());
    let is = |essence: &str| media.is_some_and(|media| media.starts_with(essence));
    if is("application/vnd.kubernetes.protobuf") {
        outcome.body = decode_protobuf(&Catalog::builtin(), bytes).unwrap_or_else(|_| PROTOBUF.into());
    } else if is("application/yaml") {
        outcome.body = windlass_wire::from_yaml(bytes).unwrap_or_else(|_| text());
    } else {
        outcome.body = serde_json::from_slice(bytes).unwrap_or_else(|_| text());
    }
}

fn is_document(path: &str) -> bool {
    let starts = |document: &&str| {
        path.strip_prefix(*document).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    path.trim_matches('/').is_empty() || DOCUMENTS.iter().any(starts)
}
