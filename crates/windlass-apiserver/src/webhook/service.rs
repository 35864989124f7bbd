//! Finds the address behind a service. There is no kube-proxy: the server calls endpoints directly.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use windlass_schema::go_quote;

use crate::nodes::Pod;
use crate::store::View;
use windlass_kinds::{kind_names, resources};

/// Where the requests to a service go.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    /// An address or a host name.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
    /// The pod that has the address, if the endpoint names a pod that exists.
    pub(crate) pod: Option<Pod>,
}

/// Resolves a service to a host and port.
///
/// The address of an `ExternalName` service is the external name. Other services are reached at a ready
/// endpoint, in rotation, from the EndpointSlices, or else from the `Endpoints` object.
///
/// # Errors
///
/// If there is no such service or port, or no endpoint.
pub(super) fn resolve(view: &View, namespace: &str, name: &str, port: u16) -> Result<Backend, String> {
    let key = format!("{namespace}/{name}");
    let service = view
        .get(&resources::SERVICES, &key)
        .ok_or_else(|| format!("service {} not found", go_quote(name)))?
        .value();
    let spec = service.get("spec").cloned().unwrap_or_default();
    if spec["type"] == "ExternalName" {
        let external = spec["externalName"].as_str().unwrap_or_default();
        return Ok(Backend { host: external.to_owned(), port, pod: None });
    }
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let service_port = ports
        .iter()
        .find(|candidate| candidate["port"] == port)
        .ok_or_else(|| format!("no service port {port} found for service {}", go_quote(name)))?;
    let port_name = service_port["name"].as_str().unwrap_or_default();
    ready_endpoint(view, namespace, name, port_name)
        .ok_or_else(|| format!("no endpoints available for service {}", go_quote(name)))
}

/// Returns a ready endpoint of a port of a service, in rotation; `None` without a ready endpoint.
pub(crate) fn ready_endpoint(view: &View, namespace: &str, name: &str, port_name: &str) -> Option<Backend> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let mut endpoints = in_slices(view, namespace, name, port_name);
    if endpoints.is_empty() {
        endpoints = in_endpoints(view, &format!("{namespace}/{name}"), port_name);
    }
    if endpoints.is_empty() {
        return None;
    }
    let turn = TURN.fetch_add(1, Ordering::Relaxed) % endpoints.len();
    let Endpoint { host, port, pod } = endpoints.swap_remove(turn);
    let found = |name: String| view.get(&resources::PODS, &format!("{namespace}/{name}"));
    let pod = pod.and_then(found).map(|pod| Pod::new(pod.value()));
    Some(Backend { host, port, pod })
}

/// An endpoint of a service.
struct Endpoint {
    host: String,
    port: u16,
    /// The name of the pod.
    pod: Option<String>,
}

/// Returns the name of the pod that an endpoint refers to.
fn pod_of(target: &Value) -> Option<String> {
    target["name"].as_str().filter(|_| target["kind"] == kind_names::POD).map(str::to_owned)
}

fn in_slices(view: &View, namespace: &str, service: &str, port_name: &str) -> Vec<Endpoint> {
    let slices = view.range(&resources::ENDPOINT_SLICES, Some(namespace));
    let of_service =
        slices.filter(|(_, slice)| slice.labels().get("kubernetes.io/service-name") == Some(service));
    let mut found = Vec::new();
    for (_, slice) in of_service {
        let slice = slice.value();
        let Some(port) = port_named(&slice["ports"], port_name) else { continue };
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        for endpoint in endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false) {
            let pod = pod_of(&endpoint["targetRef"]);
            let hosts = texts(&endpoint["addresses"]).into_iter();
            found.extend(hosts.map(|host| Endpoint { host, port, pod: pod.clone() }));
        }
    }
    found
}

fn in_endpoints(view: &View, key: &str, port_name: &str) -> Vec<Endpoint> {
    let Some(stored) = view.get(&resources::ENDPOINTS, key) else { return Vec::new() };
    let endpoints = stored.value();
    let mut found = Vec::new();
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        let Some(port) = port_named(&subset["ports"], port_name) else { continue };
        for address in subset["addresses"].as_array().into_iter().flatten() {
            let Some(host) = address["ip"].as_str() else { continue };
            found.push(Endpoint { host: host.to_owned(), port, pod: pod_of(&address["targetRef"]) });
        }
    }
    found
}

/// Returns the number of the port with a name. The name may be empty.
fn port_named(ports: &Value, name: &str) -> Option<u16> {
    let named = |port: &&Value| port["name"].as_str().unwrap_or_default() == name;
    let port = ports.as_array()?.iter().find(named)?;
    u16::try_from(port["port"].as_u64()?).ok()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Server;
    use crate::store::Write;

    fn put(server: &Server, group: &str, resource: &str, object: &Value) {
        let state = server.state();
        let resource = state.builtin.resource(group, "v1", resource).unwrap();
        let (key, now) = (resource.key("ns", crate::meta::name(object)), state.env.now());
        let draft = Some(resource.draft(object, state.store.labels(), now));
        let write = Write { id: &resource.storage, key: &key, expected: None, draft, now };
        state.store.commit_now(write, |_| Ok(())).unwrap();
    }

    #[test]
    fn ready_endpoints_of_the_port_are_taken_in_turn() {
        let server = Server::builder().build().unwrap();
        let ports = json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]);
        put(&server, "", "services", &json!({"metadata": {"name": "a"}, "spec": {"ports": ports}}));
        let resolve = |port| {
            let found = resolve(&server.state().store.view(), "ns", "a", port);
            found.map(|backend| (backend.host, backend.port))
        };
        assert_eq!(resolve(443).unwrap_err(), "no endpoints available for service \"a\"");
        assert_eq!(resolve(1).unwrap_err(), "no service port 1 found for service \"a\"");
        let subsets = json!([{
            "addresses": [{"ip": "10.1.0.9"}], "notReadyAddresses": [{"ip": "10.1.0.8"}],
            "ports": [{"name": "https", "port": 9443}]
        }]);
        put(&server, "", "endpoints", &json!({"metadata": {"name": "a"}, "subsets": subsets}));
        assert_eq!(resolve(443).unwrap(), ("10.1.0.9".to_owned(), 9443));
        let slice = json!({
            "metadata": {"name": "a-1", "labels": {"kubernetes.io/service-name": "a"}},
            "endpoints": [
                {"addresses": ["10.1.0.1"]},
                {"addresses": ["10.1.0.2"], "conditions": {"ready": false}},
                {"addresses": ["10.1.0.3"], "conditions": {"ready": true}},
            ],
            "ports": [{"name": "http", "port": 8080}, {"name": "https", "port": 8443}],
        });
        put(&server, "discovery.k8s.io", "endpointslices", &slice);
        let mut found = [resolve(443).unwrap(), resolve(443).unwrap()];
        found.sort();
        assert_eq!(found, [("10.1.0.1".to_owned(), 8443), ("10.1.0.3".to_owned(), 8443)]);
    }

    #[test]
    fn an_external_name_needs_no_port_of_the_service() {
        let server = Server::builder().build().unwrap();
        let spec = json!({"type": "ExternalName", "externalName": "example.com"});
        put(&server, "", "services", &json!({"metadata": {"name": "a"}, "spec": spec}));
        let found = resolve(&server.state().store.view(), "ns", "a", 8443).unwrap();
        assert_eq!((found.host.as_str(), found.port), ("example.com", 8443));
    }
}
