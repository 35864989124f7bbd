//! The command `crds`.

use std::io::{self, Write};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_codegen::cluster_definitions;
use windlass_runtime::{Error, Result};

/// Writes CRDs as YAML documents for `kubectl apply`: one for each kind, with all its versions.
pub(super) fn write_crds(crds: &[CustomResourceDefinition], out: &mut impl Write) -> Result<()> {
    for crd in cluster_definitions(crds).map_err(Error::other)? {
        let yaml = serde_saphyr::to_string(&crd).map_err(Error::other)?;
        match write!(out, "---\n{}\n", yaml.trim_end()) {
            // The reader of a pipe has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}
