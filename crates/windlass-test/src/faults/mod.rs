//! Fault injection: a client whose server, network and process misbehave, by rules or by a seed.

mod fault;
mod plan;
mod reply;
mod rules;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch as channel;
use tokio::time::sleep;
use windlass_runtime::BoxError;
use windlass_runtime::permission::{Access, Verb};

pub(crate) use self::fault::RequestFacts;
pub use self::fault::{Fault, FaultRule};
use self::plan::Plan;
use self::reply::{AnyBody, failure, forbidden, full};
pub(crate) use self::rules::FaultRules;
use self::watch::{Flow, Process, relay};
use crate::TestClock;

/// The time after which a real server gives up a write.
const TIMEOUT: Duration = Duration::from_secs(34);

/// The number of replies that are kept for stale lists.
const LISTS: usize = 64;

/// A layer between a client and a server that injects faults. Cheap to clone: clones share the state.
///
/// Faults are scripted with [`inject`](Self::inject), or chosen by a [seed](Self::seeded).
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_client::api::{Api, PostParams};
/// # use windlass_runtime::permission::Verb;
/// use windlass_test::{Fault, Faults, TestCluster};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let cluster = TestCluster::start().await;
/// let faults = Faults::new(cluster.client());
/// faults.inject(Fault::Cut { committed: true }.on(Verb::Create).to("configmaps"));
///
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("a".to_owned());
/// let through_faults: Api<ConfigMap> = Api::default_namespaced(faults.client());
/// assert!(through_faults.create(&PostParams::default(), &config).await.is_err());
/// let configs: Api<ConfigMap> = Api::default_namespaced(cluster.client());
/// assert!(configs.get("a").await.is_ok(), "it was created, only the reply was lost");
/// faults.assert_all_struck();
/// # }
/// ```
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    server: Client,
    flow: channel::Sender<Flow>,
    /// True if requests get responses.
    reachable: channel::Sender<bool>,
    /// The number of crashes: clients of earlier processes get no answer.
    process: channel::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: FaultRules,
    plan: Option<Plan>,
    clock: Option<TestClock>,
    /// The process of the client that was made last.
    last_process: u64,
    injected: Vec<String>,
    trace: Vec<String>,
    /// The last replies to lists, by request, the oldest request first.
    lists: BTreeMap<String, (StatusCode, http::HeaderMap, Bytes)>,
    listed: VecDeque<String>,
}

impl Faults {
    /// Creates a layer before a server. The layer injects no fault until the first rule.
    pub fn new(server: Client) -> Self {
        Self::with_plan(server, None)
    }

    /// Creates a layer that injects faults chosen by a seed, until [`clear_faults`](Self::clear_faults). The clock of the operator
    /// jumps only with [`clock`](Self::clock).
    ///
    /// The same requests in the same order meet the same faults. [`Scenario`](crate::Scenario) keeps the
    /// order of requests the same.
    pub fn seeded(server: Client, seed: u64) -> Self {
        Self::with_plan(server, Some(seed))
    }

    fn with_plan(server: Client, seed: Option<u64>) -> Self {
        Self(Arc::new(Inner {
            server,
            flow: channel::Sender::new(Flow::default()),
            reachable: channel::Sender::new(true),
            process: channel::Sender::new(0),
            state: Mutex::new(State { plan: seed.map(Plan::new), ..State::default() }),
        }))
    }

    /// Sets the clock that [`Fault::ClockJump`] moves: the clock of the operator's [environment](TestClock::env).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_client::api::{Api, ListParams};
    /// # use windlass_runtime::permission::Verb;
    /// use jiff::{SignedDuration, Timestamp};
    /// use windlass_test::{Fault, Faults, TestClock, TestCluster};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let cluster = TestCluster::start().await;
    /// let clock = TestClock::starting_at(Timestamp::UNIX_EPOCH);
    /// let faults = Faults::new(cluster.client()).clock(clock.clone());
    /// faults.inject(Fault::ClockJump(SignedDuration::from_hours(1)).on(Verb::List).to("configmaps"));
    /// // `Manager::env(clock.env(1))` gives the clock to the operator.
    /// # let configs: Api<ConfigMap> = Api::default_namespaced(faults.client());
    /// # configs.list(&ListParams::default()).await.expect("listed");
    /// # faults.assert_all_struck();
    /// # assert!(clock.now() >= Timestamp::from_second(3600).expect("in range"));
    /// # }
    /// ```
    pub fn clock(self, clock: TestClock) -> Self {
        self.0.state.lock().clock = Some(clock);
        self
    }

    /// Returns a client that meets these faults. After a [crash](Fault::Crash), requests of the client never
    /// end: the next process of the operator needs a new client.
    pub fn client(&self) -> Client {
        let (faults, process) = (self.clone(), *self.0.process.borrow());
        self.0.state.lock().last_process = process;
        let namespace = self.0.server.default_namespace().to_owned();
        let service = tower::service_fn(move |request| {
            let faults = faults.clone();
            Box::pin(async move { faults.serve(request, process).await })
        });
        Client::new(service, namespace)
    }

