//! Requests and replies: TLS, time limits, redirects, and repeated requests.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE,
};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::{sleep, timeout};

use super::challenge::Challenge;
use super::{RegistryOptions, answer};
use crate::{Error, Result};

/// How often a request is repeated.
const RETRIES: u32 = 3;

/// The longest pause before a request is repeated.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The most redirects of a request.
const MOST_REDIRECTS: u32 = 5;

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The slowest upload that a request waits for, in bytes per second.
const SLOWEST_UPLOAD: u64 = 32 << 10;

/// The largest reply with an error, in bytes.
const LARGEST_ERROR: u64 = 64 << 10;

/// The body of an error whose body cannot be read.
const NO_BODY: Vec<u8> = Vec::new();

/// The size of the parts in which a file is read, in bytes.
const PART: usize = 64 << 10;

/// The body of a request, which can be sent several times.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Bytes),
    /// A file with the size in bytes.
    File(PathBuf, u64),
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

impl Content {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, size) => *size,
        }
    }

    fn body(&self) -> Body {
        match self {
            Self::Bytes(bytes) => Full::new(bytes.clone()).map_err(|never| match never {}).boxed_unsync(),
            Self::File(path, _) => {
                let frames = stream::try_unfold((path.clone(), None), |(path, file)| async move {
                    let mut file = file.map_or_else(|| File::open(&path), Ok)?;
                    let mut part = vec![0; PART];
                    let size = file.read(&mut part)?;
                    part.truncate(size);
                    Ok((size > 0).then(|| (Frame::data(Bytes::from(part)), (path, Some(file)))))
                });
                StreamBody::new(frames).boxed_unsync()
            }
        }
    }
}

/// A request, which can be sent several times.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) content: Content,
    pub(super) authorization: Option<HeaderValue>,
}

impl Call {
    pub(super) fn new(method: Method, uri: Uri) -> Self {
        Self { method, uri, headers: Vec::new(), content: Content::Bytes(Bytes::new()), authorization: None }
    }

    pub(super) fn accept(mut self, media_types: &'static str) -> Self {
        self.headers.push((ACCEPT, HeaderValue::from_static(media_types)));
        self
    }

    pub(super) fn body(self, media_type: &str, body: Bytes) -> Self {
        self.content(media_type, Content::Bytes(body))
    }

    pub(super) fn content(mut self, media_type: &str, content: Content) -> Self {
        self.headers.extend(HeaderValue::from_str(media_type).ok().map(|value| (CONTENT_TYPE, value)));
        self.content = content;
        self
    }

    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    fn request(&self) -> Result<Request<Body>> {
        let mut request = Request::new(self.content.body());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("windlass/", env!("CARGO_PKG_VERSION"))));
        headers.extend(self.headers.iter().cloned());
        if let Content::File(_, size) = self.content {
            headers.insert(CONTENT_LENGTH, size.into());
        }
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        if self.uri.host().is_none() {
            return Err(Error::Invalid(format!("{} is no address of a registry", self.uri)));
        }
        Ok(request)
    }

    fn what(&self) -> String {
        format!("{} {}", self.method, without_query(&self.uri))
    }
}

/// Returns an address without the query, which may have a signature.
pub(super) fn without_query(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}{}", uri.scheme_str().unwrap_or("https"), uri.path())
}

/// A request without a reply.
#[derive(Debug)]
pub(super) struct Failure {
    what: String,
    message: String,
    is_connect: bool,
}

impl Failure {
    pub(super) fn new(what: &str, message: String) -> Self {
        Self { what: what.to_owned(), message, is_connect: false }
    }

    /// Returns whether there was no connection.
    pub(super) fn is_connect(&self) -> bool {
        self.is_connect
    }

    pub(super) fn into_error(self) -> Error {
        Error::Unavailable(format!("{}: {}", self.what, self.message))
    }

    /// Makes an error that names the ways to trust a registry.
    pub(super) fn with_hint(self) -> Error {
        let message = &self.message;
        let hint = if message.contains("certificate") {
            "; trust the registry's CA with --ca-file"
        } else if message.contains("InvalidContentType") || message.contains("corrupt message") {
            "; the registry speaks plain HTTP: allow plain HTTP with --plain-http, or name the registry in windlass.toml, \
             [image] insecure-registries"
        } else {
            ""
        };
        Error::Unavailable(format!("{}: {message}{hint}", self.what))
    }
}

type Https = HttpsConnector<HttpConnector>;

/// A client of HTTP.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client<Https, Body>,
    back_off: Duration,
    timeout: Duration,
}

