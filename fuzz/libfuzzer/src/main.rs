//! Runs the target named in `WINDLASS_FUZZ_TARGET` under libFuzzer.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::{TARGETS, Target, target};

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("WINDLASS_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        panic!("set WINDLASS_FUZZ_TARGET to one of {}", names.join(", "))
    })
});

fuzz_target!(|data: &[u8]| CHOSEN(data));
