//! Drives a reflector: sends the reflector's requests, and feeds the reflector with the responses.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::Response;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep_until};
use windlass_cache::{
    InformerCore, ListWatch, Reflector, ReflectorAction, ReflectorConfig, ReflectorId, ScanOptions,
};

use super::{request::Collection, undecodable::UndecodableObjects};
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
    pub(super) source: ReflectorId,
    pub(super) undecodable: Arc<UndecodableObjects>,
}

impl WatchSource {
    /// Watches for ever. A run begins with a list: a restart after a panic leaves no stale object.
    pub(super) async fn run(self, recovery: Recovery) {
        let Self { client, collection, config, scan, informer, source, undecodable } = self;
        let reflector = Reflector::new(config, &scan, Instant::now().into_std());
        let recovery = Some(recovery);
        Driver { client, collection, reflector, informer, source, undecodable, recovery }.run().await;
    }
}

/// A reflector and the reflector's connection.
struct Driver {
    client: ApiClient,
    collection: Collection,
    reflector: Reflector,
    informer: InformerCore,
    source: ReflectorId,
    undecodable: Arc<UndecodableObjects>,
    /// Until the first list has ended.
    recovery: Option<Recovery>,
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

impl Driver {
    async fn run(mut self) {
        let mut exchange = Exchange::Nothing;
        loop {
            let now = Instant::now().into_std();
            if self.reflector.has_listed()
                && let Some(recovery) = self.recovery.take()
            {
                recovery.complete();
            }
            let reflector = &mut self.reflector;
            let until = match self.informer.feed(self.source, |store| reflector.poll(now, store)) {
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
            tokio::select! {
                biased;
                arrival = next(&mut exchange) => self.arrived(arrival, &mut exchange),
                () = sleep_until(Instant::from_std(until)) => {}
                () = self.undecodable.list_due(self.informer.store()) => self.list_again(),
                // The next poll of the reflector writes.
                () = self.informer.store().index_wanted() => {}
            }
        }
    }

    /// Lists everything again, because objects do not decode.
    fn list_again(&mut self) {
        let (now, reflector) = (Instant::now().into_std(), &mut self.reflector);
        let reason = "objects do not decode; the server may serve them with other content by now";
        self.informer.feed(self.source, |store| reflector.list_again(now, reason, store));
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

    fn arrived(&mut self, arrival: Arrival, exchange: &mut Exchange) {
        let now = Instant::now().into_std();
        let reflector = &mut self.reflector;
        match arrival {
            Arrival::Response(response) => {
                let code = response.status().as_u16();
                let wait = retry_after(response.headers());
                *exchange = Exchange::Reading(response.into_body());
                self.informer.feed(self.source, |store| reflector.on_response(now, code, wait, store));
            }
            Arrival::Piece(piece) => {
                let more = self.informer.feed(self.source, |store| {
                    reflector.on_bytes(now, piece, store);
                    for _ in 1..TOGETHER {
                        match next(exchange).now_or_never() {
                            Some(Arrival::Piece(piece)) => reflector.on_bytes(now, piece, store),
                            Some(Arrival::End(broken)) => {
                                *exchange = Exchange::Nothing;
                                reflector.on_end(now, broken.as_deref(), store);
                                return false;
                            }
                            Some(Arrival::Response(_)) | None => return false,
                        }
                    }
                    true
                });
                if more && self.informer.has_synced() {
                    let_handlers_run();
                }
            }
            Arrival::End(broken) => {
                *exchange = Exchange::Nothing;
                self.informer.feed(self.source, |store| reflector.on_end(now, broken.as_deref(), store));
            }
        }
        if let Some(warning) = self.informer.memory_warning() {
            tracing::warn!("{warning}");
        }
    }
}

/// Lets another thread run the woken handlers, while this thread continues.
///
/// The last woken task waits in this thread's LIFO slot, and no other thread steals from the slot. Waking
/// another task pushes the first task to the queue, from which other threads steal.
fn let_handlers_run() {
    drop(tokio::spawn(std::future::ready(())));
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
