//! The program `windlass`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_cli::main()
}
