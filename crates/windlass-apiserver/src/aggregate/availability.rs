//! Checks whether extension servers answer, and writes the condition `Available` of their APIServices.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Aggregator;
use super::remote::Remote;
use crate::managed_fields::{FieldManager, SERVER};
use crate::state::State;
use crate::store::{CommitError, ResourceId, View, Write};
use windlass_kinds::resources::{API_SERVICES, ENDPOINT_SLICES, SERVICES};
use windlass_kinds::{Subresource, api_service};

/// How often a server is checked that answered.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// How soon a server is checked again that did not answer. The interval doubles up to [`CHECK_EVERY`].
const FIRST_RETRY: Duration = Duration::from_millis(500);

/// The resources whose changes may make a server available.
static WATCHED: [&LazyLock<ResourceId>; 3] = [&API_SERVICES, &SERVICES, &ENDPOINT_SLICES];

/// The checks of a server.
struct Checks {
    /// A hash of the objects that the last check depends on.
    of: u64,
    /// When the next check is due; `None` while a check runs.
    due: Option<Instant>,
    failures: u32,
}

/// A check that runs: the server, and then whether the server is available.
type Running = FuturesUnordered<BoxFuture<'static, (Arc<Remote>, bool)>>;

/// The requests for OpenAPI documents. The checks of a server do not wait for the document of the server.
#[derive(Default)]
struct Descriptions {
    /// Each request returns the name of the APIService.
    running: FuturesUnordered<BoxFuture<'static, String>>,
    /// The servers with a request that runs, and what the next request is for, if a check ended in the meantime.
    next: BTreeMap<String, Option<Arc<Remote>>>,
}

/// Checks the servers until `stopped` completes or this server is dropped.
pub(crate) async fn keep_available(
    state: Weak<State>,
    aggregator: Weak<Aggregator>,
    stopped: impl Future<Output = ()>,
) {
    tokio::pin!(stopped);
    let logs = |state: Arc<State>| WATCHED.map(|resource| state.store.log(resource));
    let Some(logs) = state.upgrade().map(logs) else { return };
    let (mut checks, mut running) = (BTreeMap::new(), Running::new());
    let mut descriptions = Descriptions::default();
    let mut available: Option<Arc<Remote>> = None;
    loop {
        let [services, endpoints, slices] = logs.each_ref().map(|log| log.changed());
        let (Some(alive), Some(aggregation)) = (state.upgrade(), aggregator.upgrade()) else { return };
        start_due(&alive, &aggregation, &mut checks, &running);
        if let Some(remote) = available.take() {
            descriptions.start(&alive, &aggregation, remote);
        }
        drop((alive, aggregation));
        let due = checks.values().filter_map(|checks: &Checks| checks.due).min();
        let wait = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut stopped => return,
            Some((remote, is_available)) = running.next() => {
                if let Some(checks) = checks.get_mut(&remote.name) {
                    checks.ended(is_available);
                }
                available = is_available.then_some(remote);
            }
            Some(name) = descriptions.running.next() => available = descriptions.ended(&name),
            () = services => {}
            () = endpoints => {}
            () = slices => {}
            () = wait => {}
        }
    }
}

impl Descriptions {
    /// Asks a server for the document; if a request to the server runs, after the request.
    fn start(&mut self, state: &Arc<State>, aggregator: &Arc<Aggregator>, remote: Arc<Remote>) {
        if let Some(next) = self.next.get_mut(&remote.name) {
            *next = Some(remote);
            return;
        }
        self.next.insert(remote.name.clone(), None);
        let (apart, aggregator) = (state.apart.clone(), Arc::clone(aggregator));
        let ask = async move {
            aggregator.documents.refresh_description(&aggregator, &remote, &apart).await;
            remote.name.clone()
        };
        self.running.push(ask.boxed());
    }

    /// Returns the server that is to be asked again.
    fn ended(&mut self, name: &str) -> Option<Arc<Remote>> {
        self.next.remove(name).flatten()
    }
}

