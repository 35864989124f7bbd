use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use serde_json::{Value, json};
use windlass_node::Credential;
use windlass_node::volume::Payload;

use super::*;
use crate::kubelet::lifecycle::PodAddresses;

struct World {
    pod: Pod,
    spec: PodSpec,
    addresses: PodAddresses,
    objects: Objects,
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn world(spec: &Value) -> World {
    let pod: Pod = parse(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"b": "x\"y", "a": "1"}},
        "spec": spec,
    }));
    let mut objects = Objects::default();
    objects.config_maps.insert("cm".into(), parse(json!({"data": {"k": "v", "n": "2"}})));
    objects.secrets.insert("s".into(), parse(json!({"data": {"pw": "c2VjcmV0"}})));
    objects.services = [
        json!({"metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}}),
        json!({"metadata": {"name": "my-db", "namespace": "ns"},
            "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 5432, "protocol": "TCP"}]}}),
        json!({"metadata": {"name": "headless", "namespace": "ns"},
            "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}),
        json!({"metadata": {"name": "far", "namespace": "other"},
            "spec": {"clusterIP": "10.0.0.8", "ports": [{"port": 1}]}}),
    ]
    .map(|service| Arc::new(parse(service)))
    .to_vec();
    let addresses = PodAddresses { host_ip: "10.250.0.2".into(), pod_ip: Some("10.244.0.7".into()) };
    World { spec: pod.spec.clone().unwrap(), pod, addresses, objects }
}

impl World {
    fn scope(&self) -> Scope<'_> {
        Scope { pod: &self.pod, spec: &self.spec, addresses: &self.addresses, objects: &self.objects }
    }
}

fn env(container: &Value, spec: &Value) -> Result<Vec<(String, String)>, String> {
    let mut spec = spec.clone();
    let mut container = container.clone();
    container["name"] = json!("c");
    spec["containers"] = json!([container]);
    let world = world(&spec);
    let container: Container = parse(container);
    environment(world.scope(), &container)
}

fn get<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn variables_come_from_objects_fields_and_earlier_variables() {
    let container = json!({
        "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "250m"}},
        "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "cm"}}, {"secretRef": {"name": "none", "optional": true}}],
        "env": [
            {"name": "A", "value": "$(CM_k)-$(MY_DB_SERVICE_PORT)-$(LATER)"},
            {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "pw"}}},
            {"name": "LATER", "value": "$(PW)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
            {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
            {"name": "GONE", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "x", "optional": true}}},
        ],
    });
    let env = env(&container, &json!({})).unwrap();
    for (name, value) in [
        ("A", Some("v-5432-$(LATER)")),
        ("PW", Some("secret")),
        ("LATER", Some("secret")),
        ("IP", Some("10.244.0.7")),
        ("LABEL", Some("1")),
        ("MEM", Some("64")),
        ("CPU", Some("1")),
        ("GONE", None),
        ("CM_n", Some("2")),
        ("KUBERNETES_SERVICE_HOST", Some("10.0.0.1")),
        ("KUBERNETES_SERVICE_PORT_HTTPS", Some("443")),
        ("MY_DB_PORT", Some("tcp://10.0.0.9:5432")),
        ("MY_DB_PORT_5432_TCP_ADDR", Some("10.0.0.9")),
        ("FAR_SERVICE_HOST", None),
        ("HEADLESS_SERVICE_PORT", None),
    ] {
        assert_eq!(get(&env, name), value, "{name}");
    }
}

#[test]
fn a_pod_may_see_no_services_but_the_api_server() {
    let env = env(&json!({}), &json!({"enableServiceLinks": false})).unwrap();
    assert_eq!(get(&env, "MY_DB_SERVICE_HOST"), None);
    assert_eq!(get(&env, "KUBERNETES_SERVICE_PORT"), Some("443"));
}

#[test]
fn missing_objects_and_keys_are_named_as_by_a_kubelet() {
    let from = |source: Value| env(&json!({"env": [{"name": "X", "valueFrom": source}]}), &json!({}));
    for (source, error) in [
        (json!({"configMapKeyRef": {"name": "none", "key": "k"}}), "configmap \"none\" not found"),
        (json!({"configMapKeyRef": {"name": "cm", "key": "x"}}), "couldn't find key x in ConfigMap ns/cm"),
        (json!({"secretKeyRef": {"name": "none", "key": "k"}}), "secret \"none\" not found"),
        (json!({"secretKeyRef": {"name": "s", "key": "x"}}), "couldn't find key x in Secret ns/s"),
    ] {
        assert_eq!(from(source).unwrap_err(), error);
    }
    let all = json!({"envFrom": [{"configMapRef": {"name": "none"}}]});
    assert_eq!(env(&all, &json!({})).unwrap_err(), "configmap \"none\" not found");
}

fn files(volume: Value) -> Result<VolumeContent, String> {
    let mut world = world(&json!({"containers": []}));
    let request = TokenRequest { audience: String::new(), expiration_seconds: 3607 };
    world.objects.tokens.insert(request, "token".into());
    content(world.scope(), &parse(volume))
}

#[test]
fn a_projected_volume_has_the_files_of_all_its_sources() {
    let volume = json!({"name": "v", "projected": {"defaultMode": 0o440, "sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "cm", "items": [{"key": "k", "path": "d/k", "mode": 0o400}]}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"secret": {"name": "none", "optional": true}},
    ]}});
    let mut expected = Payload::default();
    expected.insert("token", "token", 0o440);
    expected.insert("d/k", "v", 0o400);
    expected.insert("labels", "a=\"1\"\nb=\"x\\\"y\"", 0o440);
    assert_eq!(files(volume), Ok(VolumeContent::Files(expected)));
}

#[test]
fn a_volume_that_cannot_be_made_says_why() {
    for (source, part) in [
        (json!({"configMap": {"name": "none"}}), "configmap \"none\" not found"),
        (
            json!({"secret": {"secretName": "s", "items": [{"key": "x", "path": "x"}]}}),
            "non-existent secret key: x",
        ),
        (
            json!({"configMap": {"name": "cm", "items": [{"key": "k", "path": "../k"}]}}),
            "not inside of the volume",
        ),
        (json!({"hostPath": {"path": "/etc"}}), "no path of the machine"),
        (json!({"persistentVolumeClaim": {"claimName": "c"}}), "no persistent volumes"),
        (json!({"nfs": {"server": "x", "path": "/"}}), "no volumes of this type"),
    ] {
        let mut volume = source;
        volume["name"] = json!("v");
        let error = files(volume).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_container_overrides_the_user_of_its_pod() {
    let spec: PodSpec = parse(json!({
        "containers": [],
        "securityContext": {"runAsUser": 1000, "fsGroup": 7, "supplementalGroups": [8], "runAsNonRoot": true},
    }));
    let own: Container = parse(json!({"name": "c", "securityContext": {"runAsUser": 65532}}));
    let user = user(&spec, &own, "p_ns(u)").unwrap();
    assert_eq!(
        (user.user, user.supplementary_groups, user.must_not_be_root),
        (Some(65532), vec![8, 7], true)
    );
    let root: Container = parse(json!({"name": "c", "securityContext": {"runAsUser": 0}}));
    let error = super::user(&spec, &root, "p_ns(u)").unwrap_err();
    assert_eq!(error, "container's runAsUser breaks non-root policy (pod: \"p_ns(u)\", container: c)");
}

#[test]
fn the_credentials_of_the_registry_come_first_and_others_are_left_out() {
    let config = json!({"auths": {
        "reg.example.com": {"username": "wide", "password": "1"},
        "https://reg.example.com/team": {"auth": "bmFycm93OjI="},
        "*.example.org": {"username": "star", "password": "3"},
        "https://index.docker.io/v1/": {"username": "hub", "password": "4"},
    }});
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, config.to_string());
    let mut objects = Objects::default();
    objects.secrets.insert("pull".into(), parse(json!({"data": {".dockerconfigjson": data}})));
    let spec: PodSpec =
        parse(json!({"containers": [], "imagePullSecrets": [{"name": "pull"}, {"name": "none"}]}));
    let users = |image: &str| -> Vec<String> {
        credentials(&spec, image, &objects).into_iter().map(|Credential { user, .. }| user).collect()
    };
    assert_eq!(users("reg.example.com/team/app:v1"), ["narrow", "wide"]);
    assert_eq!(users("reg.example.com/teams/app@sha256:00"), ["wide"]);
    assert_eq!(users("eu.example.org/app"), ["star"]);
    assert_eq!(users("nginx:1.27"), ["hub"]);
    assert_eq!(users("localhost:5000/app"), Vec::<String>::new());
}

#[test]
fn a_simulated_pod_needs_only_the_objects_that_are_not_optional() {
    let missing = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        let mut world = world(&json!({"containers": [], "volumes": [volume]}));
        add_own_objects(&world.spec, &mut world.objects);
        unmountable(world.scope()).map(|error| error.to_string())
    };
    let projected = |source: Value| json!({"projected": {"sources": [source]}});
    for (source, error) in [
        (json!({"secret": {"secretName": "none"}}), Some("secret \"none\" not found")),
        (json!({"secret": {"secretName": "none", "optional": true}}), None),
        (
            json!({"configMap": {"name": "cm", "items": [{"key": "x", "path": "x"}]}}),
            Some("configmap references non-existent config key: x"),
        ),
        (projected(json!({"secret": {"name": "none"}})), Some("secret \"none\" not found")),
        (projected(json!({"configMap": {"name": "none"}})), Some("configmap \"none\" not found")),
        (projected(json!({"configMap": {"name": "none", "optional": true}})), None),
        (projected(json!({"configMap": {"name": "kube-root-ca.crt"}})), None),
        (projected(json!({"serviceAccountToken": {"path": "token"}})), None),
        (projected(json!({"clusterTrustBundle": {"name": "b", "path": "p"}})), None),
        (json!({"hostPath": {"path": "/etc"}}), None),
        (json!({"persistentVolumeClaim": {"claimName": "c"}}), None),
        (json!({"emptyDir": {}}), None),
    ] {
        let error = error.map(|error| format!("MountVolume.SetUp failed for volume \"v\" : {error}"));
        assert_eq!(missing(source.clone()), error, "{source}");
    }

    let spec: PodSpec = parse(json!({
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "a", "configMap": {"name": "a"}},
            {"name": "b", "secret": {"secretName": "b", "optional": true}},
            {"name": "c", "projected": {"sources": [{"secret": {"name": "c"}}, {"configMap": {"name": "kube-root-ca.crt"}}]}},
        ],
        "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "d"}}]}],
        "containers": [{"name": "m", "env": [
            {"name": "X", "valueFrom": {"secretKeyRef": {"name": "e", "key": "k"}}},
            {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "f", "key": "k", "optional": true}}},
        ]}],
    }));
    let required = References::required_by(&spec);
    let names =
        |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!((names(&required.config_maps), names(&required.secrets)), ("a d".into(), "c e pull".into()));
}
