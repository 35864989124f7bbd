//! Plays random traffic on the embedded API server and on a real kube-apiserver, and compares the replies.
//!
//! [`script`] makes a script, [`Twin`] plays the script on both servers, [`shrink`] shortens a script that
//! shows a difference.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
pub mod corpus;
mod generate;
mod known;
mod shrink;
pub mod transcript;

mod kind;
mod twin;

mod compare;
mod player;

mod normalise;
mod reply_body;
mod server;
mod watch;

pub mod op;
mod outcome;
mod webhook;

pub use compare::Difference;
pub use generate::script;
pub use known::Known;
pub use outcome::Outcome;
pub use server::Backend;
pub use shrink::shrink;
pub use twin::{Run, Twin};
