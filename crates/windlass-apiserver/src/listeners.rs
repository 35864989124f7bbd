//! The listeners of a server.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::auth::Tokens;

/// The listeners that run. The server is at the address of the oldest listener.
#[derive(Default)]
pub(crate) struct Listeners {
    /// The oldest first.
    running: Mutex<Vec<Entry>>,
    /// The advertised address of the server.
    address: Mutex<Option<SocketAddr>>,
    /// Held by the listener whose tasks work for the server.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A listener.
struct Entry {
    /// The listener owns the tokens.
    alive: Weak<Tokens>,
    /// The certificate of the authority that signs the certificates of clients, PEM.
    authority: String,
}

impl Listeners {
    /// Adds a listener. Returns true if no other listener runs.
    pub(crate) fn add(&self, tokens: &Arc<Tokens>, authority: &str) -> bool {
        let mut running = self.running.lock();
        running.retain(|listener| listener.alive.strong_count() > 0);
        running.push(Entry { alive: Arc::downgrade(tokens), authority: authority.to_owned() });
        running.len() == 1
    }

    /// Returns the authorities of clients, PEM.
    pub(crate) fn authorities(&self) -> String {
        let running = self.running.lock();
        running.iter().map(|listener| listener.authority.as_str()).collect()
    }

    pub(crate) fn move_to(&self, address: SocketAddr) {
        *self.address.lock() = Some(address);
    }

    /// Returns the advertised address of the server; `None` before the first listener.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock()
    }

    /// Runs `work` once no other listener works for the server, until `stopped` completes.
    pub(crate) fn in_turn<S, F, W>(&self, stopped: S, work: F) -> impl Future<Output = ()> + use<S, F, W>
    where
        S: Future<Output = ()>,
        F: FnOnce() -> W,
        W: Future<Output = ()>,
    {
        let turn = Arc::clone(&self.turn);
        async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = async {
                    let _turn = turn.lock().await;
                    work().await;
                } => {}
            }
        }
    }
}
