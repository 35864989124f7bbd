//! Storage classes: the default class `standard`, and the facts of a class.

use std::collections::BTreeMap;

use k8s_openapi::api::storage::v1::StorageClass;
use kube_client::api::Api;
use kube_core::{ObjectMeta, ResourceExt};
use windlass_runtime::{Error, Result, RunContext};

use crate::component::{self, KUBE_CONTROLLER_MANAGER};

/// The name of the simulated provisioner.
pub(crate) const PROVISIONER: &str = "windlass.dev/simulated";
/// The name of the default class, as in kind and minikube.
const DEFAULT_CLASS: &str = "standard";
/// On a class: claims without a class get the class.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const IS_DEFAULT_BETA: &str = "storageclass.beta.kubernetes.io/is-default-class";

/// Returns whether claims without a class get the class.
pub(crate) fn is_default(class: &StorageClass) -> bool {
    [IS_DEFAULT, IS_DEFAULT_BETA]
        .iter()
        .any(|key| class.annotations().get(*key).is_some_and(|value| value == "true"))
}

/// Returns whether claims of the class are bound only when a pod uses the claim.
pub(crate) fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// Returns whether volumes of the class can be provisioned: by the simulated provisioner, or by another program.
pub(crate) fn can_provision(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && class.provisioner != "kubernetes.io/no-provisioner"
}

/// Creates the default class, unless the class exists.
pub(crate) async fn keep_default_class(cx: RunContext) -> Result<()> {
    let classes: Api<StorageClass> = Api::all(cx.client().clone());
    let class = StorageClass {
        metadata: ObjectMeta {
            name: Some(DEFAULT_CLASS.to_owned()),
            annotations: Some(BTreeMap::from([(IS_DEFAULT.to_owned(), "true".to_owned())])),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    };
    let created = classes.create(&component::post(KUBE_CONTROLLER_MANAGER), &class).await;
    match created.map_err(Error::from) {
        Err(error) if !error.is_already_exists() => {
            Err(error.while_doing("creating the default StorageClass"))
        }
        _ => Ok(()),
    }
}
