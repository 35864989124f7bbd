//! The connections to extension servers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::{Mutex, RwLock};

use super::remote::Remote;
use crate::auth::Identity;
use crate::body::UnreadBody;
use crate::network::PodNetwork;
use crate::store::Store;
use crate::webhook::{ClientIdentity, Connector};

/// The number of idle connections that are kept for a server.
const MAX_IDLE: usize = 25;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

pub(super) type Client = legacy::Client<Connector, UnreadBody>;

/// The clients of extension servers, by configuration.
pub(super) struct Clients {
    store: Arc<Store>,
    network: PodNetwork,
    /// The certificate of this server as a client. `None` until a listener starts.
    identity: RwLock<Option<Arc<ClientIdentity>>>,
    known: Mutex<BTreeMap<Arc<str>, Client>>,
}

impl Clients {
    pub(super) fn new(store: Arc<Store>, network: PodNetwork) -> Self {
        Self { store, network, identity: RwLock::default(), known: Mutex::default() }
    }

    /// Sets the certificate of this server as a client.
    pub(super) fn identify(&self, identity: ClientIdentity) {
        *self.identity.write() = Some(Arc::new(identity));
        self.known.lock().clear();
    }

    /// Returns the client of a server.
    ///
    /// # Errors
    /// The certificates of the configuration are invalid.
    pub(super) async fn of(&self, remote: &Remote) -> Result<Client, String> {
        let id = remote.endpoint.id();
        if let Some(known) = self.known.lock().get(id) {
            return Ok(known.clone());
        }
        let identity = self.identity.read().clone();
        let (store, network) = (Arc::clone(&self.store), self.network.clone());
        let connector = Connector::new(&remote.endpoint, store, network, identity.as_deref()).await?;
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector);
        self.known.lock().insert(Arc::clone(id), client.clone());
        Ok(client)
    }

    /// Forgets the clients of all other configurations.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.known.lock().retain(|id, _| is_kept(id));
    }
}

/// Replaces the headers that name the user: an extension server trusts the headers of this server alone.
pub(super) fn name_user(headers: &mut HeaderMap, identity: &Identity) {
    let sent: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in sent {
        headers.remove(name);
    }
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    };
    add("x-remote-user", identity.name());
    if let Some(uid) = identity.uid() {
        add("x-remote-uid", uid);
    }
    for group in identity.groups() {
        add("x-remote-group", group);
    }
    for (key, values) in identity.extra() {
        let name = format!("x-remote-extra-{}", escaped(key));
        values.iter().for_each(|value| add(&name, value));
    }
}

/// Escapes the characters of a key that the name of a header cannot have. Names of headers have no capital letters.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.to_ascii_lowercase().bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_name_another_user() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("x-remote-user", "root"), ("x-remote-extra-a", "b"), ("x-remote-group", "system:masters")]
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let identity = Identity::user("jane").with_uid("7").with_extra("Example.com/Key", "v");
        name_user(&mut headers, &identity);
        let mut found: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        found.sort();
        assert_eq!(
            found,
            [
                "x-remote-extra-example.com%2fkey: v",
                "x-remote-group: system:authenticated",
                "x-remote-uid: 7",
                "x-remote-user: jane"
            ]
        );
    }
}
