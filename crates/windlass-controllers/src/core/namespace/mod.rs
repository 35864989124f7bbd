//! The namespace controller: empties and finalizes terminating namespaces.

mod content;
mod content_status;
mod controller;

pub(crate) use self::controller::controller;
