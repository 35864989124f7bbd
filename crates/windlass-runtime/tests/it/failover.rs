//! Two hundred fail-overs in paused time: managers that compete for a Lease on a server that loses, delays and refuses requests.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use futures::FutureExt;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube_client::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};
use windlass_runtime::{
    BoxError, Manager, Result, RunContext, Runnable, client, leader_election::LeaderElection, manager::Group,
};

const FAIL_OVERS: u64 = 200;

/// A server with one Lease and a resource that leaders write.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

struct State {
    random: fastrand::Rng,
    lease: Option<Value>,
    revision: u64,
    /// The replicas whose work runs now.
    at_work: BTreeSet<String>,
    writes: u64,
    wrong: Vec<String>,
    /// How often each kind of fault occurred.
    faults: [u64; 5],
}

/// How a request for the Lease fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    LostRequest,
    LostReply,
    Conflict,
    ErrorAfterCommit,
    Slow,
}

const FAULTS: [Fault; 5] =
    [Fault::LostRequest, Fault::LostReply, Fault::Conflict, Fault::ErrorAfterCommit, Fault::Slow];

impl Server {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: fastrand::Rng::with_seed(seed),
            lease: None,
            revision: 0,
            at_work: BTreeSet::new(),
            writes: 0,
            wrong: Vec::new(),
            faults: [0; 5],
        })))
    }

    fn random(&self, range: std::ops::Range<u64>) -> u64 {
        self.0.lock().random.u64(range)
    }

    fn pick_fault(&self) -> Option<Fault> {
        let mut state = self.0.lock();
        let kind = state.random.usize(..FAULTS.len() * 4);
        let fault = FAULTS.get(kind).copied()?;
        state.faults[kind] += 1;
        Some(fault)
    }

    fn holder(&self) -> String {
        self.0.lock().holder()
    }

    fn describe(&self) -> String {
        let state = self.0.lock();
        format!("{:?}, at work {:?}, wrong {:?}", state.lease, state.at_work, state.wrong)
    }

    fn transitions(&self) -> u64 {
        let state = self.0.lock();
        state.lease.as_ref().and_then(|lease| lease["spec"]["leaseTransitions"].as_u64()).unwrap_or(0)
    }

    /// Answers a request of a replica, unless the link of the replica is cut.
    async fn serve(
        self,
        replica: String,
        link: watch::Receiver<bool>,
        request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let path = parts.uri.path().to_owned();
        reachable(&link).await;
        if path.ends_with("/events") {
            return Ok(answer(201, &serde_json::from_slice(&body)?));
        }
        if path == "/work" {
            let latency = self.random(0..500);
            sleep(Duration::from_millis(latency)).await;
            self.0.lock().work(&replica);
            return Ok(answer(200, &json!({})));
        }
        let fault = self.pick_fault();
        match fault {
            Some(Fault::LostRequest) => std::future::pending().await,
            Some(Fault::Slow) => {
                let (before, after) = (self.random(0..6_000), self.random(0..6_000));
                sleep(Duration::from_millis(before)).await;
                let reply = self.0.lock().lease_request(&parts.method, &body)?;
                sleep(Duration::from_millis(after)).await;
                reachable(&link).await;
                return Ok(reply);
            }
            Some(Fault::Conflict) if parts.method == Method::PUT => return Ok(failure(409, "Conflict")),
            _ => {}
        }
        let reply = self.0.lock().lease_request(&parts.method, &body)?;
        reachable(&link).await;
        match fault {
            Some(Fault::LostReply) => std::future::pending().await,
            Some(Fault::ErrorAfterCommit) => Ok(failure(500, "InternalError")),
            _ => Ok(reply),
        }
    }
}

impl State {
    fn holder(&self) -> String {
        let holder = self.lease.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        holder.unwrap_or_default().to_owned()
    }

    fn work(&mut self, replica: &str) {
        self.writes += 1;
        let holder = self.holder();
        if holder != replica {
            self.wrong.push(format!("{replica} wrote while {holder:?} held the Lease"));
        }
    }

    fn lease_request(&mut self, method: &Method, body: &[u8]) -> Result<Response<Body>, BoxError> {
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        match (method.as_str(), &self.lease) {
            ("GET", None) => return Ok(failure(404, "NotFound")),
            ("GET", Some(lease)) => return Ok(answer(200, lease)),
            ("POST", Some(_)) => return Ok(failure(409, "AlreadyExists")),
            ("PUT", None) => return Ok(failure(404, "NotFound")),
            _ => {}
        }
        let mut lease: Value = serde_json::from_slice(body)?;
        if self.lease.as_ref().is_some_and(|there| version(there) != version(&lease)) {
            return Ok(failure(409, "Conflict"));
        }
        self.revision += 1;
        lease["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.lease = Some(lease.clone());
        Ok(answer(200, &lease))
    }
}

async fn reachable(link: &watch::Receiver<bool>) {
    // Without a sender the replica is gone, and no task waits for the answer.
    let _ = link.clone().wait_for(|reachable| *reachable).await;
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(body.to_string().into_bytes())).expect("a response")
}

