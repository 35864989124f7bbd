//! Gives every namespace its service account `default`.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube_core::ObjectMeta;
use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};

use crate::namespaced::{self, create_unless_there};

const DEFAULT: &str = "default";

/// The controller. Its keys are namespaces.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>(reconcile)
        .named("serviceaccount-controller")
        .watches::<ServiceAccount>(|account, _| Ok(namespaced::of_object(account, DEFAULT)))
        .concurrency(4)
}

async fn reconcile(key: ObjectKey, cx: Context<Namespace>) -> Result<Action> {
    let wanted = ObjectKey::namespaced(key.name(), DEFAULT);
    if !namespaced::is_active(&key, &cx)? || cx.lister::<ServiceAccount>()?.get(&wanted)?.is_some() {
        return Ok(Action::done());
    }
    let metadata = ObjectMeta {
        name: Some(DEFAULT.to_owned()),
        namespace: Some(key.name().to_owned()),
        ..ObjectMeta::default()
    };
    create_unless_there(&cx, ServiceAccount { metadata, ..ServiceAccount::default() }).await
}
