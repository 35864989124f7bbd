//! Pods whose programs run: the whole way from an object to the runtime and back.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube_client::api::{DeleteParams, LogParams, Patch, PatchParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kube_core::ResourceExt;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use windlass_controllers::PodMode;
use windlass_node::Command;

use crate::fake_runtime::FakeContainer;
use crate::stage::{Stage, eventually, is_ready, phase, pod, status, waiting};

fn mount<'a>(container: &'a FakeContainer, target: &str) -> &'a std::path::Path {
    let mounts = &container.spec.mounts;
    &mounts.iter().find(|mount| mount.target.to_string_lossy() == target).unwrap().source
}

#[tokio::test]
async fn a_pod_with_a_local_image_runs_and_others_are_simulated() {
    let stage = Stage::new(PodMode::Local).await;
    stage
        .create::<Pod>(pod(
            "real",
            &json!({"args": ["--ip=$(IP)"], "env": [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}),
        ))
        .await;
    stage.create::<Pod>(pod("far", &json!({"image": "nginx:1.27"}))).await;
    stage
        .create::<Pod>({
            let mut told = pod("told", &json!({}));
            told["metadata"]["annotations"] = json!({"kubelet.windlass.dev/run": "simulate"});
            told
        })
        .await;
    let real = stage.becomes("real", is_ready).await;
    let id = status(&real).unwrap().container_id.unwrap();
    assert!(id.starts_with("process://"), "{id}");
    let (_, container) = stage.runtime.container("c").unwrap();
    let ip = real.status.clone().unwrap().pod_ip.unwrap();
    assert_eq!(container.spec.arguments, [format!("--ip={ip}")]);
    assert!(container.spec.environment.contains(&("KUBERNETES_SERVICE_HOST".into(), "10.0.0.1".into())));
    for name in ["far", "told"] {
        let simulated = stage.becomes(name, is_ready).await;
        assert!(status(&simulated).unwrap().container_id.unwrap().starts_with("simulated://"));
        stage.event(name, "Simulated").await;
        assert!(!stage.pods.contains(&simulated.uid().unwrap()));
    }
    assert_eq!(stage.runtime.state().sandboxes.len(), 1);
    stage.plane.stop().await;
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_no_silent_simulation() {
    let stage = Stage::new(PodMode::Local).await;
    stage.create::<Pod>(pod("gone", &json!({"image": "localhost:5000/gone:v1"}))).await;
    let gone = stage.becomes("gone", |pod| waiting(pod).is_some_and(|why| why.contains("Image"))).await;
    assert_eq!(phase(&gone), "Pending");
    assert_eq!(
        stage.event("gone", "Failed").await,
        "Failed to pull image \"localhost:5000/gone:v1\": localhost:5000/gone:v1: manifest unknown"
    );
    // Beside pods that run, an image that must be pulled is missed.
    stage.create::<Pod>(pod("beside", &json!({"image": "nginx:latest"}))).await;
    stage.becomes("beside", |pod| waiting(pod).is_some_and(|why| why.contains("Image"))).await;
    stage.plane.stop().await;
}

#[tokio::test]
async fn an_image_is_pulled_with_the_credentials_of_its_registry() {
    let stage = Stage::new(PodMode::Local).await;
    stage.runtime.state().remote.insert("localhost:5000/app:v1".into());
    let config = json!({"auths": {"localhost:5000": {"username": "bot", "password": "pw"}}}).to_string();
    stage
        .create::<Secret>(json!({
            "metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": config},
        }))
        .await;
    let mut pulled = pod("pulled", &json!({"image": "localhost:5000/app:v1"}));
    pulled["spec"]["imagePullSecrets"] = json!([{"name": "pull"}]);
    stage.create::<Pod>(pulled).await;
    stage.becomes("pulled", is_ready).await;
    let users: Vec<String> =
        stage.runtime.state().credentials.iter().map(|credential| credential.user.clone()).collect();
    assert_eq!(users, ["bot"]);
    stage.plane.stop().await;
}

#[tokio::test]
async fn a_container_that_ends_is_restarted_and_shows_its_last_words() {
    let stage = Stage::new(PodMode::Local).await;
    let created = stage.create::<Pod>(pod("p", &json!({}))).await;
    stage.becomes("p", is_ready).await;
    let (id, container) = stage.runtime.container("c").unwrap();
    std::fs::write(mount(&container, "/dev/termination-log"), "out of luck").unwrap();
    stage.runtime.end(&id, 3);
    let restarted =
        stage.becomes("p", |pod| status(pod).is_some_and(|status| status.restart_count == 1)).await;
    let last = status(&restarted).unwrap().last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.message.as_deref()), (3, Some("out of luck")));
    stage.becomes("p", is_ready).await;
    let uid = created.uid().unwrap();
    let logs = stage.pods.logs(&uid, "c").unwrap().unwrap();
    assert!(logs.current.ends_with("c/1.log") && logs.previous.unwrap().ends_with("c/0.log"));
    let yes = Command { words: vec!["true".into()], terminal: None, stdin: false };
    let session = stage.pods.exec(&uid, "c", yes.clone()).await.unwrap().unwrap();
    assert_eq!(session.exit.await.unwrap().code, 0);
    assert!(stage.pods.exec(&uid, "none", yes.clone()).await.unwrap().is_err());
    assert!(stage.pods.exec("stranger", "c", yes).await.is_none());
    stage.plane.stop().await;
}

