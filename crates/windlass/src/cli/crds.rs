//! The command `crds`.

use std::io::{self, Write};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_codegen::limit_integers;
use windlass_runtime::{Error, Result};

/// Writes CRDs as YAML documents for `kubectl apply`.
pub(super) fn write_crds(crds: &[CustomResourceDefinition], out: &mut impl Write) -> Result<()> {
    for crd in crds {
        let mut crd = serde_json::to_value(crd)?;
        limit_integers(&mut crd);
        let yaml = serde_saphyr::to_string(&crd).map_err(Error::other)?;
        match write!(out, "---\n{}\n", yaml.trim_end()) {
            // The reader of a pipe has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}
