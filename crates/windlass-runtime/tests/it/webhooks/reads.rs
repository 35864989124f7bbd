//! Webhooks that read the cluster, and runnables that read caches, with exactly the rights that they declare.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::api::PostParams;
use kube_core::ApiResource;
use windlass_runtime::{
    AdmissionContextExt as _, AdmissionWebhookExt as _, Error, Manager, ObjectKey, Permission, RunContext,
    Runnable, Verb,
    informer::CacheOptions,
    webhook::{
        Admission, AdmissionChange, AdmissionContext, AdmissionDenial, AdmissionWebhook, SelfIssued,
        WebhookServer, Webhooks, manifests::Endpoint,
    },
};
use windlass_test::fake::FakeCluster;
use windlass_test::{TestCluster, eventually, stretched};

use super::{
    bars::{self, v2},
    configure_at, create, denial, free_port, with,
};
use crate::fixture::{SOON, config_map, run, secret, secrets};

/// Allows a ConfigMap whose namespace exists, if a Secret has the name of the ConfigMap.
async fn validate(_: AdmissionChange<ConfigMap>, cx: AdmissionContext) -> Result<(), AdmissionDenial> {
    let namespace = cx.namespace().unwrap_or_default();
    if cx.lister::<Namespace>().await?.get(&ObjectKey::cluster(namespace))?.is_none() {
        return Err(AdmissionDenial::new(format!("no namespace {namespace}")));
    }
    let secrets = kube_client::Api::<Secret>::namespaced(cx.client()?.clone(), namespace);
    match secrets.get_opt(cx.name()).await.map_err(Error::from)? {
        Some(_) => Ok(()),
        None => Err(AdmissionDenial::new(format!("no Secret {}", cx.name()))),
    }
}

fn webhook() -> AdmissionWebhook {
    AdmissionWebhook::validator::<ConfigMap>(validate)
        .reads::<Namespace>()
        .needs(Permission::to::<Secret>([Verb::Get]))
}

#[tokio::test]
async fn a_webhook_reads_with_exactly_the_declared_rights() {
    let cluster = TestCluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    configure_at(&client, "reads", &Webhooks::new().admission(webhook()), port).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let server = WebhookServer::new(Webhooks::new().admission(webhook())).port(port).self_issued(issued);
    let manager = Manager::new(client.clone()).webhooks(server);
    let rules = manager.permissions().cluster_role();
    let may = |resource: &str| {
        let rule = rules.iter().find(|rule| rule.resources.iter().flatten().any(|one| one == resource));
        rule.map(|rule| rule.verbs.join(" ")).unwrap_or_default()
    };
    assert_eq!((may("namespaces").as_str(), may("secrets").as_str()), ("list watch", "get"));
    let account = cluster.restricted_account(&manager).await;
    let running = run(manager.client(account.client()));

    let refused = "403 Forbidden admission webhook \"vconfigmap-v1.kb.io\" denied the request: no Secret a";
    eventually(SOON, || async {
        match denial(create(&client, with("a", &[])).await) {
            text if text == refused => Ok(()),
            text => Err(text),
        }
    })
    .await;
    secrets(&client).create(&PostParams::default(), &secret("a")).await.expect("created");
    create(&client, with("a", &[])).await.expect("the Secret exists");
    running.stop().await.expect("a graceful stop");
}

/// Allows a ConfigMap `reads` if Bars can be read, and no other ConfigMap.
async fn validate_with_bars(
    _: AdmissionChange<ConfigMap>,
    cx: AdmissionContext,
) -> Result<(), AdmissionDenial> {
    if cx.name() != "reads" {
        return Err(AdmissionDenial::new("no bar is read"));
    }
    cx.lister_of(&ApiResource::erase::<v2::Bar>(&())).await?;
    Ok(())
}

