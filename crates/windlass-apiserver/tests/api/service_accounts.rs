//! The admission plugin ServiceAccount, which is off on both servers of the other tests.

use expect_test::expect;
use serde_json::{Value, json};
use windlass_apiserver::{AdmissionPlugin, Server};

use crate::harness::{Api, lines, plain};

async fn start() -> (Api, String) {
    let server = Server::builder().seed(7).admission_plugin(AdmissionPlugin::ServiceAccount, true);
    let api = Api::embedded(&server.build().unwrap());
    let ns = api.namespace().await;
    (api, ns)
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [
        {"name": "a", "image": "x"},
        {"name": "b", "image": "x", "volumeMounts": [
            {"name": "own", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        ]},
    ], "volumes": [{"name": "own", "emptyDir": {}}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

#[tokio::test]
async fn a_pod_without_a_service_account_is_refused() {
    let (api, ns) = start().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut seen = Vec::new();
    for spec in [json!({}), json!({"serviceAccountName": "other"})] {
        seen.push(api.post(&pods, pod("p", spec)).await.to_string());
    }
    expect![[r#"
        403 Forbidden: pods "p" is forbidden: error looking up service account ns-ID/default: serviceaccount "default" not found
        kind="pods" name="p"
        403 Forbidden: pods "p" is forbidden: error looking up service account ns-ID/other: serviceaccount "other" not found
        kind="pods" name="p"
    "#]].assert_eq(&plain(&lines(&seen), &api.id));
}

#[tokio::test]
async fn the_token_is_mounted_where_nothing_else_is() {
    let (api, ns) = start().await;
    let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    let account = json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "registry"}]});
    api.post(&accounts, account).await.is(201);
    let created = api.post(&format!("/api/v1/namespaces/{ns}/pods"), pod("p", json!({}))).await.is(201);
    let volume = created.text_at("/spec/volumes/1/name");
    let mut seen = Vec::new();
    for pointer in [
        "/spec/serviceAccountName",
        "/spec/serviceAccount",
        "/spec/imagePullSecrets",
        "/spec/volumes/1",
        "/spec/containers/0/volumeMounts",
        "/spec/containers/1/volumeMounts",
    ] {
        seen.push(format!("{pointer}: {}", created.at(pointer)));
    }
    expect![[r#"
        /spec/serviceAccountName: "default"
        /spec/serviceAccount: "default"
        /spec/imagePullSecrets: [{"name":"registry"}]
        /spec/volumes/1: {"name":"kube-api-access-SUFFIX","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}
        /spec/containers/0/volumeMounts: [{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-SUFFIX","readOnly":true}]
        /spec/containers/1/volumeMounts: [{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"own"}]
    "#]].assert_eq(&lines(&seen).replace(&volume, "kube-api-access-SUFFIX"));
}

#[tokio::test]
async fn a_pod_or_its_account_may_do_without_the_token() {
    let (api, ns) = start().await;
    let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    for (name, mounts) in [("yes", true), ("no", false)] {
        let account = json!({"metadata": {"name": name}, "automountServiceAccountToken": mounts});
        api.post(&accounts, account).await.is(201);
    }
    for (account, own, volumes) in
        [("yes", None, 2), ("no", None, 1), ("yes", Some(false), 1), ("no", Some(true), 2)]
    {
        let spec = json!({"serviceAccountName": account, "automountServiceAccountToken": own});
        let created =
            api.post(&format!("/api/v1/namespaces/{ns}/pods?dryRun=All"), pod("p", spec)).await.is(201);
        assert_eq!(created.at("/spec/volumes").as_array().unwrap().len(), volumes, "{account} {own:?}");
    }
}

#[tokio::test]
async fn the_default_account_is_waited_for() {
    let (api, ns) = start().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let creation = api.post(&pods, pod("p", json!({})));
    let account = async {
        tokio::task::yield_now().await;
        let path = format!("/api/v1/namespaces/{ns}/serviceaccounts");
        api.post(&path, json!({"metadata": {"name": "default"}})).await.is(201)
    };
    let (created, _) = futures::future::join(creation, account).await;
    created.is(201);
}