impl Checks {
    /// Schedules the next check.
    fn ended(&mut self, is_available: bool) {
        self.failures = if is_available { 0 } else { self.failures.saturating_add(1) };
        let retry = FIRST_RETRY.saturating_mul(1 << self.failures.saturating_sub(1).min(10));
        let wait = if is_available { CHECK_EVERY } else { retry.min(CHECK_EVERY) };
        self.due = Some(Instant::now() + wait);
    }
}

/// Starts the checks of the servers whose objects changed, and the checks that are due.
fn start_due(
    state: &Arc<State>,
    aggregator: &Arc<Aggregator>,
    checks: &mut BTreeMap<String, Checks>,
    running: &Running,
) {
    let view = state.store.view();
    let remotes = aggregator.remotes.get(&view);
    let names: HashSet<&str> = remotes.iter().map(|remote| remote.name.as_str()).collect();
    checks.retain(|name, _| names.contains(name.as_str()));
    let ids: HashSet<&str> = remotes.iter().map(|remote| &**remote.endpoint.id()).collect();
    aggregator.clients.keep(|id| ids.contains(id));
    aggregator.documents.keep(|group, version| remotes.get(group, version).is_some());
    let now = Instant::now();
    for remote in remotes.iter() {
        let of = dependencies(&view, remote);
        let known = checks.entry(remote.name.clone()).or_insert_with(|| Checks {
            of: of.wrapping_add(1),
            due: Some(now),
            failures: 0,
        });
        if known.due.is_some_and(|due| due <= now || known.of != of) {
            known.of = of;
            known.due = None;
            running.push(check(Arc::clone(state), Arc::clone(aggregator), Arc::clone(remote)).boxed());
        }
    }
}

/// Checks a server, and writes the condition. Returns the server, and whether the server is available.
async fn check(state: Arc<State>, aggregator: Arc<Aggregator>, remote: Arc<Remote>) -> (Arc<Remote>, bool) {
    let condition = condition(&aggregator, &state.store.view(), &remote).await;
    if condition.is_available {
        // Clients look at discovery as soon as the condition is true.
        aggregator.documents.refresh(&aggregator, &remote, &state.apart).await;
    }
    write_condition(&state, &remote, &condition).await;
    (remote, condition.is_available)
}

/// Returns a hash of the objects that the availability of a server depends on, besides the server.
fn dependencies(view: &View, remote: &Remote) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&remote.uid, remote.endpoint.id()).hash(&mut hasher);
    let key = format!("{}/{}", remote.namespace, remote.service);
    let service = view.get(&SERVICES, &key).map(|stored| stored.rv);
    service.hash(&mut hasher);
    slices(view, remote).for_each(|slice| slice.rv.hash(&mut hasher));
    hasher.finish()
}

fn slices<'v>(view: &'v View, remote: &'v Remote) -> impl Iterator<Item = &'v Arc<crate::store::Stored>> {
    let all = view.range(&ENDPOINT_SLICES, Some(&remote.namespace));
    all.map(|(_, slice)| slice)
        .filter(|slice| slice.labels().get("kubernetes.io/service-name") == Some(&*remote.service))
}

/// The condition `Available` of an APIService.
struct Condition {
    is_available: bool,
    reason: &'static str,
    message: String,
}

impl Condition {
    fn failed(reason: &'static str, message: String) -> Self {
        Self { is_available: false, reason, message }
    }
}

async fn condition(aggregator: &Aggregator, view: &View, remote: &Remote) -> Condition {
    if let Some(failed) = check_objects(view, remote) {
        return failed;
    }
    match aggregator.probe(remote).await {
        Ok(()) => Condition { is_available: true, reason: "Passed", message: "all checks passed".to_owned() },
        Err(why) => Condition::failed("FailedDiscoveryCheck", why),
    }
}

