//! Objects that do not decode into the requested type.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Event},
};
use kube_client::{
    Api,
    api::{ListParams, PostParams},
};
use kube_core::{ObjectMeta, Resource};
use parking_lot::Mutex;
use serde::Deserialize;
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, config_map, config_maps, metric};

/// A config map with a `data.mode` of `fast` or `slow`.
#[derive(Clone, Debug, Deserialize)]
struct Settings {
    metadata: ObjectMeta,
    #[expect(dead_code, reason = "decoding is what is tested")]
    data: Data,
}

#[derive(Clone, Debug, Deserialize)]
struct Data {
    #[expect(dead_code, reason = "decoding is what is tested")]
    mode: Mode,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Fast,
    Slow,
}

impl Resource for Settings {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ConfigMap".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "configmaps".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn settings(name: &str, mode: &str) -> ConfigMap {
    let mut map = config_map(name);
    map.data = Some(BTreeMap::from([("mode".to_owned(), mode.to_owned())]));
    map
}

/// An object that does not decode is reported by name, without the value, and other objects are reconciled
/// and listed.
#[tokio::test]
async fn one_undecodable_object_stops_no_other() {
    let cluster = TestCluster::start().await;
    let maps = config_maps(&cluster.client());
    for (name, mode) in [("good", "fast"), ("bad", "hunter2")] {
        maps.create(&PostParams::default(), &settings(name, mode)).await.expect("created");
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let controller = {
        let seen = seen.clone();
        Controller::of::<Settings>(move |key: ObjectKey, cx: Context<Settings>| {
            let seen = seen.clone();
            async move {
                let Some(_) = cx.get(&key)? else { return Ok(Action::done()) };
                let all = cx.lister::<Settings>()?.all()?;
                let errors: Vec<_> = all.errors().iter().map(ToString::to_string).collect();
                assert!(all.errors().iter().all(Error::is_decode));
                seen.lock().push((all.names(), errors));
                let error = cx.lister::<Settings>()?.all()?.complete().expect_err("not complete");
                assert!(error.is_decode());
                Ok::<_, Error>(Action::done())
            }
        })
        .named("settings")
    };
    let manager = Manager::new(cluster.client()).namespaces(["default"]).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    let events: Api<Event> = Api::default_namespaced(cluster.client());
    eventually(SOON, || async {
        let events = events.list(&ListParams::default()).await.map_err(|e| e.to_string())?.items;
        let found = events.iter().find(|event| {
            event.involved_object.name.as_deref() == Some("bad")
                && event.reason.as_deref() == Some("FailedDecode")
                && event.type_.as_deref() == Some("Warning")
        });
        let message = found.and_then(|event| event.message.clone()).ok_or("no event")?;
        if message.contains("data.mode") && !message.contains("hunter2") { Ok(()) } else { Err(message) }
    })
    .await;
    eventually(SOON, || async {
        let seen = seen.lock();
        let (names, errors) = seen.first().ok_or("not reconciled")?.clone();
        if names == ["good"] && errors.len() == 1 { Ok(()) } else { Err(format!("{names:?} {errors:?}")) }
    })
    .await;
    let (_, errors) = seen.lock()[0].clone();
    assert!(errors[0].contains("default/bad") && errors[0].contains("data.mode"), "{errors:?}");
    assert!(!errors[0].contains("hunter2"), "{errors:?}");
    let series = "windlass_undecodable_objects_total{controller=\"settings\"}";
    assert_eq!(metric(&metrics.render(), series), 1, "one version of one object");
    running.stop().await.expect("a graceful end");
}
