//! The clientset, informer factory and listers of built-in kinds, on an API server in the test's process.

mod clients;
mod informers;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;

/// How long the tests wait for caches and handlers.
const LIMIT: Duration = Duration::from_secs(20);

fn config_map(name: &str, color: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([("color".to_owned(), color.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some([("color".to_owned(), color.to_owned())].into()),
        ..ConfigMap::default()
    }
}
