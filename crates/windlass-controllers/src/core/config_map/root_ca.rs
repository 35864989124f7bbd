//! Publishes the certificate of the API server's authority in every namespace, as ConfigMap `kube-root-ca.crt`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube_core::{ObjectMeta, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use crate::core::per_namespace::{self, create_if_absent};

const NAME: &str = "kube-root-ca.crt";
const ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";

struct Publisher {
    certificate: String,
}

/// Returns the controller. The keys are namespaces.
pub(crate) fn controller(certificate: String) -> Controller {
    Controller::of::<Namespace>(Publisher { certificate })
        .named("root-ca-certificate-publisher-controller")
        .watches::<ConfigMap>(|config, _| Ok(per_namespace::key_of_namespace(config, NAME)))
        .max_concurrent_reconciles(4)
}

impl Reconciler<Namespace> for Publisher {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Namespace>) -> Result<Action> {
        if !per_namespace::is_active(&key, &cx)? {
            return Ok(Action::done());
        }
        let data = BTreeMap::from([("ca.crt".to_owned(), self.certificate.clone())]);
        let there = cx.lister::<ConfigMap>()?.get(&ObjectKey::namespaced(key.name(), NAME))?;
        let Some(there) = there else {
            let metadata = ObjectMeta {
                name: Some(NAME.to_owned()),
                namespace: Some(key.name().to_owned()),
                annotations: Some(BTreeMap::from([(ANNOTATION.to_owned(), DESCRIPTION.to_owned())])),
                ..ObjectMeta::default()
            };
            let config = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            return create_if_absent(&cx, config).await;
        };
        let described = there.annotations().get(ANNOTATION).is_some_and(|text| text == DESCRIPTION);
        if there.data.as_ref() != Some(&data) || !described {
            let mut config = ConfigMap { data: Some(data), ..(*there).clone() };
            config.annotations_mut().insert(ANNOTATION.to_owned(), DESCRIPTION.to_owned());
            cx.update(&config).await?;
        }
        Ok(Action::done())
    }
}
