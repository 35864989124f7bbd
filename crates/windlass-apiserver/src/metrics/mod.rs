//! The metrics of the server, under the names of kube-apiserver's.

mod authentication;
mod page;
mod process;
mod series;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use self::authentication::Authentication;
use self::series::SeriesMap;
use crate::auth::AuthenticationResult;
use crate::body::Body;

pub(crate) use self::page::respond;
pub(crate) use self::series::Labels;

/// The counters of the server.
#[derive(Default)]
pub(crate) struct Metrics {
    series: SeriesMap,
    reads: AtomicI64,
    writes: AtomicI64,
    authentication: Authentication,
}

/// A request in progress. Dropping the value ends the request.
pub(crate) struct InFlight {
    metrics: Arc<Metrics>,
    is_write: bool,
}

impl Metrics {
    fn in_flight(&self, is_write: bool) -> &AtomicI64 {
        if is_write { &self.writes } else { &self.reads }
    }

    /// Counts a request as in progress.
    pub(crate) fn begin(self: &Arc<Self>, is_write: bool) -> InFlight {
        self.in_flight(is_write).fetch_add(1, Ordering::Relaxed);
        InFlight { metrics: Arc::clone(self), is_write }
    }

    /// Counts an attempt of authentication.
    pub(crate) fn authenticated(&self, result: &AuthenticationResult<'_>, took: Duration) {
        self.authentication.count(result, took);
    }

    /// Counts a request that is done.
    pub(crate) fn finish(&self, labels: &Labels<'_>, code: u16, since: Instant) {
        self.series.of(labels).observe(code, Some(since.elapsed()));
    }

    /// Counts a long-running request, such as a watch, from now until the end of the body.
    pub(crate) fn follow(&self, labels: &Labels<'_>, code: u16, body: Body) -> Body {
        body.holding(self.begin_long(labels, code))
    }

    /// Counts a request that goes on for long, from now until the guard is dropped.
    pub(crate) fn begin_long(&self, labels: &Labels<'_>, code: u16) -> LongRunning {
        let guard = LongRunning { series: self.series.of(labels), code };
        guard.series.begin();
        guard
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.in_flight(self.is_write).fetch_sub(1, Ordering::Relaxed);
    }
}

/// A long-running request. Dropping the value ends the request.
pub(crate) struct LongRunning {
    series: Arc<series::Series>,
    code: u16,
}

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.series.end();
        self.series.observe(self.code, None);
    }
}
