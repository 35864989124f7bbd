//! One exchange with the API server: retries, limits, metrics, and the record of a write.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::{Instant, timeout};

use super::{
    api_client::Reply,
    body::ResponseBody,
    call::Call,
    detached::{OnUnknownOutcome, Progress},
    refusal::with_retry_after,
    retry::{Repeatable, retry_after},
    service::ApiService,
    traits::RequestTraits,
    transport::Outgoing,
};
use crate::{
    error::{BoxError, Error, Result},
    read_your_writes::{Written, changes_objects, is_write, note_any},
};

/// The limit for reading an object after a write that does not answer with the object. The caller waits for the answer to the write meanwhile.
const READ_AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// One exchange with the API server.
pub(super) struct Exchange {
    service: ApiService,
    progress: Arc<Progress>,
}

impl Exchange {
    pub(super) fn new(service: ApiService, progress: Arc<Progress>) -> Self {
        Self { service, progress }
    }

    /// Runs the exchange of a request of kube's client.
    pub(super) async fn run(self, mut request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let writes = is_write(&request).await;
        let record = self.begin_record(writes, request.method(), request.uri().path());
        let traits = RequestTraits::of(&request);
        let response = self.send_with_retries(&traits, Outgoing::Request(Box::new(request))).await?;
        if writes && response.status().is_success() {
            note_any();
        }
        let Some(record) = record.filter(|_| response.status().is_success()) else {
            return with_retry_after(response).await;
        };
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        self.record(record, &bytes).await;
        Ok(Response::from_parts(parts, ResponseBody::new(Body::from(bytes), None)))
    }

    /// Runs the exchange of a request of the runtime. Reports an unknown outcome of a write, even if the exchange is dropped.
    #[allow(clippy::manual_async_fn, reason = "an `async fn` keeps the arguments twice")]
    pub(super) fn run_call(self, mut call: Call) -> impl Future<Output = Result<Reply>> + Send {
        async move {
            let message = &call.message;
            let writes = changes_objects(&message.method, message.path.query());
            let record = self.begin_record(writes, &message.method, message.path.path());
            let mut outcome = Outcome { on_unknown: call.on_unknown.take(), progress: self.progress.clone() };
            let traits = RequestTraits::of_message(message, call.no_retry);
            let response = self.send_with_retries(&traits, Outgoing::Message(message)).await;
            let reply = Reply::of(response.map_err(Error::of_service)?).await?;
            if !reply.status.is_server_error() {
                outcome.on_unknown = None;
            }
            if writes && reply.status.is_success() {
                note_any();
                if let Some(record) = record {
                    self.record(record, &reply.body).await;
                }
            }
            Ok(reply)
        }
    }

    fn begin_record(&self, writes: bool, method: &http::Method, path: &str) -> Option<Record> {
        let written = if writes { self.service.state.journal.begin(method, path)? } else { return None };
        let again = written.reads_again(path);
        Some(Record { written, again })
    }

    /// Records the response to a write in the write journal.
    async fn record(&self, Record { written, again }: Record, body: &[u8]) {
        let Some(path) = again else { return written.finish(body) };
        // Boxed, because each write keeps the future, and few writes read.
        match Box::pin(self.read(&path)).await {
            Ok(list) => written.finish_read(&list),
            // The write succeeded, and a controller may lack the right to list the objects.
            Err(error) => {
                tracing::debug!(path, %error, "reading the object after a write failed; reads see the write when the watch shows it");
                written.finish(body);
            }
        }
    }

    /// Reads a list, without a retry.
    async fn read(&self, path: &str) -> Result<Bytes, BoxError> {
        let message = Call::read(path.to_owned())?.message;
        let exchange = async {
            let response = self.send_once(&RequestTraits::ONCE, Outgoing::Message(&message)).await?;
            Reply::of(response).await.map_err(BoxError::from)
        };
        let reply = timeout(READ_AGAIN_WITHIN, exchange).await??;
        if reply.status.is_success() {
            Ok(reply.body)
        } else {
            Err(format!("the server answered {}", reply.status).into())
        }
    }

    async fn send_with_retries(
        &self,
        traits: &RequestTraits,
        mut outgoing: Outgoing<'_>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let state = &self.service.state;
        let mut retry = 0;
        loop {
            let again = if traits.repeatable == Repeatable::Never { None } else { outgoing.try_clone() };
            let repeated = (retry > 0).then(|| outgoing.method().clone());
            let response = self.send_once(traits, outgoing).await;
            if let Some(method) = repeated {
                state.count_retry(&method, response.as_ref().ok().map(Response::status));
            }
            let response = response?;
            if response.status().is_success() {
                return Ok(response);
            }
            let wait = again.as_ref().and_then(|_| {
                let asked = retry_after(response.headers());
                state.retry.wait(traits.repeatable, response.status(), asked, retry, state.env.fraction())
            });
            let (Some(again), Some(wait), false) = (again, wait, self.progress.is_dropped()) else {
                return Ok(response);
            };
            self.progress.set_sent(false);
            tracing::debug!(status = response.status().as_u16(), ?wait, retry, "the API server asks to wait");
            drop(response);
            tokio::time::sleep(wait).await;
            outgoing = again;
            retry += 1;
        }
    }

    async fn send_once(
        &self,
        traits: &RequestTraits,
        outgoing: Outgoing<'_>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let state = &self.service.state;
        let method = outgoing.method().clone();
        // The permit is returned when the response begins: an unread body never blocks other requests.
        let permit = if traits.needs_permit { state.connections.acquire().await.ok() } else { None };
        let limit = traits.limit(state.request_timeout);
        let begun = Instant::now();
        let authorization = state.token.as_ref().map(|token| token.header(begun));
        self.progress.set_sent(true);
        let answer = match within(limit, self.service.transport.send(outgoing, authorization)).await {
            Some(answer) => answer,
            None => Err(Error::timeout(limit.unwrap_or_default()).into()),
        };
        drop(permit);
        if let (Some(token), Ok(answer)) = (&state.token, &answer)
            && answer.status() == StatusCode::UNAUTHORIZED
        {
            token.refused(begun);
        }
        if let Ok(answer) = &answer {
            state.warnings.log(&method, answer.headers());
        }
        let latency = (!traits.stream).then(|| begun.elapsed());
        state.count(&method, answer.as_ref().ok().map(Response::status), latency);
        let idle_limit = traits.limit(state.body_timeout);
        Ok(answer?.map(|body| ResponseBody::new(body, idle_limit)))
    }
}

/// The record of a write under way.
struct Record {
    written: Written,
    /// The path of a list of the written object, if the answer to the write is not the object.
    again: Option<String>,
}

/// The outcome of a write. Dropping the value reports a write that was sent.
struct Outcome {
    /// `None` once the outcome is known.
    on_unknown: Option<OnUnknownOutcome>,
    progress: Arc<Progress>,
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if let Some(OnUnknownOutcome(report)) = self.on_unknown.take().filter(|_| self.progress.is_sent()) {
            report();
        }
    }
}

/// Returns the output, or `None` after the limit.
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    match limit {
        Some(limit) => timeout(limit, future).await.ok(),
        None => Some(future.await),
    }
}
