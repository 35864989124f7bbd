//! The original, in Go, and this operator do the same: every object and every Event.
//!
//! `cargo test -p sample-controller original -- --ignored` builds the Go program from the Go module and runs
//! both programs, each on a separate cluster. The test needs Go, and is skipped with a message without Go.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{DynamicObject, ListParams},
    core::{ApiResource, GroupVersionKind},
};
use sample_controller::{Foo, controller};
use serde_json::Value;
use windlass::prelude::*;
use windlass_test::{TestCluster, eventually};

use crate::{SOON, user::User};

const MODULE: &str = "k8s.io/sample-controller@v0.36.3";

/// The final state of a cluster.
struct Outcome {
    /// An object of objects, by kind and name.
    objects: Value,
    events: BTreeSet<String>,
}

/// The Go program. Dropping the value ends the program.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "builds a Go program"]
async fn it_does_what_the_original_does() {
    let Some(module) = download() else {
        eprintln!("skipped: there is no Go");
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let program = build(&module, folder.path());
    for variant in ["crd-status-subresource.yaml", "crd.yaml"] {
        let with_status = variant == "crd-status-subresource.yaml";
        let ours = TestCluster::with_controllers().await;
        let crd = if with_status { Foo::crd() } else { sample_controller::crd_without_status() };
        ours.install(&crd).await;
        let operator = ours.run(Manager::new(ours.client()).controller(controller()));
        let our_outcome = play(&ours, with_status).await;
        operator.stop().await.expect("a graceful stop");

        let theirs = TestCluster::with_controllers().await;
        install(&theirs, &module.join("artifacts/examples").join(variant)).await;
        let process = start(&theirs, &program, folder.path()).await;
        let their_outcome = play(&theirs, with_status).await;
        drop(process);

        assert_eq!(our_outcome.events, their_outcome.events, "{variant}");
        let found = differences("", &our_outcome.objects, &their_outcome.objects);
        assert!(found.is_empty(), "{variant}:\n{}", found.join("\n"));
    }
}

/// Returns the paths at which two objects differ, with both values.
fn differences(path: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for name in names {
                let (ours, theirs) = (ours.get(name), theirs.get(name));
                let path = format!("{path}/{name}");
                let null = Value::Null;
                found.extend(differences(&path, ours.unwrap_or(&null), theirs.unwrap_or(&null)));
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                found.extend(differences(&format!("{path}/{index}"), ours, theirs));
            }
        }
        _ if ours != theirs => found.push(format!("{path}: {ours}, and the original {theirs}")),
        _ => {}
    }
    found
}

/// Downloads the module. `None`: there is no Go.
fn download() -> Option<PathBuf> {
    let output = Command::new("go").args(["mod", "download", "-json", MODULE]).output().ok()?;
    let module: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    Some(module["Dir"].as_str().unwrap_or_else(|| panic!("{module}")).into())
}

fn build(module: &Path, folder: &Path) -> PathBuf {
    let program = folder.join("sample-controller");
    let built = Command::new("go")
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(module)
        .env("GOFLAGS", "-buildvcs=false")
        .status();
    assert!(built.expect("go runs").success());
    program
}

async fn start(cluster: &TestCluster, program: &Path, folder: &Path) -> Process {
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig().await).expect("written");
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(&kubeconfig).stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().expect("it starts"))
}

/// Creates the original's CRD, unchanged.
async fn install(cluster: &TestCluster, manifest: &Path) {
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header(http::header::CONTENT_TYPE, "application/yaml")
        .body(std::fs::read(manifest).expect("read"))
        .expect("a request");
    let _: CustomResourceDefinition = cluster.client().request(request).await.expect("created");
    cluster
        .wait_for::<CustomResourceDefinition>("foos.samplecontroller.k8s.io", |crd| {
            let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions
                .is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"))
        })
        .await;
}

