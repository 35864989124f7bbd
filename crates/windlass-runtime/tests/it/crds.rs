//! Operators that apply CRDs at the start.

use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{
    Client,
    api::{Api, DeleteParams, Patch, PatchParams, PostParams},
};
use kube_core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use windlass_runtime::{
    Action, BoxError, Context, Controller, Error, Manager, ObjectKey, RunContext, Runnable,
    crds::{FIELD_MANAGER, install_crds},
    manager::Group,
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{Running, SOON, run, run_declared},
    manager::{free_address, get},
};

const NAME: &str = "bars.example.com";

/// A CRD with the given fields in the spec of each version.
fn crd(versions: &[(&str, bool, &[&str])]) -> CustomResourceDefinition {
    let versions: Vec<Value> =
        versions.iter().map(|(name, storage, fields)| version(name, *storage, fields)).collect();
    let crd = json!({
        "metadata": { "name": NAME },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Bar", "plural": "bars", "singular": "bar" },
            "versions": versions,
        },
    });
    serde_json::from_value(crd).expect("a CRD")
}

fn version(name: &str, storage: bool, fields: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({ "type": "string" }))).collect();
    let spec = json!({ "type": "object", "properties": fields });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } })
}

fn one(fields: &[&str]) -> CustomResourceDefinition {
    crd(&[("v1", true, fields)])
}

