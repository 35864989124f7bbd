//! A server that a test scripts, request by request.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::{future::BoxFuture, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube_client::{Client, client::Body};
use tokio::sync::{mpsc, oneshot};

/// A piece of a body that makes the reader panic.
pub(super) const PANIC: &str = "panic";

type Answer = Response<Reply>;
type Reply = StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// The server's side.
pub(super) struct Server {
    asked: mpsc::UnboundedReceiver<Asked>,
}

/// A request that waits for a response.
pub(super) struct Asked {
    pub(super) request: Request<Body>,
    answer: oneshot::Sender<Answer>,
}

/// The body of a response, while the client reads the body.
pub(super) struct Sending(mpsc::UnboundedSender<String>);

#[derive(Clone)]
struct Transport(mpsc::UnboundedSender<Asked>);

/// Returns a client and the client's server.
pub(super) fn server() -> (Client, Server) {
    let (sender, asked) = mpsc::unbounded_channel();
    (Client::new(Transport(sender), "default"), Server { asked })
}

impl tower::Service<Request<Body>> for Transport {
    type Response = Answer;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Answer, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send(Asked { request, answer });
        Box::pin(async move {
            sent.map_err(|_| "the server is gone")?;
            Ok(answered.await?)
        })
    }
}

impl Server {
    /// The next request.
    pub(super) async fn asked(&mut self) -> Asked {
        let limit = Duration::from_mins(10);
        tokio::time::timeout(limit, self.asked.recv()).await.expect("a request in time").expect("a client")
    }

    /// Returns the next request. The request must be for `target`.
    pub(super) async fn asked_for(&mut self, target: &str) -> Asked {
        let asked = self.asked().await;
        let uri = asked.request.uri().to_string();
        assert!(uri.starts_with(target), "asked for {uri}, not {target}");
        asked
    }

    /// Returns whether no request comes for a while.
    pub(super) async fn is_idle(&mut self) -> bool {
        tokio::time::timeout(Duration::from_mins(1), self.asked.recv()).await.is_err()
    }
}

impl Asked {
    /// Answers with a body that is to come.
    pub(super) fn answer(self, code: u16) -> Sending {
        let (sender, pieces) = mpsc::unbounded_channel::<String>();
        let pieces = stream::unfold(pieces, |mut pieces| async move {
            let piece = pieces.recv().await?;
            assert_ne!(piece, PANIC, "on purpose");
            Some((Ok(Frame::data(Bytes::from(piece))), pieces))
        });
        let body = StreamBody::new(Box::pin(pieces) as stream::BoxStream<'static, _>);
        let response = Response::builder().status(code).body(body).expect("a response");
        assert!(self.answer.send(response).is_ok(), "the client has gone");
        Sending(sender)
    }

    /// Answers with these objects as the start of a watch.
    pub(super) fn answer_with(self, names: &[&str]) -> Sending {
        let sending = self.answer(200);
        for (name, version) in names.iter().zip(1..) {
            sending.event("ADDED", name, version);
        }
        sending.bookmark();
        sending
    }
}

impl Sending {
    pub(super) fn send(&self, piece: &str) {
        assert!(self.0.send(piece.to_owned()).is_ok(), "the client has gone");
    }

    pub(super) fn event(&self, event: &str, name: &str, version: u64) {
        let metadata = format!(r#"{{"name":"{name}","namespace":"n","resourceVersion":"{version}"}}"#);
        self.send(&format!("{{\"type\":\"{event}\",\"object\":{{\"metadata\":{metadata}}}}}\n"));
    }

    pub(super) fn bookmark(&self) {
        let end = r#"{"k8s.io/initial-events-end":"true"}"#;
        let metadata = format!(r#"{{"resourceVersion":"100","annotations":{end}}}"#);
        self.send(&format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{metadata}}}}}\n"));
    }

    /// Waits until the client no longer reads.
    pub(super) async fn dropped(&self) {
        self.0.closed().await;
    }
}