/// Plays the same story on a cluster.
async fn play(cluster: &TestCluster, with_status: bool) -> Outcome {
    let user = User(cluster.client());
    // Without the subresource, the original cannot write a status: `UpdateStatus` is not found. The status is
    // missing, and no Foo is synced.
    let settled = async |name: &str, replicas: i32| {
        eventually(SOON, || async {
            if with_status {
                return user.has(name, replicas).await;
            }
            let object = user.foos().get(name).await.map_err(|error| error.to_string())?;
            let deployment = user.deployments().get(&object.spec.deployment_name).await;
            let deployment = deployment.map_err(|error| error.to_string())?;
            let available = deployment.status.and_then(|status| status.available_replicas);
            if available == Some(replicas) { Ok(()) } else { Err(format!("{name}: {available:?} available")) }
        })
        .await;
    };
    user.create("a", "web", Some(1)).await;
    settled("a", 1).await;
    user.scale("a", 3).await;
    settled("a", 3).await;
    user.scale_deployment("web", 5).await;
    settled("a", 3).await;
    user.delete_deployment("web").await;
    cluster.wait_for::<Foo>("a", |_| true).await;
    user.create_deployment("taken").await;
    user.create("b", "taken", Some(2)).await;
    user.recorded(
        r#"b Warning ErrResourceExists Resource "taken" already exists and is not managed by Foo (sample-controller)"#,
    )
    .await;
    user.delete_deployment("taken").await;
    settled("b", 2).await;
    settled("a", 3).await;
    user.create("c", "free", None).await;
    settled("c", 1).await;
    user.scale_deployment("free", 2).await;
    settled("c", 2).await;
    user.create("d", "", Some(1)).await;
    user.create("e", "short", Some(1)).await;
    settled("e", 1).await;
    user.delete("e").await;
    cluster.gone::<k8s_openapi::api::apps::v1::Deployment>("short").await;
    if with_status {
        for name in ["a", "b", "c"] {
            user.recorded(&format!("{name} Normal Synced Foo synced successfully (sample-controller)")).await;
        }
    }
    let mut events = user.events().await;
    if !with_status {
        events.retain(|event| !event.contains(" Synced "));
    }
    Outcome { objects: objects(cluster, with_status).await, events }
}

/// Returns the Foos and Deployments, without the fields that differ between runs.
async fn objects(cluster: &TestCluster, with_status: bool) -> Value {
    let kinds = [("samplecontroller.k8s.io", "v1alpha1", "Foo"), ("apps", "v1", "Deployment")];
    let mut objects = serde_json::Map::new();
    for (group, version, kind) in kinds {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
        for object in api.list(&ListParams::default()).await.expect("listed") {
            let name = format!("{kind} {}", object.name_any());
            let mut object = serde_json::to_value(object).expect("JSON");
            normalize(&mut object);
            if !with_status && kind == "Foo" {
                // The writes of the status increment the generation there, and are writes of the object.
                object["status"] = Value::Null;
                object["metadata"]["generation"] = Value::Null;
                object["metadata"]["managedFields"] = Value::Null;
            }
            objects.insert(name, object);
        }
    }
    Value::Object(objects)
}

fn normalize(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let uids: Vec<String> =
                members.keys().filter(|name| name.starts_with("k:{\"uid\"")).cloned().collect();
            for uid in uids {
                let fields = members.remove(&uid).unwrap_or_default();
                members.insert("k:uid".to_owned(), fields);
            }
            for (name, value) in members.iter_mut() {
                match name.as_str() {
                    "uid" | "resourceVersion" | "time" | "creationTimestamp" | "lastUpdateTime"
                    | "lastTransitionTime" => *value = Value::Null,
                    _ => normalize(value),
                }
            }
            // The garbage collector decides when the ReplicaSet of a deleted Deployment is gone, and thereby
            // the collision count.
            members.remove("collisionCount");
            members.remove("f:collisionCount");
            // Managers are sorted by the time of the last write.
            if let Some(managers) = members.get_mut("managedFields").and_then(Value::as_array_mut) {
                managers.sort_by_key(|entry| format!("{} {}", entry["manager"], entry["subresource"]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::String(text) if text.starts_with("ReplicaSet ") => {
            "the message names the ReplicaSet".clone_into(text);
        }
        _ => {}
    }
}