    /// Adds a fault. If several faults match a request, the fault that was added first strikes.
    ///
    /// # Panics
    /// The fault is a [jump of the clock](Fault::ClockJump), and there is no [clock](Self::clock).
    #[track_caller]
    pub fn inject(&self, rule: FaultRule) {
        let mut state = self.0.state.lock();
        let lacks_clock = matches!(rule.fault, Fault::ClockJump(_)) && state.clock.is_none();
        if !lacks_clock {
            state.rules.add(rule);
            return;
        }
        drop(state);
        panic!("{rule}: there is no clock that could jump; give the operator's clock to `Faults::clock`");
    }

    /// Holds back the events of all watches until [`release_watches`](Self::release_watches).
    pub fn hold_watches(&self) {
        self.0.flow.send_modify(|flow| flow.is_held = true);
    }

    /// Delivers the events of watches again, beginning with the events that were held back.
    pub fn release_watches(&self) {
        self.0.flow.send_modify(|flow| flow.is_held = false);
    }

    /// Answers no request and delivers no event until [`clear_faults`](Self::clear_faults).
    pub fn cut_off(&self) {
        self.0.reachable.send_replace(false);
        self.hold_watches();
    }

    /// Ends all faults, and the faults of the seed for good. Faults that are [added](Self::inject) later strike again.
    pub fn clear_faults(&self) {
        let mut state = self.0.state.lock();
        state.rules.clear();
        state.plan = None;
        drop(state);
        self.0.reachable.send_replace(true);
        self.0.flow.send_modify(Flow::clear);
    }

    /// Waits until the process of the client that was made last [crashes](Fault::Crash). Returns at once if the process has crashed.
    pub async fn crashed(&self) {
        let last = self.0.state.lock().last_process;
        // The sender lives as long as `self`.
        let _ = self.0.process.subscribe().wait_for(|process| *process != last).await;
    }

    /// Returns the requests, one a line, with the fault and the status code of each request.
    pub fn trace(&self) -> Vec<String> {
        self.0.state.lock().trace.clone()
    }

    /// Returns the faults that struck, with the request of each fault.
    pub fn injected(&self) -> Vec<String> {
        self.0.state.lock().injected.clone()
    }

    /// Panics unless every added fault has struck the wanted number of times, [cleared](Self::clear_faults) faults included, because a
    /// test without the fault proves no behaviour.
    #[track_caller]
    pub fn assert_all_struck(&self) {
        let unfinished = self.0.state.lock().rules.unfinished();
        assert!(unfinished.is_empty(), "these faults did not strike: {unfinished}");
    }

    async fn serve(self, request: Request<Body>, process: u64) -> Result<Response<AnyBody>, BoxError> {
        self.refuse_if_dead(process).await;
        self.0.reachable.subscribe().wait_for(|reachable| *reachable).await?;
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let Some(access) = Access::of(&parts.method, &parts.uri) else {
            return Ok(self.0.server.send(Request::from_parts(parts, Body::from(body))).await?.map(any));
        };
        let line = format!("{} {} #{:08x}", parts.method, parts.uri, digest(&body));
        let fault = self.choose(&access, &parts.uri, &line);
        let request = Request::from_parts(parts, Body::from(body));
        let result = self.answer(request, &access, fault.clone(), process).await;
        self.refuse_if_dead(process).await;
        let outcome = match &result {
            Ok(response) => response.status().as_str().to_owned(),
            Err(error) => error.to_string(),
        };
        let fault = fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
        self.0.state.lock().trace.push(format!("{line} -> {outcome}{fault}"));
        result
    }

    /// Chooses the fault of a request.
    fn choose(&self, access: &Access, uri: &Uri, line: &str) -> Option<Fault> {
        let mut state = self.0.state.lock();
        let query = uri.query().unwrap_or_default();
        let facts = RequestFacts {
            is_repeated: state.lists.contains_key(&uri.to_string()),
            is_versioned: query.contains("resourceVersion=") || query.contains("continue="),
        };
        let scripted = state.rules.strike(access, access.name(), facts);
        let resumes = query.contains("resourceVersion=") && !query.contains("sendInitialEvents");
        let has_clock = state.clock.is_some();
        let fault = scripted.or_else(|| {
            let chosen = state.plan.as_mut()?.choose(access, resumes);
            chosen.filter(|fault| has_clock || !matches!(fault, Fault::ClockJump(_)))
        })?;
        state.injected.push(format!("{fault}: {line}"));
        Some(fault)
    }

