//! Conversion of custom resources between versions, through a hub.

mod converter;
mod rest;
mod review;

#[cfg(test)]
mod tests;

pub use self::converter::{Converter, Spoke};
pub(crate) use self::{converter::Conversions, review::review};