#[tokio::test]
async fn a_webhook_answers_while_the_server_does_not_serve_a_kind_that_the_webhook_reads() {
    let cluster = TestCluster::start().await;
    let (client, port) = (cluster.client(), free_port().await);
    let webhook = AdmissionWebhook::validator::<ConfigMap>(validate_with_bars)
        .reads_of(ApiResource::erase::<v2::Bar>(&()), CacheOptions::new());
    let webhooks = Webhooks::new().admission(webhook);
    configure_at(&client, "reads", &webhooks, port).await;
    let issued = SelfIssued::for_host("127.0.0.1", port).interval(Duration::from_millis(50));
    let server = WebhookServer::new(webhooks).port(port).self_issued(issued);
    let running = run(Manager::new(client.clone()).namespaces(["default"]).webhooks(server));

    let refused = |name: &'static str, wanted: &'static str| {
        let client = client.clone();
        eventually(SOON, move || {
            let client = client.clone();
            async move {
                let text = denial(create(&client, with(name, &[])).await);
                if text.ends_with(wanted) { Ok(()) } else { Err(text) }
            }
        })
    };
    refused("other", "no bar is read").await;
    refused("reads", "reads Bar, which the API server does not serve yet; is its CRD installed?").await;
    let endpoint = Endpoint::url(format!("https://127.0.0.1:{port}"));
    let definitions = kube_client::Api::<CustomResourceDefinition>::all(client.clone());
    let definition = bars::definition("v2", &endpoint);
    definitions.create(&PostParams::default(), &definition).await.expect("created");
    eventually(SOON, || create(&client, with("reads", &[]))).await;
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_webhook_reads_a_fake_cluster() {
    let fake = FakeCluster::builder().object(namespace("default")).object(secret("a")).build();
    let webhooks = fake.webhooks(Webhooks::new().admission(webhook())).expect("connected");
    let message = async |name: &str| {
        webhooks.admit(Admission::create(&config_map(name))).await.status().message.clone()
    };
    assert_eq!((message("a").await, message("b").await), (String::new(), "no Secret b".to_owned()));
}

fn namespace(name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespace
}

#[tokio::test]
async fn a_read_that_is_not_declared_or_has_no_cluster_says_what_to_do() {
    let undeclared = || Webhooks::new().validator::<ConfigMap>(validate);
    let answer =
        async |webhooks: Webhooks| webhooks.admit(Admission::create(&config_map("a"))).await.status().clone();
    let fake = FakeCluster::new([namespace("default")]);
    let status = answer(fake.webhooks(undeclared()).expect("connected")).await;
    assert_eq!(
        (status.code, &*status.message),
        (
            500,
            "runnable \"webhooks\" reads Namespace but did not declare it; add `.reads::<Namespace>()` where the runnable or \
             the webhook is built"
        )
    );
    let message = answer(undeclared()).await.message;
    assert!(message.contains("in a unit test with `FakeCluster::webhooks`"), "{message}");
}

#[tokio::test]
async fn a_runnable_reads_the_cache_that_it_declares() {
    let cluster = TestCluster::start().await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let count = Runnable::new("count", move |cx: RunContext| async move {
        let _ = tell.send(cx.lister::<Namespace>()?.all()?.names());
        cx.shutdown().requested().await;
        Ok::<_, Error>(())
    });
    let manager = Manager::new(cluster.client()).runnable(count.reads::<Namespace>());
    let account = cluster.restricted_account(&manager).await;
    let running = run(manager.client(account.client()));
    let names = told.await.expect("the runnable has started");
    assert!(names.iter().any(|name| name == "default"), "{names:?}");
    running.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_cache_of_a_kind_that_is_known_at_run_time_is_limited_to_the_namespaces_of_the_manager() {
    let cluster = TestCluster::start().await;
    create(&cluster.client(), config_map("a")).await.expect("created");
    let kind = ApiResource::erase::<ConfigMap>(&());
    let (tell, told) = tokio::sync::oneshot::channel();
    let count = {
        let kind = kind.clone();
        Runnable::new("count", move |cx: RunContext| async move {
            let _ = tell.send(cx.lister_of(&kind)?.all()?.names());
            cx.shutdown().requested().await;
            Ok::<_, Error>(())
        })
    };
    let manager = Manager::new(cluster.client())
        .namespaces(["default"])
        .runnable(count.reads_of(&kind, CacheOptions::new()));
    let running = cluster.run_restricted(manager).await;
    let names = tokio::time::timeout(stretched(SOON), told).await.expect("the cache is filled");
    let names = names.expect("the runnable has started");
    assert!(names.iter().any(|name| name == "a"), "{names:?}");
    running.stop().await.expect("a graceful stop");
}
