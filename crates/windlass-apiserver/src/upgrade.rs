//! A response after which the connection speaks another protocol.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::Response;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::nodes::Connection;

/// The use of a connection after a response with the status 101. The token is cancelled when the listener stops.
pub(crate) type Conversation =
    Box<dyn FnOnce(Connection, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// An extension of a response with the status 101.
#[derive(Clone)]
pub(crate) struct Upgrade(Arc<Mutex<Parts>>);

struct Parts {
    conversation: Option<Conversation>,
    /// Dropped at the end of the conversation.
    guard: Option<Box<dyn Send>>,
}

impl Upgrade {
    /// Adds a conversation to a response.
    pub(crate) fn add(
        response: &mut Response<Body>,
        conversation: impl FnOnce(Connection, CancellationToken) -> BoxFuture<'static, ()> + Send + 'static,
    ) {
        let parts = Parts { conversation: Some(Box::new(conversation)), guard: None };
        response.extensions_mut().insert(Self(Arc::new(Mutex::new(parts))));
    }

    /// Drops `guard` when the conversation ends.
    pub(crate) fn hold(&self, guard: impl Send + 'static) {
        self.0.lock().guard = Some(Box::new(guard));
    }

    /// Takes the conversation out of a response, once.
    pub(crate) fn take(response: &mut Response<Body>) -> Option<Conversation> {
        let upgrade = response.extensions_mut().remove::<Self>()?;
        let mut parts = upgrade.0.lock();
        let (conversation, guard) = (parts.conversation.take()?, parts.guard.take());
        Some(Box::new(move |connection, stop| {
            let talk = conversation(connection, stop);
            Box::pin(async move {
                talk.await;
                drop(guard);
            })
        }))
    }
}
