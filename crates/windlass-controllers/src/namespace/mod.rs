//! Empties namespaces that are to go.

mod progress;
