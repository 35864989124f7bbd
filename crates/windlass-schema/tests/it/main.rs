//! Laws that hold for any schema and any object.

mod laws;
mod values;
