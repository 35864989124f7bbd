//! A server that sends prepared bytes: lists, pages, initial events and changes of a kind. The server does as
//! little work as possible: the benchmarks measure the client.

use crate::corpus::{Corpus, Kind, Objects, Source};
use crate::informer::WATCHES;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use memchr::memmem;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

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
    /// Serves this number of custom resources besides. A selector [`PART`] selects a part of a kind.
    #[arg(long, default_value_t = 0)]
    others: usize,
    /// Sends this number of changes a second, and not all changes at once, from a second after all watches have sent the initial objects.
    /// The resource version of a change is then the time in microseconds since 1970.
    #[arg(long, default_value_t = 0)]
    pace: u64,
    /// Serves TLS and writes the certificate to this file.
    #[arg(long)]
    tls: Option<PathBuf>,
}

/// The label of a selector for a part of the objects: `part=3.30` selects the fourth of thirty parts.
const PART: &str = "part";

struct ByteServer {
    kinds: Vec<Collection>,
    /// The number of changes.
    events: usize,
    pace: u64,
    expire_after: Option<Duration>,
    /// The number of watches of all objects of the first kind so far.
    watches: AtomicUsize,
    /// The number of watches that have sent the initial objects.
    listed: watch::Sender<usize>,
}

/// The objects of a kind.
struct Collection {
    kind: Kind,
    objects: Objects,
    /// The objects as watch events.
    initial: Lines,
    changes: Lines,
}

/// The times at which changes are sent.
struct Pace {
    ticks: tokio::time::Interval,
    begin: tokio::time::Instant,
    /// The time since 1970 at `begin`.
    begin_since_epoch: Duration,
}

impl Pace {
    fn new(per_second: u64) -> Self {
        let begin_since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begin = tokio::time::Instant::now();
        let ticks = tokio::time::interval_at(begin, Duration::from_secs(1) / per_second.max(1) as u32);
        Self { ticks, begin, begin_since_epoch }
    }

    /// Waits until the next change is due, and returns the time since 1970. A change that waits for a slow client keeps the time at which
    /// the change was due; timers alone are up to a millisecond late.
    async fn next(&mut self) -> Duration {
        let due = self.ticks.tick().await;
        let is_late = due.elapsed() > self.ticks.period();
        let at = if is_late { due - self.begin } else { self.begin.elapsed() };
        self.begin_since_epoch + at
    }
}

/// The lines of a watch.
struct Lines {
    text: Bytes,
    ends: Vec<usize>,
}

