//! Aggregated APIs: group versions that an extension server answers. The extension server is an embedded server with a definition, or a server of
//! the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite;
use windlass_apiserver::{Listen, Server};

use crate::fixtures::{group, widget, widgets};
use crate::harness::{Answer, Api, MERGE_PATCH, Reply, Webhook, deadline};

/// The config map with the authorities that extension servers trust.
const AUTHENTICATION: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// The port of a listener in a kubeconfig.
fn port_of(kubeconfig: &str) -> u16 {
    let server = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap();
    server.trim_matches('"').rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap()
}

/// A server with a listener in front of an extension server.
struct Front {
    api: Api,
    ns: String,
    group: String,
}

impl Front {
    async fn start() -> Self {
        let api = Api::start_over_tls();
        let (ns, group) = (api.namespace().await, group(&api));
        Self { api, ns, group }
    }

    /// Creates the service of the extension server, at a port of this machine.
    async fn serve(&self, name: &str) {
        let service = json!({"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
        self.api.post(&format!("/api/v1/namespaces/{}/services", self.ns), service).await.is(201);
    }

    fn api_service(&self, service: &str, port: u16) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("v1.{}", self.group)},
            "spec": {
                "group": self.group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "insecureSkipTLSVerify": true,
                "service": {"namespace": self.ns, "name": service, "port": port},
            },
        })
    }

    async fn register(&self, service: &str, port: u16) {
        self.api.post(API_SERVICES, self.api_service(service, port)).await.is(201);
        self.api.discard(format!("{API_SERVICES}/v1.{}", self.group));
    }

    /// Waits until the condition of the APIService has this reason, and returns the condition.
    async fn condition(&self, reason: &str) -> Value {
        let path = format!("{API_SERVICES}/v1.{}", self.group);
        let has = |object: &Value| object["status"]["conditions"][0]["reason"] == reason;
        let found = self.api.eventually(&path, |reply| reply.code == 200 && has(&reply.json())).await;
        found.at("/status/conditions/0")
    }

    /// Waits until the extension server is available, and requests are passed on. The real server does both one after the other.
    async fn ready(&self) {
        self.condition("Passed").await;
        self.api.eventually(&format!("{}/others", self.path()), |reply| reply.code == 200).await;
    }

    fn path(&self) -> String {
        format!("/apis/{}/v1", self.group)
    }
}

/// Returns whether a real server has no certificate that names the user to extension servers.
fn is_nameless(api: &Api, authentication: &Reply) -> bool {
    api.is_shared() && authentication.at("/data/requestheader-client-ca-file").is_null()
}

