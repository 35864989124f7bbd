//! The client from outside, with servers that behave and servers that do not.

mod certificates;
mod http1;
mod http2;
mod proxies;
mod server;
