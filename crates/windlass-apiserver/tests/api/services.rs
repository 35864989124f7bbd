//! Services: addresses, node ports, and fields that depend on the type.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use windlass_patience::stretched;

use crate::harness::{Api, MERGE_PATCH, Reply};

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// The spec of a service in a line, without addresses and without numbers that are given out.
fn spec(reply: &Reply) -> String {
    let mut spec = reply.at("/spec");
    for (field, value) in spec.as_object_mut().unwrap() {
        match field.as_str() {
            "clusterIP" | "healthCheckNodePort" => *value = json!("given"),
            "clusterIPs" => *value = json!(["given"]),
            "ports" => {
                for port in value.as_array_mut().unwrap() {
                    if port.get("nodePort").is_some() {
                        port["nodePort"] = json!("given");
                    }
                }
            }
            _ => {}
        }
    }
    format!("{} {spec}\n", reply.code)
}

#[tokio::test]
async fn a_change_of_type_drops_what_does_not_apply() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let balanced = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "loadBalancerClass": "example.com/c",
        "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "x"}]
    });
    let mut seen = spec(&api.post(&path, service("a", balanced)).await);
    for patch in [
        json!({"type": "NodePort"}),
        json!({"type": "ClusterIP"}),
        json!({"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}),
        json!({"externalIPs": null}),
        json!({"type": "ExternalName", "externalName": "a.example.com"}),
        json!({"type": "ClusterIP", "externalName": null}),
        json!({"type": "NodePort", "sessionAffinity": "ClientIP"}),
        json!({"sessionAffinity": "None"}),
    ] {
        let patched = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": patch})).await;
        seen += &spec(&patched);
    }
    expect![[r#"
        201 {"allocateLoadBalancerNodePorts":true,"clusterIP":"given","clusterIPs":["given"],"externalTrafficPolicy":"Local","healthCheckNodePort":"given","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","loadBalancerClass":"example.com/c","ports":[{"name":"a","nodePort":"given","port":80,"protocol":"TCP","targetPort":80},{"name":"b","nodePort":"given","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"LoadBalancer"}
        200 {"clusterIP":"given","clusterIPs":["given"],"externalTrafficPolicy":"Local","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","nodePort":"given","port":80,"protocol":"TCP","targetPort":80},{"name":"b","nodePort":"given","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"NodePort"}
        200 {"clusterIP":"given","clusterIPs":["given"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","port":80,"protocol":"TCP","targetPort":80},{"name":"b","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"ClusterIP"}
        200 {"clusterIP":"given","clusterIPs":["given"],"externalIPs":["1.2.3.4"],"externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","port":80,"protocol":"TCP","targetPort":80},{"name":"b","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"ClusterIP"}
        200 {"clusterIP":"given","clusterIPs":["given"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","port":80,"protocol":"TCP","targetPort":80},{"name":"b","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"ClusterIP"}
        200 {"externalName":"a.example.com","ports":[{"name":"a","port":80,"protocol":"TCP","targetPort":80},{"name":"b","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"ExternalName"}
        200 {"clusterIP":"given","clusterIPs":["given"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","port":80,"protocol":"TCP","targetPort":80},{"name":"b","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"ClusterIP"}
        200 {"clusterIP":"given","clusterIPs":["given"],"externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","nodePort":"given","port":80,"protocol":"TCP","targetPort":80},{"name":"b","nodePort":"given","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},"type":"NodePort"}
        200 {"clusterIP":"given","clusterIPs":["given"],"externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","nodePort":"given","port":80,"protocol":"TCP","targetPort":80},{"name":"b","nodePort":"given","port":81,"protocol":"TCP","targetPort":"x"}],"sessionAffinity":"None","type":"NodePort"}
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn an_update_keeps_the_addresses_and_ports_that_it_leaves_out() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let ports = json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]);
    let created = api.post(&path, service("a", json!({"type": "NodePort", "ports": ports}))).await.is(201);
    let ports = json!([{"port": 91, "name": "b"}, {"port": 90, "name": "a"}]);
    let updated = api
        .put(&format!("{path}/a"), service("a", json!({"type": "NodePort", "ports": ports})))
        .await
        .is(200);
    assert_eq!(updated.at("/spec/clusterIP"), created.at("/spec/clusterIP"));
    assert_eq!(updated.at("/spec/clusterIPs"), created.at("/spec/clusterIPs"));
    assert_eq!(updated.at("/spec/ports/0/nodePort"), created.at("/spec/ports/1/nodePort"), "by name");
    assert_eq!(updated.at("/spec/ports/1/nodePort"), created.at("/spec/ports/0/nodePort"), "by name");
}

#[tokio::test]
async fn the_cluster_address_is_the_first_of_the_addresses() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let ports = json!([{"port": 80}]);
    api.post(&path, service("a", json!({"ports": ports, "clusterIPs": ["10.0.77.1"]})))
        .await
        .shows(expect![[r#"
            422 Invalid: Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.0.77.1"]: must be empty when `clusterIP` is not specified
            kind="Service" name="a"
            - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.0.77.1"]: must be empty when `clusterIP` is not specified"#]]);
    api.post(
        &path,
        service("a", json!({"ports": ports, "clusterIP": "10.0.77.1", "clusterIPs": ["10.0.77.2"]})),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.0.77.2"]: first value must match `clusterIP`
        kind="Service" name="a"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.0.77.2"]: first value must match `clusterIP`"#]]);
    api.post(&path, service("a", json!({"clusterIP": "10.0.x.1", "ports": []})))
        .await
        .shows(expect![[r#"
            422 Invalid: Service "a" is invalid: spec.clusterIPs[0]: Invalid value: "10.0.x.1": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
            kind="Service" name="a"
            - FieldValueInvalid spec.clusterIPs[0]: Invalid value: "10.0.x.1": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]]);
    let created = api.post(&path, service("a", json!({"ports": ports}))).await.is(201);
    let patch = json!({"spec": {"clusterIP": "10.0.77.1"}});
    let changed = api.patch(&format!("{path}/a"), MERGE_PATCH, patch).await.is(422);
    assert!(changed.text_at("/message").contains("may not change once set"), "{changed}");
    let patch = json!({"spec": {"clusterIP": ""}});
    let kept = api.patch(&format!("{path}/a"), MERGE_PATCH, patch).await.is(200);
    assert_eq!(kept.at("/spec/clusterIP"), created.at("/spec/clusterIP"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_services_get_the_same_address_or_port() {
    let api = Arc::new(Api::start());
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    for round in 0..10 {
        // The address and port of a service that is deleted are free, on a server that other tests use too.
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        let free = api.post(&path, service("free", spec)).await.is(201);
        let (address, number) = (free.at("/spec/clusterIP"), free.at("/spec/ports/0/nodePort"));
        api.delete(&format!("{path}/free")).await.is(200);
        for (kind, spec) in [
            ("address", json!({"ports": [{"port": 80}], "clusterIP": address})),
            ("port", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": number}]})),
        ] {
            let creates: Vec<_> = (0..16)
                .map(|index| {
                    let (api, path) = (Arc::clone(&api), path.clone());
                    let service = service(&format!("{kind}-{round}-{index}"), spec.clone());
                    tokio::spawn(async move { api.post(&path, service).await.code })
                })
                .collect();
            let mut codes = Vec::new();
            for create in creates {
                codes.push(create.await.unwrap());
            }
            codes.sort_unstable();
            assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1, "{kind}: {codes:?}");
            assert_eq!(codes.iter().filter(|code| **code == 422).count(), 15, "{kind}: {codes:?}");
            api.delete(&path).await.is(200);
        }
    }
}

#[tokio::test]
async fn addresses_and_ports_that_are_not_allocated_are_not_claimed() {
    let api = Api::start();
    if api.is_shared() {
        // The first addresses and ports may be taken there.
        return;
    }
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let create = async |name: &str, spec: Value| {
        let reply = api.post(&path, json!({"metadata": {"name": name}, "spec": spec}));
        tokio::time::timeout(stretched(Duration::from_secs(5)), reply).await.unwrap()
    };
    let address = json!({"clusterIP": "10.0.0.77", "ports": [{"port": 80}]});
    create("address", address).await.is(201);
    let port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30077}]});
    create("port", port).await.is(201);
    let second =
        json!({"clusterIP": "10.0.0.78", "clusterIPs": ["10.0.0.78", "10.0.0.77"], "ports": [{"port": 80}]});
    create("a", second).await.shows(expect![[r#"
        422 Invalid: Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.78","10.0.0.77"]: may specify no more than one IP for each IP family
        kind="Service" name="a"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.0.0.78","10.0.0.77"]: may specify no more than one IP for each IP family"#]]);
    let headless = json!({"clusterIP": "None", "clusterIPs": ["None", "10.0.0.77"], "ports": [{"port": 80}]});
    create("b", headless).await.is(422);
    for (name, spec) in [
        ("c", json!({"healthCheckNodePort": 30077, "ports": [{"port": 80}]})),
        (
            "d",
            json!({"type": "ExternalName", "externalName": "a.b", "ports": [{"port": 80, "nodePort": 30077}]}),
        ),
    ] {
        create(name, spec).await;
    }
}

#[tokio::test]
async fn a_node_port_that_is_taken_is_told_before_a_name_that_is_taken() {
    let api = Api::start();
    let path = format!("/api/v1/namespaces/{}/services", api.namespace().await);
    let first =
        api.post(&path, service("a", json!({"type": "NodePort", "ports": [{"port": 80}]}))).await.is(201);
    let again =
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": first.at("/spec/ports/0/nodePort")}]});
    let refused = api.post(&path, service("a", again.clone())).await.is(422);
    assert!(
        refused.text_at("/message").ends_with("provided port is already allocated"),
        "{}",
        refused.text_at("/message")
    );
    let mut same = first.json();
    same["metadata"]["labels"] = json!({"a": "b"});
    api.put(&format!("{path}/a"), same).await.is(200);
    api.post(&path, service("a", json!({"ports": [{"port": 80}]}))).await.is(409);
}

#[tokio::test]
async fn a_service_needs_a_name_for_its_address() {
    let api = Api::start();
    let ns = api.namespace().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "."}, "spec": {"ports": [{"port": 80}]}
    });
    let path = format!("/api/v1/namespaces/{ns}/services");
    let reply = api.post(&path, service.clone()).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "spec.clusterIPs");
    let reply = api.post(&format!("{path}?dryRun=All"), service).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "metadata.name");
}

#[tokio::test]
async fn equal_node_ports_stop_an_update_before_it_is_validated() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let created = api.post(&path, service).await.is(201);
    let port = created.at("/spec/ports/0/nodePort");
    let ports = json!({"spec": {"ports": [{"port": 80, "nodePort": port}, {"port": 81, "nodePort": port}]}});
    let refused = api.patch(&format!("{path}/x"), MERGE_PATCH, ports).await.is(500);
    assert_eq!(refused.text_at("/message"), format!("duplicate nodePort: {{TCP {port}}}"));
}

#[tokio::test]
async fn the_server_keeps_the_endpoints_of_a_deleted_service() {
    let api = Api::start();
    let ns = api.namespace().await;
    let core = format!("/api/v1/namespaces/{ns}");
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "x"}});
    api.post(&format!("{core}/endpoints"), endpoints).await.is(201);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "ExternalName", "externalName": "a.example.com"}
    });
    api.post(&format!("{core}/services"), service).await.is(201);
    api.delete(&format!("{core}/services/x")).await.is(200);
    // A controller deletes the Endpoints later: the shared server runs the controller.
    if !api.is_shared() {
        api.get(&format!("{core}/endpoints/x")).await.is(200);
    }
}

#[tokio::test]
async fn each_cluster_address_has_an_object() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let created = api.post(&path, service("a", json!({"ports": [{"port": 80}]}))).await.is(201);
    let address = created.text_at("/spec/clusterIP");
    let object = format!("/apis/networking.k8s.io/v1/ipaddresses/{address}");
    let seen = api.get(&object).await.is(200);
    let parent =
        ["resource", "namespace", "name"].map(|field| seen.text_at(&format!("/spec/parentRef/{field}")));
    assert_eq!(parent, ["services".to_owned(), ns.clone(), "a".to_owned()]);
    assert_eq!(seen.at("/metadata/labels/ipaddress.kubernetes.io~1managed-by"), "ipallocator.k8s.io");
    // A service of another type gives the address back.
    let external = json!({"spec": {"type": "ExternalName", "externalName": "a.example.com"}});
    api.patch(&format!("{path}/a"), MERGE_PATCH, external).await.is(200);
    api.eventually(&object, |reply| reply.code == 404).await;
    let back = json!({"spec": {"type": "ClusterIP", "externalName": null}});
    let address = api.patch(&format!("{path}/a"), MERGE_PATCH, back).await.is(200).text_at("/spec/clusterIP");
    let object = format!("/apis/networking.k8s.io/v1/ipaddresses/{address}");
    api.get(&object).await.is(200);
    let headless = json!({"clusterIP": "None", "ports": [{"port": 80}]});
    api.post(&path, service("b", headless)).await.is(201);
    api.delete(&format!("{path}/a")).await.is(200);
    api.eventually(&object, |reply| reply.code == 404).await;
}

#[tokio::test]
async fn an_object_of_a_released_address_is_replaced() {
    let api = Api::start();
    if api.is_shared() {
        // In the real server, an address is allocated as long as there is an IPAddress, even without a service.
        return;
    }
    let ns = api.namespace().await;
    let addresses = "/apis/networking.k8s.io/v1/ipaddresses";
    let parent = json!({"resource": "services", "namespace": ns, "name": "gone"});
    let object = |address: &str, allocator: &str| {
        json!({
            "metadata": {"name": address, "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": allocator
            }},
            "spec": {"parentRef": parent}
        })
    };
    for (address, allocator, owner) in
        [("10.0.0.77", "ipallocator.k8s.io", "new-77"), ("10.0.0.78", "me.example.com", "gone")]
    {
        api.post(addresses, object(address, allocator)).await.is(201);
        let name = format!("new-{}", &address[7..]);
        let spec = json!({"clusterIP": address, "ports": [{"port": 80}]});
        api.post(&format!("/api/v1/namespaces/{ns}/services"), service(&name, spec)).await.is(201);
        let seen = api.get(&format!("{addresses}/{address}")).await.is(200);
        assert_eq!(seen.text_at("/spec/parentRef/name"), owner);
    }
}

/// The node ports of a reply, in the order of the ports.
fn node_ports(reply: &Reply) -> Vec<Value> {
    let ports = reply.at("/spec/ports");
    ports.as_array().unwrap().iter().map(|port| port["nodePort"].clone()).collect()
}

#[tokio::test]
async fn protocols_of_one_port_share_a_node_port() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let create = async |name: &str, ports: Value| {
        let created = api.post(&path, service(name, json!({"type": "NodePort", "ports": ports}))).await;
        node_ports(&created.is(201))
    };
    let port = |name: &str, protocol: &str, number: u16, node_port: Option<&Value>| match node_port {
        Some(given) => json!({"name": name, "protocol": protocol, "port": number, "nodePort": given}),
        None => json!({"name": name, "protocol": protocol, "port": number}),
    };
    let dns = [port("a", "TCP", 53, None), port("b", "UDP", 53, None), port("c", "TCP", 54, None)];
    let given = create("a", json!(dns)).await;
    assert_eq!(given[0], given[1]);
    assert_ne!(given[0], given[2]);
    api.delete(&format!("{path}/a")).await.is(200);
    let (first, second) = (&given[0], &given[2]);
    let ports = json!([port("a", "TCP", 53, None), port("b", "UDP", 53, Some(first))]);
    assert_eq!(create("b", ports.clone()).await, [first.clone(), first.clone()], "the requested port");
    let refused = api.post(&path, service("c", json!({"type": "NodePort", "ports": ports}))).await.is(422);
    assert_eq!(refused.at("/details/causes/0/field"), "spec.ports[0].nodePort");
    api.delete(&format!("{path}/b")).await.is(200);
    let ports =
        [port("a", "TCP", 53, Some(first)), port("b", "UDP", 53, Some(second)), port("c", "SCTP", 53, None)];
    let three = create("d", json!(ports)).await;
    assert_eq!(three, [first.clone(), second.clone(), first.clone()]);
    api.delete(&format!("{path}/d")).await.is(200);
    let ports = json!([port("a", "TCP", 53, Some(first)), port("b", "UDP", 54, Some(first))]);
    let refused = api.post(&path, service("e", json!({"type": "NodePort", "ports": ports}))).await.is(422);
    let why = format!("spec.ports[1].nodePort: Invalid value: {first}: provided port is already allocated");
    assert_eq!(refused.text_at("/message"), format!("Service \"e\" is invalid: {why}"));
    // An update gives each port a node port of its own.
    let ports = json!([port("a", "TCP", 53, None), port("b", "UDP", 53, None)]);
    api.post(&path, service("f", json!({"ports": ports}))).await.is(201);
    let updated = api.patch(&format!("{path}/f"), MERGE_PATCH, json!({"spec": {"type": "NodePort"}})).await;
    let given = node_ports(&updated.is(200));
    assert_ne!(given[0], given[1]);
}

#[tokio::test]
async fn a_port_for_health_checks_is_in_the_range_and_free() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let balanced = |health: Option<&Value>, node_port: Option<&Value>| {
        let mut spec =
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
        health.into_iter().for_each(|port| spec["healthCheckNodePort"] = port.clone());
        node_port.into_iter().for_each(|port| spec["ports"][0]["nodePort"] = port.clone());
        spec
    };
    let told = |reply: &Reply| reply.text_at("/message").replace("Internal error occurred: ", "");
    let failed = "failed to allocate requested HealthCheck NodePort";
    let outside = "provided port is not in the valid range. The range of valid ports is 30000-32767";
    let refused = api.post(&path, service("a", balanced(Some(&json!(8080)), None))).await.is(500);
    assert_eq!(told(&refused), format!("{failed} 8080: {outside}"));
    let created = api.post(&path, service("b", balanced(None, None))).await.is(201);
    let (health, own) = (created.at("/spec/healthCheckNodePort"), created.at("/spec/ports/0/nodePort"));
    let refused = api.post(&path, service("c", balanced(Some(&health), None))).await.is(500);
    assert_eq!(told(&refused), format!("{failed} {health}: provided port is already allocated"));
    let patch = json!({"spec": {"ports": [{"port": 80, "nodePort": health}]}});
    let refused = api.patch(&format!("{path}/b"), MERGE_PATCH, patch).await.is(422);
    assert!(told(&refused).ends_with(&format!("{health}: provided port is already allocated")), "{refused}");
    api.delete(&format!("{path}/b")).await.is(200);
    let refused = api.post(&path, service("d", balanced(Some(&own), Some(&own)))).await.is(500);
    assert_eq!(told(&refused), format!("{failed} {own}: provided port is already allocated"));
    let created =
        api.post(&path, service("e", json!({"type": "LoadBalancer", "ports": [{"port": 80}]}))).await;
    for number in [json!(8080), created.is(201).at("/spec/ports/0/nodePort")] {
        let patch = json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": number}});
        let refused = api.patch(&format!("{path}/e"), MERGE_PATCH, patch).await.is(500);
        assert!(told(&refused).starts_with(&format!("{failed} {number}: provided port is")), "{refused}");
    }
}
