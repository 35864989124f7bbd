//! A server that sends prepared bytes: lists, pages, initial events and changes of a kind. The server does as
//! little work as possible: the benchmarks measure the client.

use crate::corpus::{Corpus, Kind, Objects, Source};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

type Body = BoxBody<Bytes, Infallible>;

/// The size of the chunks that are passed to hyper, in bytes.
const CHUNK: usize = 256 * 1024;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum)]
    kind: Kind,
    #[arg(long)]
    objects: usize,
    /// Number of changes sent on the first watch that does not expire, in turn for each object.
    #[arg(long, default_value_t = 0)]
    events: usize,
    /// Ends the first watch with 410 Gone after this number of seconds.
    #[arg(long)]
    expire_after: Option<u64>,
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// `uniform`, `diverse` or a file of JSON lines.
    #[arg(long, default_value = "uniform")]
    corpus: Source,
    /// Serves TLS and writes the certificate to this file.
    #[arg(long)]
    tls: Option<PathBuf>,
}

struct ByteServer {
    kind: Kind,
    objects: Objects,
    /// The number of changes.
    events: usize,
    initial: Bytes,
    changes: Bytes,
    expire_after: Option<Duration>,
    watches: AtomicUsize,
}

/// Runs the server until killed. Prints the address when the server is ready.
pub(crate) fn run(args: &Args) {
    let server = Arc::new(ByteServer::new(args));
    eprintln!("{} objects, {} bytes", server.objects.len(), server.objects.bytes());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("tokio starts");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let tls = args.tls.as_ref().map(crate::tls::acceptor);
        let scheme = if tls.is_some() { "https" } else { "http" };
        println!("{scheme}://{address} {} {}", server.objects.len(), server.events);
        loop {
            let Ok((connection, _)) = listener.accept().await else { continue };
            let _ = connection.set_nodelay(true);
            let (server, tls) = (Arc::clone(&server), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => serve(server, connection).await,
                    Some(tls) => {
                        if let Ok(connection) = tls.accept(connection).await {
                            serve(server, connection).await;
                        }
                    }
                }
            });
        }
    });
}

async fn serve(server: Arc<ByteServer>, connection: impl AsyncRead + AsyncWrite + Unpin + 'static) {
    let service = hyper::service::service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.answer(&request)) }
    });
    // An error only means that the client hung up.
    let _ =
        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(connection), service).await;
}

impl ByteServer {
    fn new(args: &Args) -> Self {
        let corpus = Corpus::new(&args.corpus, args.kind, args.objects, args.events, args.seed);
        let events = match &args.corpus {
            Source::File(_) => args.events.min(corpus.changes.len()),
            Source::Uniform | Source::Diverse => args.events,
        };
        if let Some(diversity) = corpus.diversity {
            eprintln!("{} workloads, {} structures", diversity.workloads, diversity.structures);
        }
        Self {
            kind: args.kind,
            initial: lines("ADDED", &corpus.objects, corpus.objects.len()),
            changes: lines("MODIFIED", &corpus.changes, events),
            events,
            expire_after: args.expire_after.map(Duration::from_secs),
            watches: AtomicUsize::new(0),
            objects: corpus.objects,
        }
    }

    fn answer(self: &Arc<Self>, request: &Request<Incoming>) -> Response<Body> {
        let uri = request.uri();
        if uri.path() != self.kind.path() {
            let status =
                r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
            return respond(404, vec![Bytes::from_static(status.as_bytes())]);
        }
        let query: HashMap<&str, &str> =
            uri.query().unwrap_or("").split('&').filter_map(|pair| pair.split_once('=')).collect();
        let is = |name: &str| matches!(query.get(name), Some(&("true" | "1")));
        if is("watch") { self.watch(is("sendInitialEvents")) } else { self.list(&query) }
    }

    fn list(&self, query: &HashMap<&str, &str>) -> Response<Body> {
        let number = |name: &str| query.get(name).and_then(|value| value.parse::<usize>().ok());
        let start = number("continue").unwrap_or(0).min(self.objects.len());
        let limit = number("limit").filter(|&limit| limit > 0).unwrap_or(usize::MAX);
        let end = start.saturating_add(limit).min(self.objects.len());
        let next = if end < self.objects.len() { format!(r#","continue":"{end}""#) } else { String::new() };
        let kind = self.kind;
        let head = format!(
            r#"{{"kind":"{}List","apiVersion":"{}","metadata":{{"resourceVersion":"{}"{next}}},"items":["#,
            kind.kind(),
            kind.api_version(),
            Corpus::revision(),
        );
        let items = Bytes::copy_from_slice(self.objects.items(start..end));
        respond(200, vec![head.into(), items, Bytes::from_static(b"]}\n")])
    }

    fn watch(self: &Arc<Self>, initial: bool) -> Response<Body> {
        let mut parts = Vec::new();
        if initial {
            let kind = self.kind;
            let end = format!(
                concat!(
                    r#"{{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}","#,
                    r#""creationTimestamp":null,"annotations":{{"k8s.io/initial-events-end":"true"}}}},"spec":{{}}}}}}"#,
                    "\n"
                ),
                kind.kind(),
                kind.api_version(),
                Corpus::revision()
            );
            parts.extend([self.initial.clone(), end.into()]);
        }
        let before = self.watches.fetch_add(1, Ordering::Relaxed);
        let end = self.expire_after.filter(|_| before == 0);
        if before == usize::from(self.expire_after.is_some()) {
            parts.push(self.changes.clone());
        }
        let tail = stream::once(async move {
            match end {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            Bytes::from_static(GONE.as_bytes())
        });
        body(200, stream::iter(chunks(parts)).chain(tail))
    }
}

pub(crate) const GONE: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}}"#,
    "\n"
);

fn lines(event: &str, corpus: &Objects, count: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(corpus.bytes() + 40 * corpus.len());
    for number in 0..count {
        out.extend_from_slice(format!(r#"{{"type":"{event}","object":"#).as_bytes());
        out.extend_from_slice(corpus.object(number % corpus.len()));
        out.extend_from_slice(b"}\n");
    }
    out.freeze()
}

fn chunks(parts: Vec<Bytes>) -> impl Iterator<Item = Bytes> {
    parts.into_iter().flat_map(|part| {
        (0..part.len()).step_by(CHUNK).map(move |at| part.slice(at..(at + CHUNK).min(part.len())))
    })
}

fn respond(status: u16, parts: Vec<Bytes>) -> Response<Body> {
    body(status, stream::iter(chunks(parts)))
}

fn body(status: u16, chunks: impl futures::Stream<Item = Bytes> + Send + Sync + 'static) -> Response<Body> {
    let body = StreamBody::new(chunks.map(|chunk| Ok(Frame::data(chunk))));
    let mut response = Response::new(BodyExt::boxed(body));
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
