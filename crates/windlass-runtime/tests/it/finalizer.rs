use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{DeleteParams, Patch, PatchParams};
use kube_core::ResourceExt;
use parking_lot::Mutex;
use serde_json::json;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, Permission, Verb,
    finalizer::{self, Finalize},
};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, config_maps, create_config_map};

#[tokio::test]
async fn the_guard_is_there_before_the_effect_and_goes_after_the_clean_up() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let others = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/another"] } }));
    config_maps(&client).patch("a", &PatchParams::default(), &others).await.expect("patched");

    let notes = Arc::new(Mutex::new(Vec::<String>::new()));
    let controller = {
        let notes = notes.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let notes = notes.clone();
            async move {
                let Some(map) = cx.get(&key)? else { return Ok(Action::done()) };
                finalizer::guard(&cx, map, "example.com/ours", async |event| match event {
                    Finalize::Apply(map) => {
                        notes.lock().push(format!("apply {:?}", map.finalizers()));
                        Ok(Action::done())
                    }
                    Finalize::Cleanup(_) => {
                        let first = !notes.lock().iter().any(|note| note.starts_with("clean"));
                        notes.lock().push("clean up".to_owned());
                        // The first clean-up fails: the finalizer stays.
                        if first { Err(Error::other("the bucket is not empty")) } else { Ok(Action::done()) }
                    }
                })
                .await
            }
        })
    };
    let controller = controller.needs(Permission::to::<ConfigMap>([Verb::Patch]));
    let running = cluster.run_restricted(Manager::new(client.clone()).controller(controller)).await;
    eventually(SOON, || async {
        let finalizers =
            config_maps(&client).get("a").await.map_err(|e| e.to_string())?.finalizers().to_vec();
        if finalizers == ["example.com/another", "example.com/ours"] {
            Ok(())
        } else {
            Err(format!("{finalizers:?}"))
        }
    })
    .await;
    config_maps(&client).delete("a", &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async {
        let finalizers =
            config_maps(&client).get("a").await.map_err(|e| e.to_string())?.finalizers().to_vec();
        if finalizers == ["example.com/another"] { Ok(()) } else { Err(format!("{finalizers:?}")) }
    })
    .await;
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    config_maps(&client).patch("a", &PatchParams::default(), &none).await.expect("patched");
    eventually(SOON, || async {
        match config_maps(&client).get_opt("a").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    running.stop().await.expect("a graceful end");
    let notes = notes.lock().clone();
    assert_eq!(notes[0], "apply [\"example.com/another\", \"example.com/ours\"]", "never without: {notes:?}");
    assert_eq!(notes.iter().filter(|note| *note == "clean up").count(), 2, "{notes:?}");
}