fn failure(code: u16, reason: &str) -> Response<Body> {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "injected",
        "reason": reason, "code": code });
    answer(code, &status)
}

/// Marks a replica as working until the mark is dropped.
struct AtWork(Server, String);

impl AtWork {
    fn new(server: &Server, replica: &str) -> Self {
        let mut state = server.0.lock();
        if !state.at_work.is_empty() {
            let others = format!("{:?}", state.at_work);
            state.wrong.push(format!("{replica} began to work beside {others}"));
        }
        state.at_work.insert(replica.to_owned());
        drop(state);
        Self(server.clone(), replica.to_owned())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.0.lock().at_work.remove(&self.1);
    }
}

struct Replica {
    name: String,
    link: watch::Sender<bool>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: JoinHandle<Result<()>>,
}

impl Replica {
    fn start(server: &Server, number: u64) -> Self {
        let name = format!("replica-{number}");
        let link = watch::Sender::new(true);
        let client = {
            let (server, name, link) = (server.clone(), name.clone(), link.subscribe());
            client::in_process(tower::service_fn(move |request| {
                server.clone().serve(name.clone(), link.clone(), request).boxed()
            }))
            .expect("a client")
        };
        let work = {
            let (server, name) = (server.clone(), name.clone());
            move |cx: RunContext| async move {
                let _at_work = AtWork::new(&server, &name);
                write_until_stopped(&cx).await;
                Ok::<_, Infallible>(())
            }
        };
        let manager = Manager::new(client)
            .runnable(Runnable::new("work", work).group(Group::LeaderElected))
            .leader_election(LeaderElection::new("operator").namespace("default").identity(&name));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let stopped = async {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Self { name, link, stop: Some(stop), task: tokio::spawn(manager.run_until(stopped)) }
    }

    /// Ends the leadership of this replica by killing the task, stopping the manager, or cutting the link for
    /// a while.
    fn end(&mut self, way: u64) {
        match way {
            0 => self.task.abort(),
            1 => drop(self.stop.take().map(|stop| stop.send(()))),
            // The replica gives up the leadership, unless the link is restored in time.
            _ => {
                let link = self.link.clone();
                link.send_replace(false);
                tokio::spawn(async move {
                    sleep(Duration::from_secs(5 * way)).await;
                    link.send_replace(true);
                });
            }
        }
    }
}

async fn write_until_stopped(cx: &RunContext) {
    let client: &Client = cx.client();
    while !cx.shutdown().is_requested() {
        let request = Request::post("/work").body(Body::empty()).expect("a request");
        let write = tokio::time::timeout(Duration::from_secs(2), client.send(request));
        let _ = write.await;
        sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_fail_overs_without_two_leaders_or_a_write_after_the_loss() {
    let (server, begun) = (Server::new(7), Instant::now());
    let mut replicas: Vec<Replica> = (0..3).map(|number| Replica::start(&server, number)).collect();
    let mut started = 3;
    while server.transitions() < FAIL_OVERS {
        sleep(Duration::from_millis(server.random(500..8_000))).await;
        let led = server.holder();
        if led.is_empty() {
            continue;
        }
        if let Some(leader) = replicas.iter_mut().find(|replica| replica.name == led) {
            leader.end(server.random(0..6));
        }
        let (ended, transitions) = (Instant::now(), server.transitions());
        // A leader that was cut off for a short time goes on.
        while server.transitions() == transitions && ended.elapsed() < Duration::from_mins(1) {
            sleep(Duration::from_millis(100)).await;
            for replica in &mut replicas {
                if replica.task.is_finished() {
                    *replica = Replica::start(&server, started);
                    started += 1;
                }
            }
        }
        let passed = begun.elapsed();
        assert!(passed < Duration::from_mins(FAIL_OVERS), "no replica takes over: {}", server.describe());
    }
    let state = server.0.lock();
    assert!(state.wrong.is_empty(), "{:?}", state.wrong);
    assert!(state.writes > 2 * FAIL_OVERS, "{} writes", state.writes);
    assert!(state.faults.iter().all(|count| *count > 20), "{:?}", state.faults);
}
