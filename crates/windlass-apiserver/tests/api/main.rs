//! The behaviour of a Kubernetes API server, tested over HTTP.
//!
//! Every test talks to an embedded server of its own, in process or, if `WINDLASS_TEST_TLS` is set, over TLS. If
//! `WINDLASS_TEST_KUBECONFIG` names a kubeconfig, the tests talk to that server instead.
//!
//! The expectations were recorded from kube-apiserver 1.37 (`cargo xtask control-plane`). Where the two
//! servers differ, the real server is right. `UPDATE_EXPECT=1` records again; use the variable only with a
//! real server.

#![allow(clippy::unwrap_used, reason = "a test that is wrong about a reply fails there and then")]

mod harness;

mod fixtures;

// The first requests of a client.
mod discovery;
mod openapi;
mod reviews;
mod routes;
mod zpages;

// One object, and many.
mod crud;
mod delete;
mod paging;
mod patch;
mod selectors;
mod served_kinds;
mod update;
mod validation;
mod warnings;
mod watch;
mod websocket;

// The same for every write.
mod admission;
mod dry_run;
mod field_validation;
mod policies;
mod scales;
mod status;
mod subresources;
mod versions;

// Users and authentication.
mod apply;
mod authentication;
mod deadlines;
mod impersonation;
mod rbac;
mod tokens;

// Many clients at once, and a series of servers.
mod concurrency;
mod flow_control;
mod lifetimes;
mod restarts;

// Kinds.
mod aggregation;
mod builtins;
mod certificates;
mod connect;
mod conversion;
mod crd;
mod custom_resources;
mod defaults;
mod kinds;
mod limit_ranges;
mod limits;
mod namespaces;
mod not_enforced;
mod pods;
mod quotas;
mod quoted_values;
mod recorded;
mod rules;
mod service_accounts;
mod services;
mod settings;
mod spdy;
mod streams;

// Bytes and mistakes.
mod bodies;
mod errors;
mod evictions;
mod protobuf;
mod representations;

// The embedded server alone.
mod bootstrap;
mod footprint;
mod metrics;
