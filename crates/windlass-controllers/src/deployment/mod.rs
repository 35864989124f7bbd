//! Rolls a Deployment's pods from one template to the next.

mod plan;
mod rolling;