#[tokio::test]
async fn a_deleted_pod_is_stopped_and_leaves_nothing() {
    let stage = Stage::new(PodMode::Local).await;
    let uid = stage.create::<Pod>(pod("p", &json!({}))).await.uid().unwrap();
    stage.becomes("p", is_ready).await;
    let (id, container) = stage.runtime.container("c").unwrap();
    let directory = mount(&container, "/dev/termination-log").parent().unwrap().to_owned();
    stage.api::<Pod>().delete("p", &DeleteParams::default()).await.unwrap();
    stage.gone("p").await;
    assert_eq!(stage.runtime.state().signals, [(id, 15)]);
    assert!(stage.runtime.state().removed.contains(&uid) && !directory.exists());
    eventually(|| async { if stage.pods.contains(&uid) { Err("known".into()) } else { Ok(()) } }).await;
    // A forced deletion removes the object first.
    let forced = stage.create::<Pod>(pod("forced", &json!({}))).await.uid().unwrap();
    stage.becomes("forced", is_ready).await;
    stage.api::<Pod>().delete("forced", &DeleteParams::default().grace_period(0)).await.unwrap();
    eventually(|| async {
        if stage.runtime.state().removed.contains(&forced) { Ok(()) } else { Err("runs".into()) }
    })
    .await;
    stage.plane.stop().await;
}

#[tokio::test]
async fn a_pod_that_is_removed_by_force_while_it_starts_leaves_nothing() {
    let stage = Stage::new(PodMode::Local).await;
    for (operation, name) in [("create_sandbox", "created"), ("start", "started")] {
        stage.runtime.hold(operation);
        let uid = stage.create::<Pod>(pod(name, &json!({}))).await.uid().unwrap();
        let of_pod = (operation, uid.clone());
        let holds = |yes: bool, what: &str| if yes { Ok(()) } else { Err(what.to_owned()) };
        eventually(|| async { holds(stage.runtime.state().begun.contains(&of_pod), "has not begun") }).await;
        stage.api::<Pod>().delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
        eventually(|| async { holds(stage.runtime.state().removed.contains(&uid), "is not removed") }).await;
        stage.runtime.release(operation);
        eventually(|| async { holds(stage.runtime.state().ended.contains(&of_pod), "has not ended") }).await;
        eventually(|| async { holds(!stage.runtime.has(&uid), "is left") }).await;
    }
    stage.plane.stop().await;
}

