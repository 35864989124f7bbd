//! Apply configurations, from outside and without a client.

mod built_in;
mod derived;
