//! Properties that hold for every schema and every object.

mod laws;
mod values;
