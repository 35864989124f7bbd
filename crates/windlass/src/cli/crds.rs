//! The command `crds`.

use std::io::{self, Write};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_runtime::{Error, Result};

/// Writes CRDs as YAML documents for `kubectl apply`.
pub(super) fn write_crds(crds: &[CustomResourceDefinition], out: &mut impl Write) -> Result<()> {
    for crd in crds {
        let mut crd = serde_json::to_value(crd)?;
        remove_unsigned_formats(&mut crd);
        let yaml = serde_saphyr::to_string(&crd).map_err(Error::other)?;
        match write!(out, "---\n{}\n", yaml.trim_end()) {
            // The reader of a pipe has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

/// Removes formats such as `uint32`, which schemars writes and of which the API server warns. `minimum` says the same.
fn remove_unsigned_formats(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint"))
            {
                members.remove("format");
            }
            members.values_mut().for_each(remove_unsigned_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_unsigned_formats),
        _ => {}
    }
}
