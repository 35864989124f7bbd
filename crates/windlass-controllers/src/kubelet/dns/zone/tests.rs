use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use super::*;
use crate::kubelet::dns::records_of;

fn zone() -> Zone {
    let web = json!({
        "clusterIP": "10.0.1.7", "clusterIPs": ["10.0.1.7"],
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}],
    });
    let headless =
        json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"name": "sql", "port": 5432}]});
    let slice = json!({
        "addressType": "IPv4",
        "ports": [{"name": "sql", "port": 5433, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["10.244.0.5"], "hostname": "db-0", "conditions": {"ready": true}},
            {"addresses": ["10.244.0.6"], "conditions": {"ready": true}},
            {"addresses": ["10.244.0.8"], "hostname": "db-2", "conditions": {"ready": false}},
        ],
    });
    let mut zone = Zone::default();
    let mut add = |name: &str, spec: Value, slices: Vec<Value>| {
        let service: Service = serde_json::from_value(json!({"spec": spec})).unwrap();
        let slices: Vec<Arc<EndpointSlice>> =
            slices.into_iter().map(|slice| Arc::new(serde_json::from_value(slice).unwrap())).collect();
        zone.replace(&ObjectKey::namespaced("shop", name), records_of(&service, &slices));
    };
    add("web", web, Vec::new());
    add("db", headless, vec![slice]);
    let external = |name: &str| json!({"type": "ExternalName", "externalName": name});
    add("mail", external("mail.example.com."), Vec::new());
    add("front", external("WEB.shop.svc.cluster.local"), Vec::new());
    add("round", external("round.shop.svc.cluster.local"), Vec::new());
    zone
}

/// Asks, and returns the answer as a line.
fn ask(name: &str, kind: Kind) -> String {
    let records = match zone().lookup(name, kind) {
        Lookup::NoSuchName => return "no such name".to_owned(),
        Lookup::NotOurs => return "not ours".to_owned(),
        Lookup::Found { records, follow } => records
            .into_iter()
            .map(|record| text(&record))
            .chain(follow.map(|name| format!("follow {name}")))
            .collect::<Vec<_>>(),
    };
    records.join(", ")
}

fn text(record: &Record) -> String {
    match &record.data {
        Data::Address(address) => address.to_string(),
        Data::Alias(target) | Data::Pointer(target) => target.clone(),
        Data::Port { port, target } => format!("{target}:{port}"),
    }
}

#[test]
fn a_service_has_its_cluster_address_and_its_named_ports() {
    assert_eq!(ask("web.shop.svc.cluster.local", Kind::A), "10.0.1.7");
    assert_eq!(ask("WEB.Shop.svc.cluster.local.", Kind::A), "10.0.1.7");
    assert_eq!(ask("web.shop.svc.cluster.local", Kind::Aaaa), "");
    let service = "web.shop.svc.cluster.local";
    assert_eq!(ask(&format!("_http._tcp.{service}"), Kind::Srv), format!("{service}:80"));
    assert_eq!(ask(&format!("_dns._udp.{service}"), Kind::Srv), format!("{service}:53"));
    assert_eq!(ask(&format!("_http._udp.{service}"), Kind::Srv), "no such name");
    assert_eq!(ask("7.1.0.10.in-addr.arpa", Kind::Ptr), service);
}

#[test]
fn a_headless_service_has_its_ready_endpoints() {
    let service = "db.shop.svc.cluster.local";
    assert_eq!(ask(service, Kind::A), "10.244.0.5, 10.244.0.6");
    assert_eq!(ask(&format!("db-0.{service}"), Kind::A), "10.244.0.5");
    assert_eq!(ask(&format!("10-244-0-6.{service}"), Kind::A), "10.244.0.6");
    assert_eq!(ask(&format!("db-2.{service}"), Kind::A), "no such name");
    let ports = format!("db-0.{service}:5433, 10-244-0-6.{service}:5433");
    assert_eq!(ask(&format!("_sql._tcp.{service}"), Kind::Srv), ports);
    assert_eq!(ask("5.0.244.10.in-addr.arpa", Kind::Ptr), format!("db-0.{service}"));
}

#[test]
fn an_external_name_is_followed_inside_of_the_cluster_and_handed_on_outside() {
    assert_eq!(ask("mail.shop.svc.cluster.local", Kind::A), "mail.example.com, follow mail.example.com");
    assert_eq!(ask("mail.shop.svc.cluster.local", Kind::Cname), "mail.example.com");
    assert_eq!(ask("front.shop.svc.cluster.local", Kind::A), "web.shop.svc.cluster.local, 10.0.1.7");
    let round = ask("round.shop.svc.cluster.local", Kind::A);
    assert_eq!(round.split(", ").count(), MAX_ALIASES);
}

#[test]
fn other_names_of_the_cluster_do_not_exist_and_other_domains_are_handed_on() {
    for name in [
        "none.shop.svc.cluster.local",
        "web.none.svc.cluster.local",
        "none.svc.cluster.local",
        "example.com.cluster.local",
        "a.b.web.shop.svc.cluster.local",
        "9.9.0.10.in-addr.arpa",
    ] {
        assert_eq!(ask(name, Kind::A), "no such name", "{name}");
    }
    for name in ["cluster.local", "svc.cluster.local", "shop.svc.cluster.local"] {
        assert_eq!(ask(name, Kind::A), "", "{name}");
    }
    for name in ["example.com", "notcluster.local", "1.2.0.192.in-addr.arpa", ""] {
        assert_eq!(ask(name, Kind::A), "not ours", "{name}");
    }
    assert_eq!(ask("10-244-0-7.shop.pod.cluster.local", Kind::A), "10.244.0.7");
}
