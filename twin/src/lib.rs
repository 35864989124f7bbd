//! Plays random traffic on the embedded API server and on a real kube-apiserver, and compares the replies.
//!
//! [`script`] makes a script, [`Twin`] plays the script on both servers, [`shrink`] shortens a script that
//! shows a difference.
#![forbid(unsafe_code)]

mod compare;
mod generate;
mod kind;
mod known;
mod normalise;
pub mod op;
mod outcome;
mod player;
mod reply_body;
mod server;
mod shrink;
pub mod transcript;
mod twin;
mod watch;
mod webhook;

pub use compare::Difference;
pub use generate::script;
pub use known::Known;
pub use outcome::Outcome;
pub use server::Backend;
pub use shrink::shrink;
pub use twin::{Run, Twin};
