//! The operator under faults reaches the right state, regardless of failures in between. CONTRIBUTING.md says
//! how to run more seeds.

use std::collections::BTreeSet;
use std::process::Command;

use custom_pod::{CustomPod, CustomPodSpec, CustomPodStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt};
use serde_json::json;
use windlass::leader_election::LeaderElection;
use windlass::prelude::*;
use windlass_test::Scenario;

/// The user of the scenario.
#[derive(Clone)]
struct User(Client);

impl User {
    fn objects(&self) -> Api<CustomPod> {
        Api::default_namespaced(self.0.clone())
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.0.clone())
    }

    async fn create(&self, name: &str, replicas: u32) {
        let object = CustomPod::new(name, CustomPodSpec { replicas });
        self.objects().create(&PostParams::default(), &object).await.expect("created");
    }

    async fn scale(&self, name: &str, replicas: u32) {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.objects().patch(name, &PatchParams::default(), &patch).await.expect("scaled");
    }

    async fn alive(&self) -> Vec<Pod> {
        let pods = self.pods().list(&ListParams::default()).await.expect("listed").items;
        pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
    }

    /// Deletes a pod by hand, if a pod exists.
    async fn delete_a_pod(&self) {
        if let Some(pod) = self.alive().await.first() {
            self.pods().delete(&pod.name_any(), &DeleteParams::default()).await.expect("deleted");
        }
    }

    /// Checks that only these objects exist, each with the right pods and status.
    async fn has(&self, wanted: &[(&str, u32)]) -> Result<(), String> {
        let objects = self.objects().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = objects.items.iter().map(ResourceExt::name_any).collect();
        if names != wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>() {
            return Err(format!("there are the objects {names:?}"));
        }
        let pods = self.alive().await;
        let wanted_pods: u32 = wanted.iter().map(|(_, replicas)| replicas).sum();
        if pods.len() != wanted_pods as usize {
            return Err(format!("there are {} pods", pods.len()));
        }
        for (object, (name, replicas)) in objects.items.iter().zip(wanted) {
            let owned =
                pods.iter().filter(|pod| pod.owner_references().iter().any(|owner| owner.name == *name));
            let owned: BTreeSet<String> = owned.map(ResourceExt::name_any).collect();
            let CustomPodStatus { replicas: reported, pod_names } = object.status.clone().unwrap_or_default();
            if owned.len() != *replicas as usize
                || reported != *replicas
                || owned != pod_names.iter().cloned().collect()
            {
                return Err(format!("{name} has the pods {owned:?} and reports {reported}: {pod_names:?}"));
            }
        }
        Ok(())
    }
}

fn scenario() -> Scenario {
    let operator = |client| {
        let election = LeaderElection::new("custom-pod").identity("replica");
        Manager::new(client).controller(custom_pod::controller()).leader_election(election)
    };
    Scenario::new(operator)
        .crd(CustomPod::crd())
        .step(|client| async move { User(client).create("a", 2).await })
        .step(|client| async move { User(client).create("b", 1).await })
        .step(|client| async move { User(client).scale("a", 4).await })
        .step(|client| async move { User(client).delete_a_pod().await })
        .step(|client| async move { User(client).scale("a", 1).await })
        .step(|client| async move {
            let deleted = User(client).objects().delete("b", &DeleteParams::default()).await;
            deleted.expect("deleted");
        })
        .step(|client| async move { User(client).create("c", 3).await })
        .check(|client| async move { User(client).has(&[("a", 1), ("c", 3)]).await })
}

#[test]
fn it_ends_in_the_right_state_whatever_fails() {
    scenario().run_many(10);
}

/// The environment variable that makes a test of this file the other process.
const OTHER: &str = "WINDLASS_FAULT_OTHER_PROCESS";

#[test]
fn a_seed_gives_the_same_run_again_and_in_another_process() {
    let run = scenario().run(7);
    assert!(run.restarts() > 0 && run.faults().len() > 5, "{run}");
    let line = format!("run 7: {:016x}", run.fingerprint());
    if std::env::var_os(OTHER).is_some() {
        println!("{line}");
        return;
    }
    assert_eq!(scenario().run(7).trace(), run.trace());
    assert_ne!(scenario().run(8).fingerprint(), run.fingerprint());

    let this = std::env::current_exe().expect("a path");
    let name = "faults::a_seed_gives_the_same_run_again_and_in_another_process";
    let child = Command::new(this).args(["--exact", name, "--nocapture"]).env(OTHER, "1").output();
    let printed = String::from_utf8(child.expect("a process").stdout).expect("text");
    assert!(printed.contains(&line), "{line} is not in {printed}");
}
