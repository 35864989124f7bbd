//! Checks the types of the expressions in ValidatingAdmissionPolicies, and writes warnings into the status. The warnings do
//! not change what a policy does.

mod check;
mod kinds;
mod versions;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};
use kube_client::Client;
use kube_client::api::{Api, Patch, PatchParams};
use serde_json::json;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Result};

use self::kinds::Kinds;

/// The name of the controller in kube-controller-manager, and the manager of the status.
const NAME: &str = "validatingadmissionpolicy-status";

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<ValidatingAdmissionPolicy>(reconcile).named(NAME)
}

/// Returns the warnings about the types in the expressions of a policy, which kube-controller-manager writes into
/// `status.typeChecking`. The kinds and the schemas come from the server of the client.
///
/// # Errors
///
/// The server does not answer.
pub async fn type_warnings(
    spec: &ValidatingAdmissionPolicySpec,
    client: &Client,
) -> Result<Vec<ExpressionWarning>> {
    let kinds = Kinds::of(spec, client).await?;
    Ok(check::warnings(spec, &kinds))
}

async fn reconcile(key: ObjectKey, cx: Context<ValidatingAdmissionPolicy>) -> Result<Action> {
    let Some(policy) = cx.get(&key)? else { return Ok(Action::done()) };
    let generation = policy.metadata.generation.unwrap_or_default();
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
    if generation <= observed.unwrap_or_default() {
        return Ok(Action::done());
    }
    let spec = policy.spec.clone().unwrap_or_default();
    let warnings = type_warnings(&spec, cx.client()).await?;
    let checking = if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    let applied = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": key.name()},
        "status": {"observedGeneration": generation, "typeChecking": checking},
    });
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cx.client().clone());
    let parameters = PatchParams::apply(NAME).force();
    match policies.patch_status(key.name(), &parameters, &Patch::Apply(applied)).await.map_err(Error::from) {
        // The policy was deleted meanwhile.
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::done()),
    }
}
