//! The server seen from the outside, through its in-process service.

mod harness;

mod lists;
mod objects;
mod watches;