#[tokio::test]
async fn volumes_with_the_objects_of_the_cluster_are_read_only() {
    let stage = Stage::new(PodMode::Local).await;
    stage.create::<ConfigMap>(json!({"metadata": {"name": "cm"}, "data": {"k": "1"}})).await;
    stage.create::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"k": "1"}})).await;
    let names = ["map", "secret", "downward", "projected", "scratch"];
    let mounts = names.map(|name| json!({"name": name, "mountPath": format!("/{name}")}));
    let mut spec = pod("p", &json!({"volumeMounts": mounts}));
    let label = json!([{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]);
    spec["spec"]["volumes"] = json!([
        {"name": "map", "configMap": {"name": "cm"}},
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "downward", "downwardAPI": {"items": label}},
        {"name": "projected", "projected": {"sources": [{"configMap": {"name": "cm"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]);
    stage.create::<Pod>(spec).await;
    stage.becomes("p", is_ready).await;
    let (_, container) = stage.runtime.container("c").unwrap();
    for name in names {
        let target = std::path::PathBuf::from(format!("/{name}"));
        let mount = container.spec.mounts.iter().find(|mount| mount.target == target).unwrap();
        assert_eq!(mount.read_only, name != "scratch", "{name}");
    }
    stage.plane.stop().await;
}

#[tokio::test]
async fn the_files_of_the_last_two_starts_are_kept() {
    let stage = Stage::new(PodMode::Local).await;
    stage.runtime.state().images.extend(["app:v2".to_owned(), "app:v3".to_owned()]);
    stage.create::<Pod>(pod("p", &json!({}))).await;
    let mut files = Vec::new();
    for (attempt, image) in ["app:v1", "app:v2", "app:v3"].into_iter().enumerate() {
        let change = Patch::Strategic(json!({"spec": {"containers": [{"name": "c", "image": image}]}}));
        stage.api::<Pod>().patch("p", &PatchParams::default(), &change).await.unwrap();
        eventually(|| async {
            let known = stage.runtime.container("c").map(|(_, container)| container.spec.attempt);
            if known == Some(attempt as u32) { Ok(()) } else { Err(format!("{known:?}")) }
        })
        .await;
        stage.becomes("p", is_ready).await;
        let (_, container) = stage.runtime.container("c").unwrap();
        std::fs::create_dir_all(container.spec.log.parent().unwrap()).unwrap();
        std::fs::write(&container.spec.log, "line").unwrap();
        files.push([container.spec.log.clone(), mount(&container, "/dev/termination-log").to_owned()]);
    }
    eventually(|| async {
        let kept: Vec<bool> = files.iter().flatten().map(|file| file.exists()).collect();
        if kept == [false, false, true, true, true, true] { Ok(()) } else { Err(format!("{kept:?}")) }
    })
    .await;
    stage.plane.stop().await;
}

#[tokio::test]
async fn the_files_of_a_volume_follow_its_objects() {
    let stage = Stage::new(PodMode::Local).await;
    let mut spec = pod(
        "p",
        &json!({
            "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/one", "subPath": "k"}],
            "env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}}],
        }),
    );
    spec["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "cm"}}]);
    stage.create::<Pod>(spec).await;
    let why = stage.event("p", "FailedMount").await;
    assert_eq!(why, "MountVolume.SetUp failed for volume \"v\" : configmap \"cm\" not found");
    stage.create::<ConfigMap>(json!({"metadata": {"name": "cm"}, "data": {"k": "1"}})).await;
    stage.becomes("p", is_ready).await;
    let (_, container) = stage.runtime.container("c").unwrap();
    assert!(container.spec.environment.contains(&("K".into(), "1".into())));
    let file = mount(&container, "/v").join("k");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
    let change = Patch::Merge(json!({"data": {"k": "2"}}));
    stage.api::<ConfigMap>().patch("cm", &PatchParams::default(), &change).await.unwrap();
    eventually(|| async {
        match std::fs::read_to_string(&file) {
            Ok(text) if text == "2" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    stage.plane.stop().await;
}

/// Returns a client of the real server with the token of a pod.
async fn client_of(stage: &Stage, container: &FakeContainer) -> Client {
    let directory = mount(container, "/var/run/secrets/kubernetes.io/serviceaccount");
    let token = std::fs::read_to_string(directory.join("token")).unwrap();
    assert!(std::fs::read_to_string(directory.join("ca.crt")).unwrap().contains("BEGIN CERTIFICATE"));
    let mut kubeconfig = Kubeconfig::from_yaml(stage.plane.kubeconfig()).unwrap();
    let user = json!({"token": token});
    kubeconfig.auth_infos[0].auth_info = serde_json::from_value(user).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_pod_has_the_rights_of_its_account_until_they_end() {
    let stage = Stage::new(PodMode::Local).await;
    let binding = stage
        .create::<RoleBinding>(json!({
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        }))
        .await;
    stage.create::<Pod>(pod("p", &json!({}))).await;
    stage.becomes("p", is_ready).await;
    let (_, container) = stage.runtime.container("c").unwrap();
    let client = client_of(&stage, &container).await;
    let maps = kube_client::Api::<ConfigMap>::namespaced(client, "default");
    let list =
        || async { maps.list(&kube_client::api::ListParams::default()).await.map(|list| list.items.len()) };
    list().await.unwrap();
    stage.api::<RoleBinding>().delete(&binding.name_any(), &DeleteParams::default()).await.unwrap();
    let forbidden = list().await.unwrap_err().to_string();
    assert!(forbidden.contains("cannot list resource \"configmaps\""), "{forbidden}");
    stage.api::<Pod>().delete("p", &DeleteParams::default()).await.unwrap();
    stage.gone("p").await;
    let refused = list().await.unwrap_err();
    let kube_client::Error::Api(status) = &refused else { panic!("{refused}") };
    assert_eq!(status.code, 401, "{refused}");
    stage.plane.stop().await;
}

/// Answers every connection with the first line in capitals.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 64];
                let length = stream.read(&mut bytes).await.unwrap_or(0);
                let _ = stream.write_all(bytes[..length].to_ascii_uppercase().as_slice()).await;
            });
        }
    });
    address
}

async fn ask(address: SocketAddr) -> Result<String, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    stream.write_all(b"hello").await.map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(|error| error.to_string())?;
    if answer == "HELLO" { Ok(answer) } else { Err(format!("{answer:?}")) }
}