fn bar(version: &str) -> ApiResource {
    ApiResource {
        group: "example.com".to_owned(),
        version: version.to_owned(),
        api_version: format!("example.com/{version}"),
        kind: "Bar".to_owned(),
        plural: "bars".to_owned(),
    }
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

async fn live(cluster: &TestCluster) -> Value {
    let live = definitions(&cluster.client()).get(NAME).await.expect("the CRD is installed");
    serde_json::to_value(live).expect("JSON")
}

/// The fields of the spec in a version of the live CRD.
async fn live_fields(cluster: &TestCluster, version: &str) -> Vec<String> {
    let live = live(cluster).await;
    let versions = live["spec"]["versions"].as_array().expect("versions").clone();
    let found = versions.iter().find(|found| found["name"] == version);
    let fields = found.and_then(|version| {
        version.pointer("/schema/openAPIV3Schema/properties/spec/properties")?.as_object()
    });
    fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the field managers of the CRD, with their operations.
async fn managers(cluster: &TestCluster) -> Vec<String> {
    let live = live(cluster).await;
    let entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let own = entries.iter().filter(|entry| entry["subresource"].is_null());
    own.map(|entry| format!("{} {}", text(&entry["manager"]), text(&entry["operation"]))).collect()
}

/// An operator that watches a version of the kind.
fn operator(cluster: &TestCluster, crd: CustomResourceDefinition, version: &str) -> Manager {
    let reconcile = |_: ObjectKey, _: Context<DynamicObject>| async { Ok::<_, Error>(Action::done()) };
    Manager::new(cluster.client())
        .crd(crd)
        .apply_crds()
        .controller(Controller::of_kind(bar(version), reconcile))
}

/// Runs an operator with exactly its declared rights, until the operator is ready.
async fn ready(cluster: &TestCluster, manager: Manager) -> Running {
    let address = free_address().await;
    let running = run_declared(cluster, manager.health_address(address)).await;
    eventually(SOON, || async move {
        match get(address, "/readyz?verbose").await {
            Ok((200, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    running
}

async fn refused(cluster: &TestCluster, manager: Manager) -> String {
    run_declared(cluster, manager)
        .await
        .ended()
        .await
        .expect_err("the operator ends with an error")
        .to_string()
}

#[tokio::test]
async fn a_missing_crd_is_created_before_readiness_and_belongs_to_the_manager_of_kubectl() {
    let cluster = TestCluster::start().await;
    let running = ready(&cluster, operator(&cluster, one(&["size"]), "v1")).await;
    assert_eq!(live_fields(&cluster, "v1").await, ["size"]);
    assert_eq!(managers(&cluster).await, [format!("{FIELD_MANAGER} Apply")]);
    running.stop().await.expect("stopped");

    // An install by a command later takes fields away.
    install_crds(&cluster.client(), &[one(&["color"])]).await.expect("installed");
    assert_eq!(live_fields(&cluster, "v1").await, ["color"]);
}

#[tokio::test]
async fn additions_are_applied_and_an_older_replica_leaves_them() {
    let cluster = TestCluster::start().await;
    let old = || one(&["size"]);
    let new = || crd(&[("v1", false, &["size", "color"]), ("v2", true, &["size", "color"])]);
    let first = ready(&cluster, operator(&cluster, old(), "v1")).await;
    let second = ready(&cluster, operator(&cluster, new(), "v2")).await;
    assert_eq!(live_fields(&cluster, "v1").await, ["color", "size"]);
    assert_eq!(live_fields(&cluster, "v2").await, ["color", "size"]);
    let version = live(&cluster).await["metadata"]["resourceVersion"].clone();

    // The old replica is restarted beside the new replica.
    first.stop().await.expect("stopped");
    let first = ready(&cluster, operator(&cluster, old(), "v1")).await;
    assert_eq!(live(&cluster).await["metadata"]["resourceVersion"], version);
    first.stop().await.expect("stopped");
    second.stop().await.expect("stopped");
}

#[tokio::test]
async fn an_update_keeps_a_newer_storage_version() {
    let cluster = TestCluster::start().await;
    let stored_v2 = crd(&[("v1", false, &["size"]), ("v2", true, &["size"])]);
    install_crds(&cluster.client(), &[stored_v2]).await.expect("installed");
    let adds = crd(&[("v1", true, &["size", "color"]), ("v2", false, &["size", "color"])]);
    ready(&cluster, operator(&cluster, adds, "v1")).await.stop().await.expect("stopped");
    assert_eq!(live_fields(&cluster, "v1").await, ["color", "size"]);
    assert_eq!(live(&cluster).await["spec"]["versions"][1]["storage"], true);
}

#[tokio::test]
async fn a_breaking_change_is_refused_and_accepted_after_an_install() {
    let cluster = TestCluster::start().await;
    install_crds(&cluster.client(), &[one(&["size"])]).await.expect("installed");
    let error = refused(&cluster, operator(&cluster, one(&["color"]), "v1")).await;
    assert!(
        error.starts_with("applying the CRD bars.example.com: this would break clients or stored objects")
            && error.contains("v1 .spec.size: the field is gone")
            && error.contains("`windlass install`"),
        "{error}"
    );
    assert_eq!(live_fields(&cluster, "v1").await, ["size"]);

    install_crds(&cluster.client(), &[one(&["color"])]).await.expect("installed");
    ready(&cluster, operator(&cluster, one(&["color"]), "v1")).await.stop().await.expect("stopped");
}

#[tokio::test]
async fn missing_rights_end_the_operator_with_advice() {
    let cluster = TestCluster::start().await;
    let manager = operator(&cluster, one(&["size"]), "v1");
    let account = cluster.restricted_account(&Manager::new(cluster.client())).await;
    let error = run(manager.client(account.client())).ended().await.expect_err("no rights").to_string();
    assert!(
        error.contains("applying the CRD bars.example.com")
            && error.contains("the rights create, get and patch on customresourcedefinitions"),
        "{error}"
    );
}

#[tokio::test]
async fn without_the_option_or_against_the_flag_nothing_is_applied_and_no_right_is_needed() {
    let cluster = TestCluster::start().await;
    let rules = |manager: &Manager| {
        let rules = manager.permissions().cluster_role();
        let of_crds = rules.into_iter().filter(|rule| {
            rule.resources
                .as_ref()
                .is_some_and(|names| names.contains(&"customresourcedefinitions".to_owned()))
        });
        of_crds.map(|rule| (rule.verbs, rule.resource_names)).collect::<Vec<_>>()
    };
    let plain = Manager::new(cluster.client()).crd(one(&["size"]));
    assert_eq!(rules(&plain), []);
    let manager = operator(&cluster, one(&["size"]), "v1");
    let named = (vec!["get".to_owned(), "patch".to_owned()], Some(vec![NAME.to_owned()]));
    assert_eq!(rules(&manager), [(vec!["create".to_owned()], None), named]);
    let off = manager.override_apply_crds(Some(false));
    assert_eq!(rules(&off), []);
    run(plain).stop().await.expect("stopped");
    assert!(definitions(&cluster.client()).get_opt(NAME).await.expect("read").is_none());
}

#[tokio::test]
async fn the_operator_is_not_ready_and_tries_again_while_the_server_fails() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    for _ in 0..2 {
        faults.answer(Method::GET, "/customresourcedefinitions", 503, "ServiceUnavailable", None);
    }
    let address = free_address().await;
    let manager = operator(&cluster, one(&["size"]), "v1").client(faults.client()).health_address(address);
    let running = run(manager);
    eventually(SOON, || async move {
        match get(address, "/readyz").await {
            Ok((200, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(live_fields(&cluster, "v1").await, ["size"]);
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn labels_and_the_authority_of_a_conversion_webhook_stay() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let two = |fields: &[&str]| crd(&[("v1", true, fields), ("v2", false, fields)]);
    install_crds(&client, &[two(&["size"])]).await.expect("installed");
    let made = rcgen::generate_simple_self_signed(["hooks".to_owned()]).expect("a certificate");
    let authority = json!(k8s_openapi::ByteString(made.cert.pem().into_bytes()));
    let service = json!({ "namespace": "web", "name": "hooks", "path": "/convert" });
    let conversion = json!({ "strategy": "Webhook", "webhook": {
        "clientConfig": { "service": service, "caBundle": authority }, "conversionReviewVersions": ["v1"],
    } });
    let patch = json!({ "metadata": { "labels": { "team": "web" } }, "spec": { "conversion": conversion } });
    definitions(&client).patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");

    ready(&cluster, operator(&cluster, two(&["size", "color"]), "v1")).await.stop().await.expect("stopped");
    let live = live(&cluster).await;
    assert_eq!(live_fields(&cluster, "v1").await, ["color", "size"]);
    assert_eq!(live["metadata"]["labels"]["team"], "web");
    let config = &live["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!((&config["caBundle"], &config["service"]["name"]), (&authority, &json!("hooks")));
}

/// The operator removes the finalizer of an object, which the deletion of the CRD waits for. The operator needs the CRD afterwards, too.
#[tokio::test]
async fn an_operator_starts_while_its_crd_is_being_deleted_and_creates_the_crd_again() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    ready(&cluster, operator(&cluster, one(&["size"]), "v1")).await.stop().await.expect("stopped");
    let bars: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &bar("v1"));
    let mut object = DynamicObject::new("a", &bar("v1"));
    object.metadata.finalizers = Some(vec!["example.com/cleanup".to_owned()]);
    bars.create(&PostParams::default(), &object).await.expect("created");
    let uid = definitions(&client).get(NAME).await.expect("read").metadata.uid;
    definitions(&client).delete(NAME, &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async {
        let object = bars.get("a").await.map_err(|error| error.to_string())?;
        if object.metadata.deletion_timestamp.is_some() { Ok(()) } else { Err("not deleted".to_owned()) }
    })
    .await;

    let released = {
        let bars = bars.clone();
        move |key: ObjectKey, _: Context<DynamicObject>| {
            let bars = bars.clone();
            async move {
                let patch = json!({ "metadata": { "finalizers": null } });
                match bars.patch(key.name(), &PatchParams::default(), &Patch::Merge(patch)).await {
                    Err(kube_client::Error::Api(status)) if status.is_not_found() => {}
                    patched => drop(patched?),
                }
                Ok::<_, Error>(Action::done())
            }
        }
    };
    let manager = Manager::new(client.clone())
        .crd(one(&["size"]))
        .apply_crds()
        .controller(Controller::of_kind(bar("v1"), released));
    let running = run_declared(&cluster, manager).await;
    eventually(SOON, || async {
        match definitions(&client).get_opt(NAME).await {
            Ok(Some(crd)) if crd.metadata.uid != uid => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    // The controller watches the new CRD.
    object.metadata.name = Some("b".to_owned());
    eventually(SOON, || async {
        bars.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())
    })
    .await;
    eventually(SOON, || async {
        let object = bars.get("b").await.map_err(|error| error.to_string())?;
        object.metadata.finalizers.map_or(Ok(()), |finalizers| Err(format!("{finalizers:?}")))
    })
    .await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_webhook_server_that_fails_ends_an_operator_that_still_applies_its_crds() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    for _ in 0..100 {
        faults.answer(Method::GET, "/customresourcedefinitions", 503, "ServiceUnavailable", None);
    }
    let fails = |_: RunContext| async { Err::<(), _>(BoxError::from("the port is in use")) };
    let manager = operator(&cluster, one(&["size"]), "v1")
        .client(faults.client())
        .runnable(Runnable::new("webhooks", fails).group(Group::Webhooks));
    let error = run(manager).ended().await.expect_err("a failure").to_string();
    assert_eq!(error, "running webhooks: the port is in use");
}
