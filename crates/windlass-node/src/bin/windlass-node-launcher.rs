//! A launcher for programs whose `main` cannot call `windlass_node::launch` first, such as tests.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = windlass_node::launch(std::env::args_os()) {
        return code;
    }
    ExitCode::FAILURE
}
