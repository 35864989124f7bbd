//! Creates the service account `default` in every namespace.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube_core::ObjectMeta;
use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};

use crate::core::per_namespace::{self, create_if_absent};

const DEFAULT: &str = "default";

/// Returns the controller. The keys are namespaces.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>(reconcile)
        .named("serviceaccount-controller")
        .watches::<ServiceAccount>(|account, _| Ok(per_namespace::key_of_namespace(account, DEFAULT)))
        .max_concurrent_reconciles(4)
}

async fn reconcile(key: ObjectKey, cx: Context<Namespace>) -> Result<Action> {
    let wanted = ObjectKey::namespaced(key.name(), DEFAULT);
    if !per_namespace::is_active(&key, &cx)? || cx.lister::<ServiceAccount>()?.get(&wanted)?.is_some() {
        return Ok(Action::done());
    }
    let metadata = ObjectMeta {
        name: Some(DEFAULT.to_owned()),
        namespace: Some(key.name().to_owned()),
        ..ObjectMeta::default()
    };
    create_if_absent(&cx, ServiceAccount { metadata, ..ServiceAccount::default() }).await
}