impl Transport {
    pub(super) fn new(options: &RegistryOptions) -> Result<Self> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT.min(options.timeout)));
        http.set_nodelay(true);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls(options)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).build(https);
        Ok(Self { client, back_off: options.back_off, timeout: options.timeout })
    }

    /// Sends a request. Follows redirects, and repeats the request if the registry is overloaded or fails.
    pub(super) async fn send(&self, call: &Call) -> Result<Reply> {
        let mut pause = self.back_off;
        for _ in 0..RETRIES {
            let wait = match self.follow(call).await? {
                Ok(reply) if !is_temporary(reply.status()) => return Ok(reply),
                Ok(reply) => reply.retry_after().unwrap_or(pause),
                Err(_) => pause,
            };
            tracing::debug!(request = call.what(), pause = ?wait, "repeating a request to a registry");
            sleep(wait.min(LONGEST_PAUSE)).await;
            pause *= 2;
        }
        self.follow(call).await?.map_err(Failure::into_error)
    }

    /// Sends a request and follows its redirects.
    async fn follow(&self, call: &Call) -> Result<Result<Reply, Failure>> {
        let mut call = call.clone();
        for _ in 0..MOST_REDIRECTS {
            let reply = match self.once(&call).await {
                Ok(reply) => reply,
                Err(failure) => return Ok(Err(failure)),
            };
            let is_read = matches!(call.method, Method::GET | Method::HEAD);
            let Some(location) = reply.redirect().filter(|_| is_read) else { return Ok(Ok(reply)) };
            let target = resolve(&call.uri, location)?;
            if target.authority() != call.uri.authority() {
                call.authorization = None;
            }
            call.uri = target;
        }
        Err(Error::Unavailable(format!("{}: more than {MOST_REDIRECTS} redirects", call.what())))
    }

    /// Sends a request once.
    pub(super) async fn once(&self, call: &Call) -> Result<Reply, Failure> {
        let request = call.request().map_err(|error| Failure::new(&call.what(), error.to_string()))?;
        let limit = self.timeout + Duration::from_secs(call.content.size() / SLOWEST_UPLOAD);
        match timeout(limit, self.client.request(request)).await {
            Err(_) => Err(Failure::new(&call.what(), format!("no answer in {} s", limit.as_secs()))),
            Ok(Err(error)) => {
                let is_connect = error.is_connect();
                Err(Failure { what: call.what(), message: deepest(&error), is_connect })
            }
            Ok(Ok(response)) => {
                Ok(Reply { what: call.what(), uri: call.uri.clone(), response, timeout: self.timeout })
            }
        }
    }
}

/// Returns the causes of an error, without those whose text says nothing about the network.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        message = cause.to_string();
        next = cause.source();
    }
    message
}

fn tls(options: &RegistryOptions) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for file in &options.ca_files {
        let certificates =
            CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let certificates = certificates.map_err(|error| {
            Error::Invalid(format!("cannot read certificates from {}: {error}", file.display()))
        })?;
        if roots.add_parsable_certificates(certificates).0 == 0 {
            return Err(Error::Invalid(format!("{} has no certificate", file.display())));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::invalid)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

/// Resolves the address of a header `Location`. An address of HTTPS is not left for plain HTTP.
pub(super) fn resolve(base: &Uri, location: &str) -> Result<Uri> {
    let origin = || {
        format!(
            "{}://{}",
            base.scheme_str().unwrap_or("https"),
            base.authority().map_or("", |it| it.as_str())
        )
    };
    let text = if location.contains("://") {
        location.to_owned()
    } else if location.starts_with('/') {
        format!("{}{location}", origin())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{}{folder}/{location}", origin())
    };
    let target: Uri =
        text.parse().map_err(|_| Error::invalid("the registry answered with an invalid Location"))?;
    let is_web = matches!(target.scheme_str(), Some("http" | "https"));
    if !is_web || (base.scheme_str() == Some("https") && target.scheme_str() != Some("https")) {
        return Err(Error::Refused(format!(
            "the registry redirects from {} to {}",
            origin(),
            without_query(&target)
        )));
    }
    Ok(target)
}

/// A reply of a registry.
#[derive(Debug)]
pub(super) struct Reply {
    what: String,
    uri: Uri,
    response: Response<Incoming>,
    timeout: Duration,
}

impl Reply {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Returns the address of the header `Location`.
    pub(super) fn location(&self) -> Result<Uri> {
        let location = self.header(LOCATION.as_str()).ok_or_else(|| {
            Error::Refused(format!("{}: the registry answered without a Location", self.what))
        })?;
        resolve(&self.uri, location)
    }

    fn redirect(&self) -> Option<&str> {
        let is_redirect = matches!(self.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        self.header(LOCATION.as_str()).filter(|_| is_redirect)
    }

    fn retry_after(&self) -> Option<Duration> {
        self.header(RETRY_AFTER.as_str())?.trim().parse().ok().map(Duration::from_secs)
    }

    pub(super) fn challenges(&self) -> Vec<Challenge> {
        let headers = self.response.headers().get_all(WWW_AUTHENTICATE);
        headers.iter().filter_map(|value| Challenge::parse(value.to_str().ok()?)).collect()
    }

    /// Returns the reply if its status is a success. Else returns an error with the words of the registry.
    pub(super) async fn successful(self) -> Result<Self> {
        if self.status().is_success() { Ok(self) } else { Err(self.into_error().await) }
    }

    pub(super) async fn into_error(self) -> Error {
        let (what, status) = (self.what.clone(), self.status());
        let body = self.bytes(LARGEST_ERROR).await.unwrap_or(NO_BODY);
        answer::error(&what, status, &body)
    }

    /// Returns the whole body. Fails if the body is larger than `limit` bytes.
    pub(super) async fn bytes(mut self, limit: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(part) = self.part().await? {
            bytes.extend_from_slice(&part);
            if bytes.len() as u64 > limit {
                return Err(Error::Invalid(format!("{}: the reply is larger than {limit} bytes", self.what)));
            }
        }
        Ok(bytes)
    }

    /// Returns the next part of the body.
    pub(super) async fn part(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = timeout(self.timeout, self.response.body_mut().frame()).await;
            let cut =
                |why: String| Error::Unavailable(format!("{}: the reply ended early: {why}", self.what));
            match frame {
                Err(_) => return Err(cut(format!("no data in {} s", self.timeout.as_secs()))),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(cut(deepest(&error))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}
