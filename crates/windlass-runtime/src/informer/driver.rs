//! Drives a reflector: sends the reflector's requests, and feeds the reflector with the responses.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::Response;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use windlass_cache::{
    InformerCore, ListWatch, Reflector, ReflectorAction, ReflectorConfig, ReflectorId, ScanOptions,
};

use super::{
    log::WatchLog,
    pipeline::{Pipeline, Turn},
    request::Collection,
    undecodable::UndecodableObjects,
};
use crate::{
    client::{ApiClient, ResponseBody, retry_after},
    error::chain,
    supervisor::Recovery,
};

/// A watch of an informer: the source of a [`Driver`], at the start and after a panic.
#[derive(Clone)]
pub(super) struct WatchSource {
    pub(super) client: ApiClient,
    pub(super) collection: Collection,
    pub(super) config: ReflectorConfig,
    pub(super) scan: ScanOptions,
    pub(super) informer: InformerCore,
    pub(super) log: Arc<WatchLog>,
    pub(super) source: ReflectorId,
    pub(super) undecodable: Arc<UndecodableObjects>,
    pub(super) turn: Turn,
    pub(super) tasks: TaskTracker,
}

impl WatchSource {
    /// Watches for ever. A run begins with a list: a restart after a panic leaves no stale object.
    pub(super) async fn run(self, recovery: Recovery) {
        let Self { client, collection, config, scan, informer, log, source, undecodable, turn, tasks } = self;
        let pipeline = Pipeline::new(turn, tasks, informer.clone(), source, &scan).await;
        // The pipeline shares the text of the objects.
        let scan = ScanOptions { one_kind: false, ..scan };
        let reflector = Reflector::new(config, &scan, Instant::now().into_std());
        let first_list = Some(FirstList { recovery, log, source });
        Driver { client, collection, reflector, informer, pipeline, undecodable, first_list }.run().await;
    }
}

/// A reflector and the reflector's connection.
struct Driver {
    client: ApiClient,
    collection: Collection,
    reflector: Reflector,
    informer: InformerCore,
    pipeline: Pipeline,
    undecodable: Arc<UndecodableObjects>,
    /// Until the first list has ended.
    first_list: Option<FirstList>,
}

/// The first list of a run, which ends the faults and failures of the run before.
struct FirstList {
    recovery: Recovery,
    log: Arc<WatchLog>,
    source: ReflectorId,
}

impl FirstList {
    fn end(&self) {
        self.log.listed(self.source);
        self.recovery.complete();
    }
}

/// The exchange that is under way.
enum Exchange {
    Nothing,
    Sending(BoxFuture<'static, Result<Response<ResponseBody>, String>>),
    Reading(ResponseBody),
}

/// The next result of the exchange.
enum Arrival {
    Response(Response<ResponseBody>),
    Piece(Bytes),
    End(Option<String>),
}

/// The largest number of pieces that are applied together, if the pieces have arrived already.
const TOGETHER: usize = 4;

/// The silence of a watch after which the driver takes the outcome of a batch that another task applies.
const OUTCOME_DELAY: Duration = Duration::from_secs(1);

impl Driver {
    async fn run(mut self) {
        let mut exchange = Exchange::Nothing;
        loop {
            let action = self.reflector.poll(Instant::now().into_std(), self.pipeline.changes());
            self.pipeline.apply().await;
            let until = match action {
                ReflectorAction::Send(wanted) => {
                    exchange = self.send(&wanted);
                    continue;
                }
                ReflectorAction::Receive { until } => until,
                ReflectorAction::Sleep { until } => {
                    exchange = Exchange::Nothing;
                    until
                }
            };
            let until = Instant::from_std(until);
            // Not at the end of each batch, which would wake this task for each batch of a busy watch.
            let until =
                if self.pipeline.is_applying() { until.min(Instant::now() + OUTCOME_DELAY) } else { until };
            tokio::select! {
                biased;
                arrival = next(&mut exchange) => self.arrived(arrival, &mut exchange).await,
                () = sleep_until(until) => self.pipeline.take_outcome().await,
                () = self.undecodable.list_due(self.informer.store()) => self.list_again().await,
                () = self.informer.store().index_wanted() => self.pipeline.flush().await,
            }
        }
    }

    /// Lists everything again, because objects do not decode.
    async fn list_again(&mut self) {
        let reason = "objects do not decode; the server may serve them with other content by now";
        self.reflector.list_again(Instant::now().into_std(), reason, self.pipeline.changes());
        self.pipeline.apply().await;
    }

    fn send(&self, wanted: &ListWatch) -> Exchange {
        tracing::debug!(path = self.collection.path(), request = %wanted, "list and watch");
        let request = match self.collection.request(wanted) {
            Ok(request) => request,
            Err(error) => return Exchange::Sending(async move { Err(error.to_string()) }.boxed()),
        };
        let client = self.client.clone();
        Exchange::Sending(async move { client.send(request).await.map_err(|error| chain(&error)) }.boxed())
    }

    /// Reads an arrival, and the pieces that have arrived already.
    async fn arrived(&mut self, arrival: Arrival, exchange: &mut Exchange) {
        let mut is_piece = self.read(arrival, exchange);
        for _ in 1..TOGETHER {
            let Some(arrival) = is_piece.then(|| next(exchange).now_or_never()).flatten() else { break };
            is_piece = self.read(arrival, exchange);
        }
        self.pipeline.apply().await;
        if self.reflector.has_listed()
            && let Some(first_list) = self.first_list.take()
        {
            self.pipeline.flush().await;
            first_list.end();
        }
    }

    /// Returns whether the arrival is a piece.
    fn read(&mut self, arrival: Arrival, exchange: &mut Exchange) -> bool {
        let (now, changes) = (Instant::now().into_std(), self.pipeline.changes());
        match arrival {
            Arrival::Piece(piece) => {
                self.reflector.on_bytes(now, piece, changes);
                return true;
            }
            Arrival::Response(response) => {
                let wait = retry_after(response.headers());
                self.reflector.on_response(now, response.status().as_u16(), wait, changes);
                *exchange = Exchange::Reading(response.into_body());
            }
            Arrival::End(broken) => {
                *exchange = Exchange::Nothing;
                self.reflector.on_end(now, broken.as_deref(), changes);
            }
        }
        false
    }
}

/// Waits for the next result of the exchange; for ever without an exchange.
async fn next(exchange: &mut Exchange) -> Arrival {
    match exchange {
        Exchange::Nothing => std::future::pending().await,
        Exchange::Sending(answer) => match answer.await {
            Ok(response) => Arrival::Response(response),
            Err(reason) => Arrival::End(Some(reason)),
        },
        Exchange::Reading(body) => loop {
            match body.frame().await {
                None => return Arrival::End(None),
                Some(Err(error)) => return Arrival::End(Some(chain(error.as_ref()))),
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Arrival::Piece(piece);
                    }
                }
            }
        },
    }
}
