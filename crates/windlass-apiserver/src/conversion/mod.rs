//! Conversion webhooks convert custom resources between the versions of a definition.

mod check;
mod review;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, Shared, WeakShared};
use parking_lot::Mutex;
use serde_json::Value;

use crate::webhook::{Clients, Endpoint};
use crate::wire::ApiError;
use crate::work_memory;

/// The time limit of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The reply that a webhook may send to a call of any size, in bytes: that of the body of a request.
const MIN_REPLY: usize = 3 << 20;
/// Each object of a call adds this many times its size to the limit of the reply, and [`GROWTH`]. The text and the values of a reply are in
/// memory together.
const MAX_FACTOR: usize = 4;
/// The bytes that each object of a call adds to the limit of the reply: defaults and annotations may multiply a small object.
const GROWTH: usize = 8 << 10;
/// The approximate limit of the bytes that the objects of a call add to the limit of the reply.
const MAX_BATCH: usize = 16 << 20;

/// Identifies a conversion: the uid and revision of a stored object, and the version wanted.
type Key = (Box<str>, u64, Arc<str>);
type Conversion = BoxFuture<'static, Result<Arc<Value>, ApiError>>;

/// The conversion webhook of a definition.
pub(crate) struct Converter {
    clients: Arc<Clients>,
    endpoint: Endpoint,
    /// The version of reviews that the webhook accepts and this server knows.
    review_version: Option<&'static str>,
    /// `GROUP/VERSION, Kind=KIND` has this kind.
    kind: String,
    /// Conversions in progress, for all requests that wait for the same conversion.
    in_flight: Mutex<HashMap<Key, WeakShared<Conversion>>>,
}

impl Converter {
    /// Reads the `spec.conversion.webhook` of a definition of `kind`.
    pub(crate) fn new(webhook: &Value, kind: &str, clients: Arc<Clients>) -> Self {
        let mut versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        let known = |version: &Value| ["v1", "v1beta1"].into_iter().find(|known| version == known);
        Self {
            clients,
            endpoint: Endpoint::of(&webhook["clientConfig"]),
            review_version: versions.find_map(known),
            kind: kind.to_owned(),
            in_flight: Mutex::default(),
        }
    }

    /// Converts objects of the version `from` to the version `to`, in as few calls as the sizes allow.
    ///
    /// # Errors
    ///
    /// The webhook cannot be called, or the response is not a conversion of the objects.
    pub(crate) async fn convert(
        &self,
        objects: Vec<Value>,
        from: &str,
        to: &str,
    ) -> Result<Vec<Value>, ApiError> {
        work_memory::calling(self.convert_all(objects, from, to)).await
    }

    async fn convert_all(&self, objects: Vec<Value>, from: &str, to: &str) -> Result<Vec<Value>, ApiError> {
        let mut converted = Vec::with_capacity(objects.len());
        let (mut batch, mut room) = (Vec::new(), 0);
        for object in objects {
            let text = object.to_string();
            if room + room_for(&text) > MAX_BATCH && !batch.is_empty() {
                converted.extend(self.convert_batch(std::mem::take(&mut batch), from, to).await?);
                room = 0;
            }
            room += room_for(&text);
            batch.push((object, text));
        }
        if !batch.is_empty() {
            converted.extend(self.convert_batch(batch, from, to).await?);
        }
        Ok(converted)
    }

    /// Converts a stored object. Requests that need the same conversion at the same time share a call.
    ///
    /// # Errors
    ///
    /// As [`Converter::convert`].
    pub(crate) async fn convert_shared(
        self: &Arc<Self>,
        (uid, revision): (&str, u64),
        object: impl FnOnce() -> Value,
        from: &str,
        to: &Arc<str>,
    ) -> Result<Arc<Value>, ApiError> {
        let key = (Box::from(uid), revision, Arc::clone(to));
        let conversion = self.join(key, object, from);
        work_memory::calling(conversion).await
    }

    /// Returns the conversion in progress, or begins a conversion.
    fn join(self: &Arc<Self>, key: Key, object: impl FnOnce() -> Value, from: &str) -> Shared<Conversion> {
        let mut in_flight = self.in_flight.lock();
        if let Some(found) = in_flight.get(&key).and_then(WeakShared::upgrade) {
            return found;
        }
        // Abandoned conversions have not removed the entry.
        in_flight.retain(|_, conversion| conversion.upgrade().is_some());
        let (converter, object, from, of) = (Arc::clone(self), object(), from.to_owned(), key.clone());
        let conversion = async move {
            let converted = converter.convert_all(vec![object], &from, &of.2).await;
            converter.in_flight.lock().remove(&of);
            let first = converted?.pop();
            first.map(Arc::new).ok_or_else(|| ApiError::internal("a conversion lost its object"))
        };
        let conversion = conversion.boxed().shared();
        if let Some(weak) = conversion.downgrade() {
            in_flight.insert(key, weak);
        }
        conversion
    }

    async fn convert_batch(
        &self,
        batch: Vec<(Value, String)>,
        from: &str,
        to: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let of = format!("conversion webhook for {from}, Kind={}", self.kind);
        let Some(version) = self.review_version else {
            return Err(ApiError::unexplained("no supported conversion review versions"));
        };
        let failed = |why: String| ApiError::unexplained(format!("{of} failed: {why}"));
        let uid = uuid::Uuid::new_v4().to_string();
        let body = review::request(version, &uid, to, batch.iter().map(|(_, text)| text.as_str()));
        let max_reply = MIN_REPLY + batch.iter().map(|(_, text)| room_for(text)).sum::<usize>();
        let reply = self.clients.post(&self.endpoint, body.into(), TIMEOUT, max_reply).await;
        let converted = review::answer(&reply.map_err(failed)?, version, &uid).map_err(failed)?;
        if converted.len() != batch.len() {
            let (found, wanted) = (converted.len(), batch.len());
            let why = format!("{of} returned {found} objects, expected {wanted}");
            return Err(ApiError::unexplained(why));
        }
        let is_list = batch.len() > 1;
        let mut checked = Vec::with_capacity(converted.len());
        for (index, ((original, _), converted)) in batch.into_iter().zip(converted).enumerate() {
            let found = check::accept(&original, converted, to);
            checked.push(
                found.map_err(|why| ApiError::unexplained(format!("{of} {}", why.at(index, is_list))))?,
            );
        }
        Ok(checked)
    }
}

/// Returns the bytes that an object of a call adds to the limit of the reply.
fn room_for(object: &str) -> usize {
    object.len() * MAX_FACTOR + GROWTH
}

impl fmt::Debug for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converter").field("kind", &self.kind).finish_non_exhaustive()
    }
}
