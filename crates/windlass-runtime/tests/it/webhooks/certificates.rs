use std::{sync::Arc, time::Duration};

use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Secret, Service},
    rbac::v1::PolicyRule,
};
use kube_client::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use windlass_runtime::{
    Manager,
    env::Env,
    storage_migration::StorageMigration,
    webhook::{
        SelfIssued, ServerDefaults, WebhookServer,
        certificates::{CertificateDurations, CertificateFiles},
        manifests::Endpoint,
    },
};
use windlass_test::eventually;

use super::{configure, create, free_port, setting::Cluster, webhooks, with};
use crate::{
    fixture::SOON,
    manager::{free_address, get},
};

const LOOK: Duration = Duration::from_millis(50);

/// Creates the service `hooks`, whose ports are those of this machine.
async fn create_service(client: &Client) {
    let spec = json!({"type": "ExternalName", "externalName": "localhost"});
    let service: Service =
        serde_json::from_value(json!({"metadata": {"name": "hooks"}, "spec": spec})).expect("a service");
    let services: Api<Service> = Api::default_namespaced(client.clone());
    services.create(&PostParams::default(), &service).await.expect("created");
}

fn ca_bundle(configuration: ValidatingWebhookConfiguration) -> String {
    let webhook = configuration.webhooks.into_iter().flatten().next().expect("a webhook");
    String::from_utf8(webhook.client_config.ca_bundle.unwrap_or_default().0).expect("PEM")
}

async fn trusted(client: &Client) -> usize {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    ca_bundle(api.get("hooks").await.expect("read")).matches("BEGIN CERTIFICATE").count()
}

#[tokio::test]
async fn replicas_that_race_share_one_certificate() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    create_service(&client).await;
    let mut replicas = Vec::new();
    for name in ["hooks", "hooks-2", "hooks-3"] {
        let port = free_port().await;
        // Each object is passed to every replica.
        configure(&client, name, &webhooks(), &Endpoint::service("default", "hooks").service_port(port))
            .await;
        let issued = SelfIssued::for_service("default", "hooks").interval(LOOK);
        let server = WebhookServer::new(webhooks()).port(port).self_issued(issued);
        replicas.push(cluster.run(Manager::new(client.clone()).webhooks(server)).await);
    }
    eventually(SOON, || create(&client, with("first", &[]))).await;
    for number in 0..9 {
        create(&client, with(&format!("a-{number}"), &[])).await.expect("all are trusted");
    }
    assert_eq!(trusted(&client).await, 1);
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret = secrets.get("webhook-server-cert").await.expect("one secret");
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    for replica in replicas {
        replica.stop().await.expect("a graceful stop");
    }
}

