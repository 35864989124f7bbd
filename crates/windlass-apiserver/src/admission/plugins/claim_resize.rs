//! `PersistentVolumeClaimResize`: checks the growth of claims.

use serde_json::Value;

use super::Write;
use crate::wire::ApiError;
use windlass_kinds::quota::amounts;
use windlass_kinds::resources::{PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES};

/// The annotation that named the storage class before there was a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Refuses the growth of an unbound claim, or of a claim with a storage class that does not allow growth.
pub(super) fn validate(write: &Write<'_>, claim: &Value, old: &Value) -> Result<(), ApiError> {
    if *write.resource != *PERSISTENT_VOLUME_CLAIMS || !write.subresource.is_empty() {
        return Ok(());
    }
    let size = |claim: &Value| amounts(&claim["spec"]["resources"]["requests"]).get("storage").copied();
    let grows = match (size(claim), size(old)) {
        (Some(new), Some(old)) => new > old,
        (new, None) => new.is_some_and(|new| new.signum() > 0),
        (None, _) => false,
    };
    if !grows {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err(write.forbidden(claim, "Only bound persistent volume claims can be expanded"));
    }
    if class(claim) != class(old) || !may_expand(write, class(claim)) {
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        return Err(write.forbidden(claim, why));
    }
    Ok(())
}

fn class(claim: &Value) -> &str {
    let annotated = claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    annotated.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

fn may_expand(write: &Write<'_>, class: &str) -> bool {
    let view = write.store.view();
    let class = view.get(&STORAGE_CLASSES, class);
    class.is_some_and(|class| class.value()["allowVolumeExpansion"] == true)
}