    async fn answer(
        &self,
        request: Request<Body>,
        access: &Access,
        fault: Option<Fault>,
        process: u64,
    ) -> Result<Response<AnyBody>, BoxError> {
        match fault {
            Some(Fault::Conflict) => {
                let message =
                    "injected: the object has been modified; please apply your changes to the latest version";
                Ok(failure(409, "Conflict", message, None))
            }
            Some(Fault::TooManyRequests(wait)) => {
                Ok(failure(429, "TooManyRequests", "injected: try again later", Some(wait.as_secs())))
            }
            Some(Fault::ServerError) => Ok(failure(500, "InternalError", "injected: internal error", None)),
            Some(Fault::NotFound) => Ok(failure(404, "NotFound", "injected: not found", None)),
            Some(Fault::AlreadyExists) => Ok(failure(409, "AlreadyExists", "injected: already exists", None)),
            Some(Fault::Status { code, reason, message }) => Ok(failure(code, &reason, &message, None)),
            Some(Fault::Forbidden) => Ok(forbidden(access)),
            Some(Fault::Timeout { committed }) => {
                if committed {
                    drop(self.0.server.send(request).await);
                }
                sleep(TIMEOUT).await;
                let message = "injected: Timeout: request did not complete within the allotted timeout";
                Ok(failure(504, "Timeout", message, None))
            }
            Some(Fault::Cut { committed }) => {
                if committed {
                    drop(self.0.server.send(request).await);
                }
                Err("injected: connection reset by peer".into())
            }
            Some(Fault::Crash { committed }) => {
                if committed {
                    drop(self.0.server.send(request).await);
                }
                self.0.process.send_modify(|process| *process += 1);
                self.refuse_if_dead(process).await;
                Err("the process has ended".into())
            }
            Some(Fault::LeaseTaken) => {
                let path = request.uri().path().to_owned();
                self.take_lease(&path, access).await;
                self.forward(request, access, None, process).await
            }
            Some(Fault::ClockJump(by)) => {
                if let Some(clock) = &self.0.state.lock().clock {
                    clock.jump(by);
                }
                self.forward(request, access, None, process).await
            }
            Some(Fault::Expired) if access.verb() != Verb::Watch || !is_watch_from_scratch(&request) => {
                Ok(failure(410, "Expired", "injected: too old resource version", None))
            }
            other => self.forward(request, access, other, process).await,
        }
    }

    /// Sends a request to the server and passes the reply on.
    async fn forward(
        &self,
        request: Request<Body>,
        access: &Access,
        fault: Option<Fault>,
        process: u64,
    ) -> Result<Response<AnyBody>, BoxError> {
        let url = request.uri().to_string();
        // Faults that end while the server prepares the response must not strike.
        let flow = self.0.flow.subscribe();
        let watch_fault = fault.clone().map(|fault| (fault, flow.borrow().cleared));
        let response = self.0.server.send(request).await?;
        if access.verb() == Verb::Watch && response.status().is_success() {
            let (parts, body) = response.into_parts();
            let process = Process { number: process, current: self.0.process.subscribe() };
            return Ok(Response::from_parts(parts, relay(body, watch_fault, flow, process)));
        }
        if access.verb() != Verb::List {
            return Ok(response.map(any));
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let reply = (parts.status, parts.headers.clone(), bytes.clone());
        let earlier = self.0.state.lock().remember(url, reply);
        if let (Some(Fault::Stale { .. }), Some((status, headers, bytes))) = (fault, earlier) {
            let mut response = Response::new(full(bytes));
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            return Ok(response);
        }
        Ok(Response::from_parts(parts, full(bytes)))
    }

    /// Makes another replica the holder of a Lease.
    async fn take_lease(&self, path: &str, access: &Access) {
        if access.resource() != Some("leases") || access.verb() != Verb::Update {
            return;
        }
        let now = self.0.state.lock().clock.as_ref().map_or_else(Timestamp::now, TestClock::now);
        let spec = json!({ "holderIdentity": "another-replica", "renewTime": format!("{now:.6}") });
        let patch = json!({ "spec": spec }).to_string().into_bytes();
        let request = Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(Body::from(patch));
        if let Ok(request) = request {
            drop(self.0.server.send(request).await);
        }
    }

    /// Never returns if the process of a client has ended.
    async fn refuse_if_dead(&self, process: u64) {
        if *self.0.process.borrow() != process {
            std::future::pending::<()>().await;
        }
    }
}

impl State {
    /// Remembers a reply to a list. Returns the earlier reply to the same request.
    fn remember(
        &mut self,
        url: String,
        reply: (StatusCode, http::HeaderMap, Bytes),
    ) -> Option<(StatusCode, http::HeaderMap, Bytes)> {
        let earlier = self.lists.insert(url.clone(), reply);
        if earlier.is_none() {
            self.listed.push_back(url);
            if self.listed.len() > LISTS
                && let Some(oldest) = self.listed.pop_front()
            {
                self.lists.remove(&oldest);
            }
        }
        earlier
    }
}

/// Returns whether a watch begins with the present state. Such a watch never meets an expired history.
fn is_watch_from_scratch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.contains("sendInitialEvents=true") || !query.contains("resourceVersion=")
}

fn any(body: Body) -> AnyBody {
    body.map_err(BoxError::from).boxed_unsync()
}

/// Returns a digest of bytes that is the same in every process.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(bytes);
    hasher.finish()
}

/// Fowler, Noll and Vo's FNV-1a.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
