//! CustomResourceDefinitions, installed and waited for.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::panic::Location;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use parking_lot::Mutex;
use tokio::time::timeout;
use windlass_dev::{cel_rules, install_crds};
use windlass_patience::stretched;

/// The warnings that this process has printed.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Applies the CRDs and waits until all resources are served.
pub(crate) async fn install(
    client: Client,
    definitions: Vec<CustomResourceDefinition>,
    limit: Duration,
    caller: &'static Location<'static>,
) {
    let limit = stretched(limit);
    let installed = timeout(limit, install_crds(&client, &definitions)).await;
    let result =
        installed.unwrap_or_else(|_| panic!("{caller}: the CRDs are not installed within {limit:?}"));
    if let Err(error) = result {
        panic!("{caller}: {error}");
    }
}

/// Prints a warning for each CEL rule in the CRDs, once in a process: the embedded API server does not evaluate the rule.
///
/// Written to stderr without the print macros: the test harness hides the output of the macros if the test
/// passes.
pub(crate) fn warn_of_cel_rules(definitions: &[CustomResourceDefinition]) {
    let mut warned = WARNED.lock();
    for warning in cel_rules(definitions).iter().map(ToString::to_string) {
        if !warned.contains(&warning) {
            let _ = writeln!(io::stderr(), "warning: {warning}");
            warned.insert(warning);
        }
    }
}