#[tokio::test]
async fn a_pod_reaches_services_the_api_server_and_ports_of_the_machine() {
    let beside = echo().await;
    let stage = Stage::with_host_ports(PodMode::Local, vec![beside.port()]).await;
    let inside = echo().await;
    stage.runtime.state().ports.insert(8080, inside);
    let mut server = pod("server", &json!({"ports": [{"containerPort": 8080}]}));
    server["metadata"]["labels"] = json!({"app": "server"});
    let server = stage.create::<Pod>(server).await;
    stage.becomes("server", is_ready).await;
    let service = stage
        .create::<Service>(json!({
            "metadata": {"name": "s"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }))
        .await;
    let cluster_ip = service.spec.unwrap().cluster_ip.unwrap();
    let uid = server.uid().unwrap();
    let inside = |address: String| {
        let found = stage.runtime.state().listeners.get(&address.parse().unwrap()).copied();
        found.ok_or_else(|| format!("nothing listens on {address}"))
    };
    eventually(|| async { ask(inside(format!("{cluster_ip}:80"))?).await }).await;
    // A Service without endpoints refuses connections.
    let empty =
        json!({"metadata": {"name": "empty"}, "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]}});
    stage.create::<Service>(empty).await;
    stage.create::<Pod>(pod("later", &json!({}))).await;
    stage.becomes("later", is_ready).await;
    inside("10.0.0.77:80".to_owned()).unwrap_err();
    ask(inside(format!("10.250.0.1:{}", beside.port())).unwrap()).await.unwrap();
    let api_server = inside("10.0.0.1:443".to_owned()).unwrap();
    // The server expects TLS, and answers a line of text with an alert.
    let mut stream = TcpStream::connect(api_server).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut alert = Vec::new();
    stream.read_to_end(&mut alert).await.unwrap();
    assert_eq!(alert.first(), Some(&0x15), "{alert:?}");
    let hosts = stage.runtime.state().sandboxes[&uid].hosts.clone();
    assert!(hosts.iter().any(|host| host.names == ["host.windlass.internal"]));
    let address = stage.becomes("server", is_ready).await.status.unwrap().pod_ip.unwrap();
    let network = stage.pods.network();
    network.connect(address.parse().unwrap(), 8080).await.unwrap().unwrap();
    assert!(network.connect("10.244.200.1".parse().unwrap(), 80).await.is_none());
    // A Service that is gone is not listened for.
    let listener = inside(format!("{cluster_ip}:80")).unwrap();
    stage.api::<Service>().delete("s", &DeleteParams::default()).await.unwrap();
    eventually(|| async {
        if TcpStream::connect(listener).await.is_err() { Ok(()) } else { Err("listens".into()) }
    })
    .await;
    stage.plane.stop().await;
}

#[tokio::test]
async fn the_api_server_reaches_logs_and_ports_of_a_pod() {
    let stage = Stage::new(PodMode::Local).await;
    let mut once = pod("p", &json!({}));
    once["spec"]["restartPolicy"] = json!("Never");
    let uid = stage.create::<Pod>(once).await.uid().unwrap();
    stage.becomes("p", is_ready).await;
    let file = stage.pods.logs(&uid, "c").unwrap().unwrap().current;
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "2026-01-02T03:04:05.000000000Z stdout F hello\n").unwrap();
    let log = stage.api::<Pod>().logs("p", &LogParams::default()).await.unwrap();
    assert_eq!(log, "hello\n");

    let backend = http().await;
    stage.runtime.state().ports.insert(8080, backend);
    let path = "/api/v1/namespaces/default/pods/p:8080/proxy/healthz";
    let answer = stage.client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(answer, "GET /healthz");

    // A followed log ends when the container ends.
    let followed = LogParams { follow: true, timestamps: true, ..LogParams::default() };
    let api = stage.api::<Pod>();
    let (id, _) = stage.runtime.container("c").unwrap();
    let (log, ()) = tokio::join!(api.logs("p", &followed), async { stage.runtime.end(&id, 1) });
    assert_eq!(log.unwrap(), "2026-01-02T03:04:05.000000000Z hello\n");
    stage.plane.stop().await;
}

/// Answers each request with the method and path of the request.
async fn http() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&head[..length]).into_owned();
            let line: Vec<&str> = text.split(' ').take(2).collect();
            let body = line.join(" ");
            let reply = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(reply.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn probes_reach_the_pod_and_decide_about_its_endpoints() {
    let stage = Stage::new(PodMode::Local).await;
    let probe = json!({"httpGet": {"port": "web", "path": "/readyz"}, "periodSeconds": 1});
    let container = json!({"ports": [{"name": "web", "containerPort": 8080}], "readinessProbe": probe});
    stage.create::<Pod>(pod("p", &container)).await;
    let why = stage.event("p", "Unhealthy").await;
    assert!(
        why.starts_with("Readiness probe failed: Get \"http://10.244.")
            && why.ends_with("connection refused"),
        "{why}"
    );
    assert!(!is_ready(&stage.becomes("p", |pod| phase(pod) == "Running").await));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.runtime.state().ports.insert(8080, listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            let length = stream.read(&mut head).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&head[..length]).into_owned();
            let code = if text.starts_with("GET /readyz HTTP/1.1\r\n") { "200 OK" } else { "400 Bad" };
            let _ = stream.write_all(format!("HTTP/1.1 {code}\r\n\r\n").as_bytes()).await;
        }
    });
    stage.becomes("p", is_ready).await;
    stage.plane.stop().await;
}

#[tokio::test]
async fn every_pod_runs_if_all_are_asked_for() {
    let stage = Stage::new(PodMode::All).await;
    stage.create::<Pod>(pod("far", &json!({"image": "nginx:1.27"}))).await;
    stage.becomes("far", |pod| waiting(pod).is_some_and(|why| why.contains("Image"))).await;
    stage.plane.stop().await;
}
