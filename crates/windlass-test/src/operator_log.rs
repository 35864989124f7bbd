//! The log of operators in the output of a test.

use std::env;

use tracing_subscriber::EnvFilter;

/// Shows the log of this process in the output of tests, if `RUST_LOG` is set and the process has no subscriber.
pub(crate) fn show() {
    if env::var_os(EnvFilter::DEFAULT_ENV).is_none_or(|filter| filter.is_empty()) {
        return;
    }
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).with_test_writer();
    // Fails if a subscriber is installed, by another cluster or by the test.
    let _ = log.try_init();
}