/// Checks the service and the endpoints. Returns the condition if a check fails.
fn check_objects(view: &View, remote: &Remote) -> Option<Condition> {
    let Remote { namespace, service: name, port, .. } = remote;
    let place = format!("service/{name} in \"{namespace}\"");
    let key = format!("{namespace}/{name}");
    let Some(service) = view.get(&SERVICES, &key) else {
        return Some(Condition::failed("ServiceNotFound", format!("{place} is not present")));
    };
    let service = service.value();
    if service["spec"]["type"] != "ClusterIP" {
        return None;
    }
    let ports = service["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(found) = ports.iter().find(|candidate| candidate["port"] == *port) else {
        let why = format!("{place} is not listening on port {port}");
        return Some(Condition::failed("ServicePortError", why));
    };
    let port_name = found["name"].as_str().unwrap_or_default();
    let slices: Vec<Value> = slices(view, remote).map(|slice| slice.value()).collect();
    if slices.is_empty() {
        let why = format!("cannot find endpointslices for {place}");
        return Some(Condition::failed("EndpointsNotFound", why));
    }
    let has_endpoint = |slice: &Value| {
        let list = |name: &str| slice[name].as_array().cloned().unwrap_or_default();
        let is_ready = |endpoint: &Value| endpoint["conditions"]["ready"] != false;
        let is_port =
            |port: &Value| port["name"].as_str().unwrap_or_default() == port_name && port["port"].is_number();
        list("endpoints").iter().any(is_ready) && list("ports").iter().any(is_port)
    };
    if slices.iter().any(has_endpoint) {
        return None;
    }
    let why = format!("endpointslices for {place} have no addresses with port name \"{port_name}\"");
    Some(Condition::failed("MissingEndpoints", why))
}

/// Writes the condition into the status of the APIService, unless the condition is there already, or the APIService names another
/// server by now.
async fn write_condition(state: &State, remote: &Remote, condition: &Condition) {
    let Some(resource) = state.builtin.builtin(&API_SERVICES, "v1") else {
        return;
    };
    loop {
        let view = state.store.view();
        let Some(stored) = view.get(&resource.storage, &remote.name) else { return };
        let old = stored.value();
        if !Remote::of(&old).is_some_and(|present| present.is_same(remote)) {
            return;
        }
        let mut object = old.clone();
        set_condition(&mut object, condition, &state.env.now_rfc3339());
        if object == old {
            return;
        }
        let now = state.env.now();
        let served = state.served.load_full();
        let manager =
            FieldManager { resource, served: &served, subresource: &Subresource::Status, name: SERVER, now };
        manager.track(Some(&old), &mut object).await;
        let draft = Some(resource.draft(&object, state.store.labels(), now));
        let write = Write { id: &resource.storage, key: &remote.name, expected: Some(stored.rv), draft, now };
        match state.store.commit(write, |_| Ok(())).await {
            Err(CommitError::Conflict) => {}
            _ => return,
        }
    }
}

fn set_condition(object: &mut Value, condition: &Condition, now: &str) {
    let condition = json!({
        "type": "Available",
        "status": if condition.is_available { "True" } else { "False" },
        "reason": condition.reason,
        "message": condition.message,
    });
    api_service::set_available(object, condition, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    fn api_service(uid: &str) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.example.com", "uid": uid},
            "spec": {"group": "example.com", "version": "v1", "service": {"namespace": "ns", "name": "s", "port": 443}},
        })
    }

    #[tokio::test]
    async fn an_api_service_that_was_created_again_gets_a_condition_of_its_own() {
        let server = Server::builder().build().unwrap();
        let state = server.state();
        let resource = state.builtin.builtin(&API_SERVICES, "v1").unwrap();
        let (key, now) = ("v1.example.com", state.env.now());
        let draft = Some(resource.draft(&api_service("new"), state.store.labels(), now));
        let write = Write { id: &resource.storage, key, expected: None, draft, now };
        assert!(state.store.commit_now(write, |_| Ok(())).is_ok());
        let remote = |uid: &str| Remote::of(&api_service(uid)).unwrap();
        let view = state.store.view();
        assert_ne!(dependencies(&view, &remote("old")), dependencies(&view, &remote("new")));
        let reason = || {
            let stored = state.store.view().get(&resource.storage, key).unwrap().value();
            stored.pointer("/status/conditions/0/reason").cloned()
        };
        write_condition(state, &remote("old"), &Condition::failed("Old", String::new())).await;
        assert_eq!(reason(), None);
        write_condition(state, &remote("new"), &Condition::failed("New", String::new())).await;
        assert_eq!(reason(), Some("New".into()));
    }
}