/// The next look at the cluster is an hour away.
#[tokio::test]
async fn a_configuration_that_is_created_later_is_trusted_at_once() {
    let cluster = Cluster::start().await;
    let (client, port, health) = (cluster.client(), free_port().await, free_address().await);
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_hours(1));
    let server = WebhookServer::new(webhooks()).port(port).self_issued(issued);
    let manager = Manager::new(client.clone()).webhooks(server).health_address(health);
    let running = cluster.run(manager).await;
    eventually(SOON, || async {
        let (code, text) = get(health, "/readyz").await.map_err(|error| error.to_string())?;
        if code == 200 { Ok(()) } else { Err(text) }
    })
    .await;
    configure(&client, "hooks", &webhooks(), &Endpoint::url(format!("https://127.0.0.1:{port}"))).await;
    eventually(SOON, || create(&client, with("first", &[]))).await;
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn no_request_fails_while_authority_and_certificate_are_exchanged() {
    let cluster = Cluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    configure(&client, "hooks", &webhooks(), &Endpoint::url(format!("https://127.0.0.1:{port}"))).await;
    // The server that verifies has a real clock: the operator's comes from the past.
    let now = Arc::new(Mutex::new(Timestamp::now() - (70 * 24).hours()));
    let clock = now.clone();
    let env = Env::new(1, move || *clock.lock());
    let lifetimes = CertificateDurations {
        authority: Duration::from_secs(100 * 24 * 3600),
        ..CertificateDurations::default()
    };
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(LOOK).lifetimes(lifetimes);
    let server = WebhookServer::new(webhooks()).port(port).self_issued(issued);
    let running = cluster.run(Manager::new(client.clone()).env(env).webhooks(server)).await;
    eventually(SOON, || create(&client, with("first", &[]))).await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let serving = async || {
        secrets.get("webhook-server-cert").await.expect("read").data.expect("data")["tls.crt"].clone()
    };
    let before = serving().await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "a"}}}));
    secrets.patch("webhook-server-cert", &PatchParams::default(), &label).await.expect("labelled");
    *now.lock() = Timestamp::now();
    let mut number = 0;
    eventually(SOON, || {
        number += 1;
        let name = format!("a-{number}");
        let (client, serving, before) = (&client, &serving, &before);
        async move {
            create(client, with(&name, &[])).await.expect("never fails");
            let done = serving().await != *before && trusted(client).await == 2;
            if done { Ok(()) } else { Err("not rotated yet") }
        }
    })
    .await;
    for number in 0..5 {
        create(&client, with(&format!("b-{number}"), &[])).await.expect("still trusted");
    }
    let labels = secrets.get("webhook-server-cert").await.expect("read").metadata.labels;
    assert_eq!(labels.unwrap_or_default()["team"], "a", "labels stay");
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_bundle_that_is_overwritten_is_restored() {
    let cluster = Cluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    configure(&client, "hooks", &webhooks(), &Endpoint::url(format!("https://127.0.0.1:{port}"))).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(LOOK);
    let server = WebhookServer::new(webhooks()).port(port).self_issued(issued);
    let running = cluster.run(Manager::new(client.clone()).webhooks(server)).await;
    eventually(SOON, || create(&client, with("a", &[]))).await;
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mut configuration = api.get("hooks").await.expect("read");
    for webhook in configuration.webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle = None;
    }
    api.replace("hooks", &PostParams::default(), &configuration).await.expect("written");
    eventually(SOON, || create(&client, with("b", &[]))).await;
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_missing_certificate_fails_readiness_until_its_files_are_there() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let (port, health) = (free_port().await, ([127, 0, 0, 1], free_port().await).into());
    let folder = tempfile::tempdir().expect("a folder");
    let files = CertificateFiles::in_folder(folder.path()).interval(LOOK);
    let manager = Manager::new(client.clone())
        .health_address(health)
        .webhook_defaults(ServerDefaults { port, files, ..ServerDefaults::default() })
        .webhooks(webhooks());
    let metrics = manager.metrics().clone();
    let running = cluster.run(manager).await;
    let failing = eventually(SOON, || async {
        let (code, text) = get(health, "/readyz").await.map_err(|error| error.to_string())?;
        let tried = !metrics.render_prometheus().contains("certwatcher_read_certificate_errors_total 0");
        if tried && text.contains("[+]informer-sync ok") { Ok((code, text)) } else { Err(text) }
    })
    .await;
    assert_eq!(failing.0, 500);
    assert!(failing.1.contains("[-]webhook failed"), "{}", failing.1);
    // Another operator's self-issued certificate, from its Secret.
    let issuer = SelfIssued::for_host("127.0.0.1", port).interval(LOOK);
    let other = WebhookServer::new(webhooks())
        .host([127, 0, 0, 1].into())
        .port(free_port().await)
        .self_issued(issuer);
    let other = cluster.run(Manager::new(client.clone()).webhooks(other)).await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret = eventually(SOON, || secrets.get("webhook-server-cert")).await;
    for (name, contents) in secret.data.expect("data") {
        std::fs::write(folder.path().join(name), contents.0).expect("written");
    }
    eventually(SOON, || async {
        let (code, text) = get(health, "/readyz").await.map_err(|error| error.to_string())?;
        if code == 200 { Ok(()) } else { Err(text) }
    })
    .await;
    other.stop().await.expect("a graceful stop");
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn each_of_two_webhook_servers_must_listen_before_the_manager_is_ready() {
    let cluster = Cluster::start().await;
    let (client, health) = (cluster.client(), free_address().await);
    let folder = tempfile::tempdir().expect("a folder");
    let missing = CertificateFiles::in_folder(folder.path());
    let port = free_port().await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(LOOK);
    let manager = Manager::new(client)
        .webhooks(WebhookServer::new(webhooks()).port(free_port().await).certificate_files(missing))
        .webhooks(WebhookServer::new(webhooks()).port(port).self_issued(issued))
        .health_address(health);
    let running = cluster.run(manager).await;
    eventually(SOON, || async move {
        let (code, text) = get(health, "/readyz?verbose").await.map_err(|error| error.to_string())?;
        let served = text.contains("[+]webhook-2 ok") && text.contains("[-]webhook failed");
        if served && code == 500 { Ok(()) } else { Err(text) }
    })
    .await;
    running.stop().await.expect("a graceful stop");
    drop(cluster);
}

#[tokio::test]
async fn a_port_in_use_is_a_clear_error() {
    let cluster = Cluster::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = taken.local_addr().expect("an address").port();
    let server = WebhookServer::new(webhooks()).host([127, 0, 0, 1].into()).port(port);
    let error = cluster
        .run(Manager::new(cluster.client()).webhooks(server))
        .await
        .ended()
        .await
        .expect_err("it ends")
        .to_string();
    let wanted =
        format!("running webhooks: cannot serve webhooks on 127.0.0.1:{port}: Address already in use");
    assert!(error.starts_with(&wanted), "{error}");
}

#[tokio::test]
async fn the_rights_of_self_issued_certificates_are_declared() {
    let cluster = Cluster::start().await;
    let server =
        WebhookServer::new(super::bars::webhooks()).self_issued(SelfIssued::for_service("ops", "hooks"));
    let permissions = Manager::new(cluster.client())
        .webhooks(server)
        .runnable(StorageMigration::of("bars.example.com").runnable())
        .permissions();
    let shown = |rules: Vec<PolicyRule>| {
        let rules =
            rules.into_iter().filter(|rule| rule.resources.as_ref().is_none_or(|all| all != &["events"]));
        let lines = rules.map(|rule| {
            let join = |list: Option<Vec<String>>| list.unwrap_or_default().join(",");
            format!("{} {} {}", join(rule.resources), join(rule.resource_names), rule.verbs.join(","))
        });
        lines.collect::<Vec<_>>()
    };
    let mut cluster_role = shown(permissions.cluster_role());
    cluster_role.sort();
    assert_eq!(
        cluster_role,
        [
            "bars  list,update",
            "customresourcedefinitions bars.example.com get,patch",
            "customresourcedefinitions/status bars.example.com patch",
            "mutatingwebhookconfigurations,validatingwebhookconfigurations  list,watch,patch",
        ]
    );
    let mut role = shown(permissions.roles().remove("ops").expect("a role"));
    role.sort();
    assert_eq!(role, ["secrets  create", "secrets webhook-server-cert get,patch"]);
}