#[tokio::test]
async fn another_server_answers_the_requests_of_its_group() {
    let front = Front::start().await;
    // The backend trusts the certificate that names the server in front.
    let map = front.api.get(AUTHENTICATION).await.is(200);
    if is_nameless(&front.api, &map) {
        return;
    }
    let authority = map.text_at("/data/requestheader-client-ca-file");
    let backend = Server::builder().build().unwrap();
    let options = Listen::default().client_authorities(authority.as_bytes()).unwrap();
    let listening = backend.listen(options).await.unwrap();
    let behind = Api::embedded(&backend);
    let binding = json!({
        "metadata": {"name": "front"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "front-proxy-client", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    behind.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.is(201);
    let mut definition = widgets(&front.api);
    definition["spec"]["scope"] = "Cluster".into();
    behind.crd(definition).await;
    front.serve("backend").await;
    front.register("backend", port_of(listening.kubeconfig())).await;
    let condition = front.condition("Passed").await;
    assert_eq!((&condition["status"], &condition["message"]), (&json!("True"), &json!("all checks passed")));

    let api = &front.api;
    let path = format!("{}/widgets", front.path());
    api.get(&path).await.is(200);
    let created = api.post(&path, widget(api, "a")).await.is(201);
    let query = format!("{path}?resourceVersion={}", created.version());
    let mut watch = api.watch(&query).await;
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"size": 4}})).await.is(200);
    let changed = watch.next().await;
    assert_eq!((changed.kind.as_str(), &changed.object["spec"]["size"]), ("MODIFIED", &json!(4)));
    assert_eq!(behind.get(&format!("{path}/a")).await.is(200).at("/spec/size"), 4);
    api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(watch.next().await.kind, "DELETED");
    api.get(&format!("{path}/a")).await.is(404);

    // The documents of the real server follow later.
    let version = format!("{}/v1", front.group);
    let lists = |reply: &Reply| {
        let groups = reply.at("/groups").as_array().cloned().unwrap_or_default();
        groups.iter().any(|found| found["versions"][0]["groupVersion"] == version)
    };
    api.eventually("/apis", lists).await;
    assert_eq!(api.get(&format!("/apis/{}", front.group)).await.is(200).at("/kind"), "APIGroup");
    let resources = api.get(&front.path()).await.is(200);
    assert_eq!(resources.at("/resources/0/name"), "widgets");
    if api.is_shared() {
        // The other documents of the real server may follow a minute later.
        return;
    }
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovery = api.request(Method::GET, "/apis").accept(accept).send().await.is(200).json();
    let items = discovery["items"].as_array().unwrap();
    let of_group = items.iter().find(|item| item["metadata"]["name"] == *front.group).unwrap();
    assert_eq!(of_group["versions"][0]["resources"][0]["resource"], "widgets");
    assert_eq!(of_group["versions"][0]["freshness"], "Current");
    let paths = api.get("/openapi/v3").await.is(200).json();
    let url =
        paths["paths"][format!("apis/{}/v1", front.group)]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&url).await.is(200).at("/openapi"), "3.0.0");

    let item = format!("{path}/{{name}}");
    let has_paths = |reply: &Reply| reply.json()["paths"].get(&item).is_some();
    let document = api.eventually("/openapi/v2", has_paths).await.json();
    let kind = &document["paths"][&item]["get"]["x-kubernetes-group-version-kind"]["kind"];
    assert_eq!(kind, "Widget");
    let definition = document["paths"][&item]["get"]["responses"]["200"]["schema"]["$ref"].as_str().unwrap();
    let definitions = document["definitions"].as_object().unwrap();
    let described = &definitions[definition.strip_prefix("#/definitions/").unwrap()];
    assert_eq!(described["properties"]["spec"]["properties"]["size"]["type"], "integer");
    let renamed: Vec<&String> = definitions.keys().filter(|name| name.ends_with("_v2")).collect();
    assert!(renamed.is_empty(), "both servers have the same definitions: {renamed:?}");
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let protobuf = api.request(Method::GET, "/openapi/v2").accept(accept).send().await.is(200).body;
    assert!(protobuf.windows(item.len()).any(|part| part == item.as_bytes()));
}

#[tokio::test]
async fn the_description_of_an_extension_server_changes() {
    let front = Front::start().await;
    let (group, is_new) = (front.group.clone(), Arc::new(AtomicBool::new(false)));
    let changed = Arc::clone(&is_new);
    let backend = Webhook::start(move |path, _| {
        let resource = if changed.load(Ordering::SeqCst) { "news" } else { "olds" };
        let body = match path {
            "/openapi/v2" => json!({
                "paths": {format!("/apis/{group}/v1/{resource}"): {}, "/apis/apps/v1/deployments": {"get": {}}}
            }),
            _ => json!({}),
        };
        Answer::Raw { code: 200, content_type: "application/json", body: body.to_string() }
    });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let has = |name: &'static str| {
        let path = format!("{}/{name}", front.path());
        move |reply: &Reply| reply.json()["paths"].get(&path).is_some()
    };
    let before = front.api.eventually("/openapi/v2", has("olds")).await;
    let own = &before.json()["paths"]["/apis/apps/v1/deployments"]["get"];
    assert!(own.is_object() && *own != json!({}), "a path of this server stays: {own}");
    if front.api.is_shared() {
        // The real server looks again after a minute.
        return;
    }
    is_new.store(true, Ordering::SeqCst);
    // The server is checked again.
    let path = format!("{API_SERVICES}/v1.{}", front.group);
    front.api.patch(&path, MERGE_PATCH, json!({"spec": {"versionPriority": 16}})).await.is(200);
    let service = format!("/api/v1/namespaces/{}/services/backend", front.ns);
    front.api.patch(&service, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    let after = front.api.eventually("/openapi/v2", has("news")).await;
    assert_ne!(before.header("etag"), after.header("etag"));
    front.api.delete(&path).await.is(200);
    front.api.eventually("/openapi/v2", |reply| !has("news")(reply)).await;
}

