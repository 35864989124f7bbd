//! Sends the requests that write events, again if the API server does not answer.

use std::time::Duration;

use http::Method;
use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use super::dropped::{DropCause, DroppedEvents};
use crate::{
    client::{ApiClient, Call, JSON, MERGE_PATCH, METADATA, path_segment},
    env::Env,
    error::{Error, Result},
};

/// The number of attempts to write an event, as in client-go.
const TRIES: u32 = 12;

/// The pause between two attempts, as in client-go.
const PAUSE: Duration = Duration::from_secs(10);

/// Sends the requests that write events.
pub(super) struct EventWriter {
    client: ApiClient,
    /// The path of the API, as `/api/v1`.
    api: &'static str,
    pub(super) env: Env,
    pub(super) dropped: DroppedEvents,
}

/// The effect of a request that writes an event.
pub(super) enum Written {
    Yes,
    /// The Event to be patched is gone: the API server deletes Events after an hour by default.
    NotFound,
    /// Not written. The loss is logged and counted.
    No,
}

impl EventWriter {
    pub(super) fn new(client: ApiClient, api: &'static str, env: Env, dropped: DroppedEvents) -> Self {
        Self { client, api, env, dropped }
    }

    /// Creates an Event.
    pub(super) async fn create(&self, namespace: &str, reason: &str, event: &impl Serialize) -> Written {
        let send = || {
            let path = self.collection(namespace);
            self.send(path.and_then(|path| Call::write(Method::POST, path, JSON, event)))
        };
        self.with_retries(reason, send).await
    }

    /// Patches an Event by a merge patch.
    pub(super) async fn patch(&self, namespace: &str, name: &str, reason: &str, patch: &Value) -> Written {
        let send = || {
            let path = self.path(namespace, name);
            self.send(path.and_then(|path| Call::write(Method::PATCH, path, MERGE_PATCH, patch)))
        };
        self.with_retries(reason, send).await
    }

    fn collection(&self, namespace: &str) -> Result<String> {
        Ok(format!("{}/namespaces/{}/events", self.api, path_segment(namespace)?))
    }

    fn path(&self, namespace: &str, name: &str) -> Result<String> {
        Ok(format!("{}/{}", self.collection(namespace)?, path_segment(name)?))
    }

    /// Sends a write whose response is not used, so that the server need not send the whole Event back.
    async fn send(&self, call: Result<Call>) -> Result<()> {
        self.client.call(call?.accept(METADATA)).await.map(drop)
    }

    /// Tries until the server answers.
    async fn with_retries<F>(&self, reason: &str, send: impl Fn() -> F) -> Written
    where
        F: Future<Output = Result<()>>,
    {
        for attempt in 0..TRIES {
            match send().await {
                // A server that answers has decided: later events must not wait for a refused event.
                // client-go does the same.
                Err(error) if error.is_transient() && error.status().is_none() => {
                    tracing::debug!(%error, attempt, "writing an event failed, retrying");
                    // The first pause is random: programs do not retry in step.
                    let pause = if attempt == 0 { PAUSE.mul_f64(self.env.fraction()) } else { PAUSE };
                    sleep(pause).await;
                }
                Err(error) if error.is_not_found() && !is_namespace(&error) => return Written::NotFound,
                // An earlier attempt was carried out, and the answer was lost: names of Events are unique.
                Err(error) if error.is_already_exists() && attempt > 0 => return Written::Yes,
                Err(error) => {
                    tracing::warn!(%error, reason, "the API server rejected an event");
                    self.dropped.count(DropCause::Rejected);
                    return Written::No;
                }
                Ok(()) => return Written::Yes,
            }
        }
        tracing::error!(reason, "giving up on an event: the API server does not answer");
        self.dropped.count(DropCause::Unreachable);
        Written::No
    }
}

/// Returns whether the missing object is the namespace.
fn is_namespace(error: &Error) -> bool {
    error
        .status()
        .and_then(|status| status.details.as_ref())
        .is_some_and(|details| details.kind == "namespaces")
}
