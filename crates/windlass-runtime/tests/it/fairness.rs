//! Keys that are always ready leave time for other tasks.

use std::{sync::mpsc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey, source::Source};
use windlass_test::{TestCluster, stretched};

use crate::fixture::{SOON, create_config_map};

/// Reconciles that never wait, of one key that is requeued at once and of many keys, starve no other task on
/// a runtime with one thread: timers fire, and the manager stops on request.
#[test]
fn reconciles_that_never_wait_starve_nothing() {
    let (finished, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let cluster = TestCluster::start().await;
            for n in 0..20 {
                create_config_map(&cluster.client(), &format!("m{n}")).await;
            }
            let controller =
                Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
                    cx.get(&key)?;
                    Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
                });
            let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            running.stop_with_exact_rights().await.expect("a graceful end");
        });
        let _ = finished.send(());
    });
    wait.recv_timeout(stretched(SOON)).expect("the other tasks run");
}

/// A stream of keys that never waits starves no other task either.
#[test]
fn a_key_stream_that_never_waits_starves_nothing() {
    let (finished, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let cluster = TestCluster::start().await;
            let controller = Controller::keyed::<()>("fed", |_: u32, _: Context<()>| async {
                Ok::<_, Error>(Action::done())
            })
            .source(Source::keys(futures::stream::repeat(1)));
            let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            running.stop_with_exact_rights().await.expect("a graceful end");
        });
        let _ = finished.send(());
    });
    wait.recv_timeout(stretched(SOON)).expect("the other tasks run");
}