#[tokio::test]
async fn a_description_with_too_many_values_is_not_read() {
    let front = Front::start().await;
    if front.api.is_shared() {
        return;
    }
    // Each element takes a hundred times the memory of the text.
    let values = vec![r#"{"":0}"#; 200_000].join(",");
    let body = format!(r#"{{"paths":{{"{}/things":{{}}}},"x":[{values}]}}"#, front.path());
    let backend = Webhook::start(move |path, _| {
        let body = if path == "/openapi/v2" { body.clone() } else { "{}".to_owned() };
        Answer::Raw { code: 200, content_type: "application/json", body }
    });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let asked = |times: usize| {
        let is_asked =
            move |paths: Vec<String>| paths.iter().filter(|path| *path == "/openapi/v2").count() >= times;
        let backend = &backend;
        async move {
            while !is_asked(backend.paths()) {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(deadline(), asked(1)).await.unwrap();
    let service = format!("/api/v1/namespaces/{}/services/backend", front.ns);
    front.api.patch(&service, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    // The second request follows the end of the first.
    tokio::time::timeout(deadline(), asked(2)).await.unwrap();
    let document = front.api.get("/openapi/v2").await.is(200).json();
    assert!(document["paths"].get(format!("{}/things", front.path())).is_none());
}

#[tokio::test]
async fn resources_beyond_the_limits_are_left_out_of_discovery() {
    let front = Front::start().await;
    if front.api.is_shared() {
        return;
    }
    let resource = |number: usize| json!({"name": format!("r{number}"), "kind": "R", "verbs": ["get"]});
    let resources: Vec<Value> = (0..10_002).map(resource).collect();
    let body = json!({"kind": "APIResourceList", "resources": resources}).to_string();
    let backend = Webhook::start(move |_, _| Answer::Raw {
        code: 200,
        content_type: "application/json",
        body: body.clone(),
    });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovery = front.api.request(Method::GET, "/apis").accept(accept).send().await.is(200).json();
    let items = discovery["items"].as_array().unwrap();
    let found = items.iter().find(|item| item["metadata"]["name"] == *front.group).unwrap();
    let resources = found["versions"][0]["resources"].as_array().unwrap();
    assert_eq!((resources.len(), &resources[9_999]["resource"]), (10_000, &json!("r9999")));
}

#[tokio::test]
async fn the_definitions_of_the_first_group_keep_their_names() {
    let front = Front::start().await;
    if front.api.is_shared() {
        return;
    }
    let second = format!("zz.{}", front.group);
    let backend_of = |group: &str, kind: &'static str| {
        let path = format!("/apis/{group}/v1/things");
        Webhook::start(move |asked, _| {
            let body = match asked {
                "/openapi/v2" => json!({
                    "paths": {&path: {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}}}},
                    "definitions": {"Thing": {"type": kind}},
                }),
                _ => json!({}),
            };
            Answer::Raw { code: 200, content_type: "application/json", body: body.to_string() }
        })
    };
    let (low, high) = (backend_of(&front.group, "string").await, backend_of(&second, "integer").await);
    front.serve("backend").await;
    front.register("backend", low.port()).await;
    let mut other = front.api_service("backend", high.port());
    other["metadata"]["name"] = format!("v1.{second}").into();
    other["spec"]["group"] = second.clone().into();
    other["spec"]["groupPriorityMinimum"] = 2000.into();
    front.api.post(API_SERVICES, other).await.is(201);
    let has_both = |reply: &Reply| reply.json()["definitions"].get("Thing_v2").is_some();
    let document = front.api.eventually("/openapi/v2", has_both).await.json();
    let definitions = &document["definitions"];
    assert_eq!(
        (&definitions["Thing"]["type"], &definitions["Thing_v2"]["type"]),
        (&json!("integer"), &json!("string"))
    );
}

#[tokio::test]
async fn checks_do_not_wait_for_a_description() {
    let front = Front::start().await;
    if front.api.is_shared() {
        return;
    }
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = Arc::clone(&fails);
    let backend = Webhook::start(move |path, _| {
        if path == "/openapi/v2" {
            return Answer::Never;
        }
        let code = if is_failing.load(Ordering::SeqCst) { 500 } else { 200 };
        Answer::Raw { code, content_type: "application/json", body: "{}".into() }
    });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    let asked = async {
        while !backend.paths().iter().any(|path| path == "/openapi/v2") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(deadline(), asked).await.unwrap();
    let start = Instant::now();
    fails.store(true, Ordering::SeqCst);
    let service = format!("/api/v1/namespaces/{}/services/backend", front.ns);
    front.api.patch(&service, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    front.condition("FailedDiscoveryCheck").await;
    // The request for the description ends after five seconds.
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_rights_of_a_user_are_checked_before_a_request_is_passed_on() {
    let front = Front::start().await;
    let backend =
        Webhook::start(|_, _| Answer::Raw { code: 200, content_type: "application/json", body: "{}".into() })
            .await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let jane = front.api.impersonating("jane", &[]);
    let path = format!("{}/things", front.path());
    jane.get(&path).await.is(403);
    front.api.get(&path).await.is(200);
    let calls = backend.paths().into_iter().filter(|called| *called == path).count();
    assert_eq!(calls, 1, "only the administrator's request is passed on");
}

#[tokio::test]
async fn a_redirect_of_an_extension_server_is_not_passed_back() {
    let front = Front::start().await;
    let backend = Webhook::start(|path, _| {
        if path.ends_with("/things") {
            return Answer::Redirect("https://127.0.0.1:1/");
        }
        Answer::Raw { code: 200, content_type: "application/json", body: "{}".into() }
    });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let reply = front.api.get(&format!("{}/things", front.path())).await.is(502);
    assert_eq!(&*reply.body, b"the backend attempted to redirect this request, which is not permitted");
    assert_eq!(reply.header("location"), None);
}

#[tokio::test]
async fn a_reply_that_breaks_off_breaks_the_connection_of_the_client() {
    let front = Front::start().await;
    let backend = Webhook::start(|path, _| {
        if path.ends_with("/things") {
            return Answer::Broken("{\"a\":");
        }
        Answer::Raw { code: 200, content_type: "application/json", body: "{}".into() }
    });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let mut connection = front.api.connect().await;
    let credentials = front.api.authorization().await;
    let request = format!("GET {}/things HTTP/1.1\r\nhost: localhost\r\n{credentials}\r\n", front.path());
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    // A connection over TLS may end without notice.
    let _ = tokio::time::timeout(deadline(), connection.read_to_end(&mut reply)).await.expect("an end");
    let reply = String::from_utf8_lossy(&reply);
    assert!(reply.starts_with("HTTP/1.1 200 OK") && reply.contains("{\"a\":"), "{reply}");
    assert!(!reply.ends_with("0\r\n\r\n"), "the reply looks complete: {reply}");
}

#[tokio::test]
async fn an_extension_server_that_does_not_upgrade_is_an_error() {
    let front = Front::start().await;
    let backend =
        Webhook::start(|_, _| Answer::Raw { code: 200, content_type: "application/json", body: "{}".into() });
    let backend = backend.await;
    front.serve("backend").await;
    front.register("backend", backend.port()).await;
    front.ready().await;
    let refused = front.api.websocket(&format!("{}/things?watch=true", front.path())).await.map(drop);
    let Err(tungstenite::Error::Http(reply)) = refused else { panic!("an upgrade: {refused:?}") };
    let body = reply.body().clone().unwrap_or_default();
    let found = (reply.status().as_u16(), String::from_utf8_lossy(&body).into_owned());
    assert_eq!(found, (503, "invalid upgrade response: status code 200\n".to_owned()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let front = Front::start().await;
    front.register("backend", 1).await;
    let condition = front.condition("ServiceNotFound").await;
    assert_eq!(condition["status"], "False");
    let why = format!("service/backend in \"{}\" is not present", front.ns);
    assert_eq!(condition["message"], why);
    let reply = front.api.get(&format!("{}/things", front.path())).await.is(503);
    assert_eq!(&*reply.body, b"service unavailable\n");
    front.serve("backend").await;
    let condition = front.condition("FailedDiscoveryCheck").await;
    let message = condition["message"].as_str().unwrap();
    let url = format!("https://localhost:1{}", front.path());
    let why = "dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(message, format!("failing or missing response from {url}: Get \"{url}\": {why}"));
    // Other groups are not affected.
    let groups = front.api.get("/apis").await.is(200).json();
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "apps"));
    front.api.get("/apis/apps/v1").await.is(200);
}

#[tokio::test]
async fn a_cluster_address_needs_the_port_and_a_ready_endpoint() {
    let front = Front::start().await;
    let services = format!("/api/v1/namespaces/{}/services", front.ns);
    let ports = json!([{"name": "https", "port": 443}]);
    front.api.post(&services, json!({"metadata": {"name": "a"}, "spec": {"ports": ports}})).await.is(201);
    front.register("a", 444).await;
    let condition = front.condition("ServicePortError").await;
    let why = format!("service/a in \"{}\" is not listening on port 444", front.ns);
    assert_eq!(condition["message"], why);
    let path = format!("{API_SERVICES}/v1.{}", front.group);
    let port = json!({"spec": {"service": {"port": 443}}});
    front.api.patch(&path, MERGE_PATCH, port).await.is(200);
    let condition = front.condition("EndpointsNotFound").await;
    let why = format!("cannot find endpointslices for service/a in \"{}\"", front.ns);
    assert_eq!(condition["message"], why);
    let slice = json!({
        "metadata": {"name": "a-1", "labels": {"kubernetes.io/service-name": "a"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}],
        "ports": [{"name": "https", "port": 8443}],
    });
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", front.ns);
    front.api.post(&slices, slice).await.is(201);
    let condition = front.condition("MissingEndpoints").await;
    let why = format!(
        "endpointslices for service/a in \"{}\" have no addresses with port name \"https\"",
        front.ns
    );
    assert_eq!(condition["message"], why);
}

#[tokio::test]
async fn a_group_of_this_server_is_never_passed_on() {
    let front = Front::start().await;
    if front.api.is_shared() {
        // The real server passes the group on.
        return;
    }
    let mut service = front.api_service("backend", 443);
    service["metadata"]["name"] = "v1.apps".into();
    service["spec"]["group"] = "apps".into();
    let path = format!("{API_SERVICES}/v1.apps");
    front.api.delete(&path).await.is(200);
    front.api.post(API_SERVICES, service).await.is(201);
    front.api.get("/apis/apps/v1/deployments").await.is(200);
}

#[tokio::test]
async fn the_server_names_the_authority_of_its_certificate() {
    let front = Front::start().await;
    let map = front.api.get(AUTHENTICATION).await.is(200);
    if is_nameless(&front.api, &map) {
        return;
    }
    let data = map.at("/data");
    assert_eq!(data["requestheader-allowed-names"], r#"["front-proxy-client"]"#);
    assert!(
        data["requestheader-client-ca-file"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----")
    );
    assert_ne!(data["requestheader-client-ca-file"], data["client-ca-file"]);
    assert_eq!(data["requestheader-username-headers"], r#"["X-Remote-User"]"#);
}

#[tokio::test]
async fn a_second_listener_moves_the_server_only_after_the_first() {
    let server = Server::builder().build().unwrap();
    let api = Api::embedded(&server);
    let first = server.listen(Listen::default()).await.unwrap();
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let parts = [
        (endpoints, "/subsets"),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "/ports"),
        ("/api/v1/namespaces/default/services/kubernetes", "/spec/ports"),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/apiserver-windlass",
            "/metadata/annotations",
        ),
        ("/api", "/serverAddressByClientCIDRs"),
    ];
    let seen = async || {
        let mut seen = Vec::new();
        for (path, pointer) in parts {
            seen.push(api.get(path).await.is(200).at(pointer));
        }
        seen
    };
    let (before, trusted) = (seen().await, api.get(AUTHENTICATION).await);
    let second = server.listen(Listen::default()).await.unwrap();
    assert_eq!(seen().await, before);
    let both = api.get(AUTHENTICATION).await;
    let authorities = [&first, &second].map(|listener| listener.authority().certificate_pem());
    assert_eq!(both.text_at("/data/client-ca-file"), authorities.concat());
    let front_proxy = "/data/requestheader-client-ca-file";
    assert_eq!(both.at(front_proxy), trusted.at(front_proxy));
    first.shutdown().await;
    let port = second.local_addr().port();
    api.eventually(endpoints, |reply| reply.at("/subsets/0/ports/0/port") == port).await;
    let address = second.local_addr().to_string();
    api.eventually("/api", |reply| reply.at("/serverAddressByClientCIDRs/0/serverAddress") == *address).await;
}

/// Stops a process at the end of a test.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Needs the program of the Go module `k8s.io/sample-apiserver`, whose path is in `WINDLASS_TEST_SAMPLE_APISERVER`, and an etcd.
#[tokio::test]
async fn the_sample_server_of_kubernetes_works_behind_this_server() {
    let Some(program) = std::env::var_os("WINDLASS_TEST_SAMPLE_APISERVER") else { return };
    let etcd = std::env::var("WINDLASS_TEST_ETCD").unwrap_or_else(|_| "http://127.0.0.1:2379".to_owned());
    let server = Server::builder().build().unwrap();
    let listening = server.listen(Listen::default()).await.unwrap();
    let api = Api::listening(&server, Listen::default()).await;
    let ns = api.namespace().await;
    let folder = std::env::temp_dir().join(format!("sample-apiserver-{}", api.id));
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, listening.kubeconfig()).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let kubeconfigs = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
    let process = std::process::Command::new(program)
        .args([format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()])
        .arg(format!("--etcd-servers={etcd}"))
        .arg(format!("--cert-dir={}", folder.display()))
        .args(kubeconfigs.map(|flag| format!("--{flag}={}", kubeconfig.display())))
        .stderr(std::fs::File::create(folder.join("log")).unwrap())
        .spawn();
    let _process = Process(process.unwrap());
    let service = json!({"metadata": {"name": "sample"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    api.post(&format!("/api/v1/namespaces/{ns}/services"), service).await.is(201);
    let registered = json!({
        "metadata": {"name": "v1alpha1.wardle.example.com"},
        "spec": {
            "group": "wardle.example.com", "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "insecureSkipTLSVerify": true, "service": {"namespace": ns, "name": "sample", "port": port},
        },
    });
    api.post(API_SERVICES, registered).await.is(201);
    let is_passed = |reply: &Reply| reply.at("/status/conditions/0/reason") == "Passed";
    api.eventually(&format!("{API_SERVICES}/v1alpha1.wardle.example.com"), is_passed).await;

    let group = "/apis/wardle.example.com/v1alpha1";
    let flunders = format!("{group}/namespaces/{ns}/flunders");
    assert!(api.get(group).await.is(200).at("/resources").as_array().unwrap().len() >= 2);
    let flunder = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}, "spec": {}
    });
    let created = api.post(&flunders, flunder).await.is(201);
    assert_eq!(api.get(&flunders).await.is(200).names(), ["a"]);
    let mut watch = api.watch(&format!("{flunders}?resourceVersion={}", created.version())).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.patch(&format!("{flunders}/a"), MERGE_PATCH, label).await.is(200);
    assert_eq!(watch.next().await.kind, "MODIFIED");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = api.request(Method::GET, &flunders).accept(table).send().await.is(200);
    assert_eq!((table.at("/kind"), table.at("/rows/0/cells/0")), (json!("Table"), json!("a")));
    api.delete(&format!("{flunders}/a")).await.is(200);
    assert_eq!(watch.next().await.kind, "DELETED");
    api.get(&format!("{flunders}/a")).await.is(404);
    std::fs::remove_dir_all(&folder).unwrap();
}
