//! Deletes the contents of terminating namespaces, then finalizes the namespaces.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_client::api::Api;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use super::content;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};

/// The finalizer in `spec` that this controller removes.
const FINALIZER: &str = "kubernetes";

/// The reconciler of terminating namespaces.
#[derive(Default)]
struct Namespaces {
    /// The number of passes through each namespace, by uid.
    passes: Mutex<BTreeMap<String, u32>>,
}

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>(Namespaces::default())
        .named("namespace-controller")
        .max_concurrent_reconciles(4)
}

impl Reconciler<Namespace> for Namespaces {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Namespace>) -> Result<Action> {
        let Some(namespace) = cx.get(&key)? else { return Ok(Action::done()) };
        let held =
            namespace.spec.iter().flat_map(|spec| spec.finalizers.iter().flatten()).any(|f| f == FINALIZER);
        if namespace.metadata.deletion_timestamp.is_none() || !held {
            return Ok(Action::done());
        }
        let content = content::delete_all_content(cx.client(), key.name()).await;
        let mut status = NamespaceStatus {
            phase: Some("Terminating".to_owned()),
            ..namespace.status.clone().unwrap_or_default()
        };
        content.set_conditions(status.conditions.get_or_insert_default(), &Time(cx.now()));
        cx.update_status(&*namespace, status).await?;
        let uid = namespace.uid().unwrap_or_default();
        if content.is_empty() {
            self.passes().remove(&uid);
            finalize(&cx, key.name()).await?;
            return Ok(Action::done());
        }
        let done = {
            let mut passes = self.passes();
            let count = passes.entry(uid).or_default();
            *count += 1;
            *count
        };
        Ok(Action::requeue_after(content.retry_after(done)))
    }
}

impl Namespaces {
    fn passes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u32>> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the finalizer. The server then deletes the namespace.
async fn finalize(cx: &Context<Namespace>, name: &str) -> Result<()> {
    let api: Api<Namespace> = Api::all(cx.client().clone());
    let Some(mut latest) = api.get_opt(name).await.map_err(Error::from)? else { return Ok(()) };
    if let Some(finalizers) = latest.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    let finalized: Result<Namespace, _> =
        api.replace_subresource("finalize", name, &component::post(KUBE_CONTROLLER_MANAGER), &latest).await;
    match finalized.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}
