//! The server seen from the outside, through its in-process service.

mod harness;

mod custom;
mod lists;
mod objects;
mod watches;