/// Runs the server until killed. Prints the address when the server is ready.
pub(crate) fn run(args: &Args) {
    let server = match ByteServer::new(args) {
        Ok(server) => Arc::new(server),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    for Collection { objects, .. } in &server.kinds {
        eprintln!("{} objects, {} bytes", objects.len(), objects.bytes());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("tokio starts");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let tls = args.tls.as_ref().map(crate::tls::acceptor);
        let scheme = if tls.is_some() { "https" } else { "http" };
        println!("{scheme}://{address} {} {}", server.kinds[0].objects.len(), server.events);
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
    /// # Errors
    /// There are changes to send, and no object that changes.
    fn new(args: &Args) -> Result<Self, String> {
        let prepared = args.events.min(args.objects);
        let corpus = Corpus::new(&args.corpus, args.kind, args.objects, prepared, args.seed);
        if args.events > 0 && corpus.changes.is_empty() {
            let Args { events, objects, .. } = args;
            return Err(format!(
                "cannot send {events} changes of {objects} objects: the corpus has no change; give more objects, a \
                 file with events of the type MODIFIED, or no `--events`"
            ));
        }
        let events = match &args.corpus {
            Source::File(_) => args.events.min(corpus.changes.len()),
            Source::Uniform | Source::Diverse => args.events,
        };
        if let Some(diversity) = corpus.diversity {
            eprintln!("{} workloads, {} structures", diversity.workloads, diversity.structures);
        }
        let mut kinds = vec![Collection::new(args.kind, corpus.objects, &corpus.changes)];
        if args.others > 0 {
            let others = Objects::uniform(Kind::Databases, args.others, args.seed);
            kinds.push(Collection::new(Kind::Databases, others, &Objects::default()));
        }
        Ok(Self {
            kinds,
            events,
            pace: args.pace,
            expire_after: args.expire_after.map(Duration::from_secs),
            watches: AtomicUsize::new(0),
            listed: watch::Sender::new(0),
        })
    }

    fn answer(self: &Arc<Self>, request: &Request<Incoming>) -> Response<Body> {
        let uri = request.uri();
        let Some(number) = self.kinds.iter().position(|kind| kind.kind.path() == uri.path()) else {
            let status =
                r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
            return respond(404, vec![Bytes::from_static(status.as_bytes())]);
        };
        let query: HashMap<&str, &str> =
            uri.query().unwrap_or("").split('&').filter_map(|pair| pair.split_once('=')).collect();
        let is = |name: &str| matches!(query.get(name), Some(&("true" | "1")));
        if is("watch") {
            self.watch(number, &query, is("sendInitialEvents"))
        } else {
            self.kinds[number].list(&query)
        }
    }

    fn watch(self: &Arc<Self>, number: usize, query: &HashMap<&str, &str>, initial: bool) -> Response<Body> {
        let collection = &self.kinds[number];
        let range = collection.selected(query);
        let mut parts = Vec::new();
        if initial {
            parts.extend([collection.initial.range(range.clone()), collection.end().into()]);
        }
        let has_changes = number == 0 && range.len() == collection.objects.len();
        let before = if has_changes { self.watches.fetch_add(1, Ordering::Relaxed) } else { usize::MAX };
        let end = self.expire_after.filter(|_| before == 0);
        let has_changes = before == usize::from(self.expire_after.is_some());
        let changes = if has_changes { self.events } else { 0 };
        let tail = stream::once(async move {
            match end {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            Bytes::from_static(GONE.as_bytes())
        });
        if self.pace > 0 {
            let initial = stream::iter(chunks(parts)).chain(self.initial_sent());
            return body(200, initial.chain(self.paced(changes)).chain(tail));
        }
        if changes <= collection.changes.len() {
            parts.push(collection.changes.range(0..changes));
            return body(200, stream::iter(chunks(parts)).chain(tail));
        }
        body(200, stream::iter(chunks(parts)).chain(self.repeated(changes)).chain(tail))
    }

    /// Counts a watch whose initial objects were sent. Returns no bytes.
    fn initial_sent(self: &Arc<Self>) -> impl futures::Stream<Item = Bytes> + use<> {
        let server = self.clone();
        let count = async move {
            server.listed.send_modify(|listed| *listed += 1);
            None
        };
        stream::once(count).filter_map(std::future::ready)
    }

    /// Completes when all watches have sent the initial objects, and the client has had a second to store the objects.
    async fn all_listed(&self) {
        let watches = if self.kinds.len() == 1 { 1 } else { WATCHES };
        let _ = self.listed.subscribe().wait_for(|listed| *listed >= watches).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    /// Returns changes at the pace of the server.
    fn paced(self: &Arc<Self>, count: usize) -> impl futures::Stream<Item = Bytes> + use<> {
        let server = self.clone();
        let begin = async move {
            server.all_listed().await;
            Pace::new(server.pace)
        };
        let server = self.clone();
        let paced = move |pace: Pace| {
            stream::unfold((server.clone(), pace, 0), move |(server, mut pace, number)| async move {
                if number == count {
                    return None;
                }
                let time = pace.next().await;
                let mut line = BytesMut::new();
                server.kinds[0].changes.put_at_revision(&mut line, number, time.as_micros());
                Some((line.freeze(), (server, pace, number + 1)))
            })
        };
        stream::once(begin).flat_map(paced)
    }

    /// Returns more changes than there are, with ascending resource versions.
    fn repeated(self: &Arc<Self>, count: usize) -> impl futures::Stream<Item = Bytes> + use<> {
        const TOGETHER: usize = 32;
        let server = self.clone();
        stream::iter((0..count).step_by(TOGETHER)).map(move |from| {
            let changes = &server.kinds[0].changes;
            let mut lines = BytesMut::with_capacity(CHUNK);
            for number in from..count.min(from + TOGETHER) {
                let revision = u128::from(Corpus::revision()) + 1 + number as u128;
                changes.put_at_revision(&mut lines, number, revision);
            }
            lines.freeze()
        })
    }
}

impl Collection {
    fn new(kind: Kind, objects: Objects, changes: &Objects) -> Self {
        let (initial, changes) = (Lines::new("ADDED", &objects), Lines::new("MODIFIED", changes));
        Self { kind, objects, initial, changes }
    }

    /// Returns the range of the objects that the request selects.
    fn selected(&self, query: &HashMap<&str, &str>) -> Range<usize> {
        let all = self.objects.len();
        let selector = query.get("labelSelector").map_or("", |selector| selector);
        let part = selector.replace("%3D", "=").replace("==", "=");
        let part = part.strip_prefix(PART).and_then(|part| part.strip_prefix('=')?.split_once('.'));
        let numbers = part.and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
        numbers.map_or(0..all, |(part, parts): (usize, usize)| all * part / parts..all * (part + 1) / parts)
    }

    fn list(&self, query: &HashMap<&str, &str>) -> Response<Body> {
        let number = |name: &str| query.get(name).and_then(|value| value.parse::<usize>().ok());
        let Range { start, end: last } = self.selected(query);
        let start = number("continue").unwrap_or(start).min(last);
        let limit = number("limit").filter(|&limit| limit > 0).unwrap_or(usize::MAX);
        let end = start.saturating_add(limit).min(last);
        let next = if end < last { format!(r#","continue":"{end}""#) } else { String::new() };
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

    /// Returns the bookmark at the end of the initial events.
    fn end(&self) -> String {
        let kind = self.kind;
        format!(
            concat!(
                r#"{{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}","#,
                r#""creationTimestamp":null,"annotations":{{"k8s.io/initial-events-end":"true"}}}},"spec":{{}}}}}}"#,
                "\n"
            ),
            kind.kind(),
            kind.api_version(),
            Corpus::revision()
        )
    }
}

pub(crate) const GONE: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}}"#,
    "\n"
);

impl Lines {
    fn new(event: &str, objects: &Objects) -> Self {
        let mut text = BytesMut::with_capacity(objects.bytes() + 40 * objects.len());
        let mut ends = Vec::with_capacity(objects.len());
        for number in 0..objects.len() {
            text.extend_from_slice(format!(r#"{{"type":"{event}","object":"#).as_bytes());
            text.extend_from_slice(objects.object(number));
            text.extend_from_slice(b"}\n");
            ends.push(text.len());
        }
        Self { text: text.freeze(), ends }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a line with another resource version. After the last line, the first line follows.
    fn put_at_revision(&self, lines: &mut BytesMut, number: usize, revision: u128) {
        const VERSION: &[u8] = br#""resourceVersion":""#;
        let number = number % self.len();
        let line = self.range(number..number + 1);
        let place = memmem::find(&line, VERSION);
        let (head, tail) = line.split_at(place.expect("an object has a resource version") + VERSION.len());
        let digits = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
        lines.extend_from_slice(head);
        lines.extend_from_slice(revision.to_string().as_bytes());
        lines.extend_from_slice(&tail[digits..]);
    }

    fn range(&self, lines: Range<usize>) -> Bytes {
        let place = |number: usize| number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.slice(place(lines.start)..place(lines.end))
    }
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
