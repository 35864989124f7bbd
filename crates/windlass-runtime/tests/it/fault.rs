//! A server that misbehaves on demand.

use std::{collections::VecDeque, sync::Arc};

use futures::{FutureExt, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube_client::{Client, client::Body};
use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_runtime::{BoxError, client};

/// Stands between a client and a server.
#[derive(Clone)]
pub(crate) struct Faults(Arc<Inner>);

struct Inner {
    server: Mutex<Client>,
    /// True if watches deliver events.
    watches_flow: watch::Sender<bool>,
    /// Changes when all watches break.
    breaks: watch::Sender<()>,
    /// True if requests get responses.
    reachable: watch::Sender<bool>,
    /// True if reads are allowed.
    readable: watch::Sender<bool>,
    answers: Mutex<VecDeque<Answer>>,
    /// Texts in the paths of failing requests.
    failing: Mutex<Vec<&'static str>>,
    lost: Mutex<Vec<(Method, &'static str)>>,
    /// False while answers to creates are held back.
    answers_flow: watch::Sender<bool>,
    /// The number of objects that the server stored while answers to creates were held back.
    stored: watch::Sender<usize>,
    seen: Mutex<Vec<String>>,
}

struct Answer {
    method: Method,
    path: &'static str,
    response: Response<AnyBody>,
}

type AnyBody = UnsyncBoxBody<bytes::Bytes, BoxError>;

impl Faults {
    pub(crate) fn before(server: Client) -> Self {
        Self(Arc::new(Inner {
            server: Mutex::new(server),
            watches_flow: watch::channel(true).0,
            breaks: watch::channel(()).0,
            reachable: watch::channel(true).0,
            readable: watch::channel(true).0,
            answers: Mutex::default(),
            failing: Mutex::default(),
            lost: Mutex::default(),
            answers_flow: watch::channel(true).0,
            stored: watch::channel(0).0,
            seen: Mutex::default(),
        }))
    }

    /// Returns a client of the runtime that meets these faults.
    pub(crate) fn client(&self) -> Client {
        let faults = self.clone();
        let service = tower::service_fn(move |request| faults.clone().serve(request).boxed());
        let namespace = self.0.server.lock().default_namespace().to_owned();
        client::wrap(Client::new(service, namespace)).expect("a client")
    }

    /// Sends requests by another client to the server from now on, for the rights of another user.
    pub(crate) fn send_by(&self, server: Client) {
        *self.0.server.lock() = server;
    }

    /// Holds back the events of watches from now on.
    pub(crate) fn hold_watches(&self) {
        self.0.watches_flow.send_replace(false);
    }

    /// Breaks all watches. Events that were held back are lost.
    pub(crate) fn break_watches(&self) {
        self.0.breaks.send_replace(());
    }

    /// Answers no request from now on.
    pub(crate) fn cut_off(&self) {
        self.0.reachable.send_replace(false);
        self.hold_watches();
    }

    /// Answers requests again.
    pub(crate) fn reconnect(&self) {
        self.0.reachable.send_replace(true);
        self.release_watches();
    }

    /// Ends all watches, and forbids reads from now on.
    pub(crate) fn forbid_reads(&self) {
        self.0.readable.send_replace(false);
    }

    /// Allows reads again.
    pub(crate) fn allow_reads(&self) {
        self.0.readable.send_replace(true);
    }

    /// Delivers the events again.
    pub(crate) fn release_watches(&self) {
        self.0.watches_flow.send_replace(true);
    }

    /// Answers the next request of this method with `path` in the path with a failure, instead of the server.
    pub(crate) fn answer(
        &self,
        method: Method,
        path: &'static str,
        code: u16,
        reason: &str,
        retry_after: Option<u32>,
    ) {
        let response = failure(code, reason, retry_after);
        self.0.answers.lock().push_back(Answer { method, path, response });
    }

    /// Answers every request with `path` in the path with a failure from now on.
    pub(crate) fn fail(&self, path: &'static str) {
        self.0.failing.lock().push(path);
    }

    /// Ends [`fail`](Self::fail).
    pub(crate) fn heal(&self) {
        self.0.failing.lock().clear();
    }

    /// Lets the server carry out the next request of this method with `path` in the path, and loses the
    /// response.
    pub(crate) fn lose_answer(&self, method: Method, path: &'static str) {
        self.0.lost.lock().push((method, path));
    }

    /// Holds the answers to creates back from now on. The server still stores the objects.
    pub(crate) fn hold_created(&self) {
        self.0.answers_flow.send_replace(false);
    }

    /// Releases the answers to creates.
    pub(crate) fn release_created(&self) {
        self.0.answers_flow.send_replace(true);
    }

    /// Waits until the server has stored `count` objects while answers to creates were held back.
    pub(crate) async fn stored(&self, count: usize) {
        let _ = self.0.stored.subscribe().wait_for(|stored| *stored >= count).await;
    }

    /// How many requests of this method, to paths that contain `path`, came by.
    pub(crate) fn count(&self, method: &Method, path: &str) -> usize {
        let seen = self.0.seen.lock();
        seen.iter().filter(|line| line.starts_with(method.as_str()) && line.contains(path)).count()
    }

    /// All that came by.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.seen.lock().clone()
    }

    async fn serve(self, request: Request<Body>) -> Result<Response<AnyBody>, BoxError> {
        let line = format!("{} {}", request.method(), request.uri());
        self.0.seen.lock().push(line);
        self.0.reachable.subscribe().wait_for(|reachable| *reachable).await?;
        if let Some(response) = self.next_answer(&request) {
            return Ok(response);
        }
        if self.0.failing.lock().iter().any(|path| request.uri().path().contains(path)) {
            return Ok(failure(500, "InternalError", None));
        }
        if request.method() == Method::GET && !*self.0.readable.borrow() {
            return Ok(failure(403, "Forbidden", None));
        }
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let is_lost = self.loses(&request);
        let is_create = request.method() == Method::POST;
        let server = self.0.server.lock().clone();
        let response = server.send(request).await?;
        if is_create && !*self.0.answers_flow.borrow() {
            self.0.stored.send_modify(|stored| *stored += 1);
            self.0.answers_flow.subscribe().wait_for(|flows| *flows).await?;
        }
        if is_lost {
            response.into_body().collect().await?;
            return Err("the connection broke".into());
        }
        if !is_watch {
            return Ok(response.map(any));
        }
        let (parts, body) = response.into_parts();
        let (flow, readable) = (self.0.watches_flow.subscribe(), self.0.readable.subscribe());
        let open = (body, flow, readable, self.0.breaks.subscribe());
        let frames = stream::unfold(open, |(mut body, mut flow, mut readable, mut breaks)| async move {
            let next = async {
                let frame = body.frame().await?;
                flow.wait_for(|flows| *flows).await.ok()?;
                Some(frame.map_err(BoxError::from))
            };
            let frame = tokio::select! {
                biased;
                _ = breaks.changed() => return None,
                _ = readable.wait_for(|readable| !*readable) => return None,
                frame = next => frame?,
            };
            Some((frame, (body, flow, readable, breaks)))
        });
        Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()))
    }

    fn loses(&self, request: &Request<Body>) -> bool {
        let mut lost = self.0.lost.lock();
        let fits = |(method, path): &(Method, &str)| {
            method == request.method() && request.uri().to_string().contains(path)
        };
        lost.iter().position(fits).map(|place| lost.remove(place)).is_some()
    }

    fn next_answer(&self, request: &Request<Body>) -> Option<Response<AnyBody>> {
        let mut answers = self.0.answers.lock();
        let fits = |answer: &Answer| {
            answer.method == *request.method() && request.uri().to_string().contains(answer.path)
        };
        let place = answers.iter().position(fits)?;
        answers.remove(place).map(|answer| answer.response)
    }
}

fn failure(code: u16, reason: &str, retry_after: Option<u32>) -> Response<AnyBody> {
    let status = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": format!("injected {code}"), "reason": reason, "code": code });
    let mut response = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    response.body(any(Body::from(status.to_string().into_bytes()))).expect("a response")
}

fn any(body: Body) -> AnyBody {
    body.map_err(BoxError::from).boxed_unsync()
}
