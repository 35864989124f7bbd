//! The HTTP connections of a Kubernetes client.
//!
//! [`HttpClient`] sends all requests of a program over **one** HTTP/2 connection, and all watches and logs over a second one, so that a burst of
//! events never holds up a write. A further connection is opened only while the server accepts no more streams on the others. A server
//! without HTTP/2, a server without TLS, and a request that upgrades its connection (`exec`, `attach`, `port-forward`) get HTTP/1.1.
//!
//! A request that the server certainly did not process (a connection that shut down, a refused stream) is sent again on another connection. A
//! write that was sent runs to its end even if the caller drops the future. A read or a watch that is dropped resets its stream.
//!
//! The configuration is kube's: [`kube_client::Config`], with its credentials, proxy, TLS settings and time-outs. Client certificates and
//! certificate authorities are read again when their files change.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use windlass_http::{HttpClient, Options};
//!
//! let config = kube_client::Config::infer().await?;
//! let namespace = config.default_namespace.clone();
//! let client = kube_client::Client::new(HttpClient::new(config, Options::default())?, namespace);
//! # drop(client); Ok(()) }
//! ```
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod client;

mod lane;
mod message;
mod outcome;
mod target;
mod traits;
mod unstoppable;

mod body;
mod credentials;
mod redial;

mod connection;

mod dialer;
mod keep_alive;
mod silence;

mod read_ahead;
mod tls;

mod plugin;
mod source;

mod error;

pub use self::{
    body::ResponseBody,
    client::{HttpClient, Options, Protocol},
    error::{BoxError, Error, Result},
    message::Message,
};
