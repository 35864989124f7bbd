//! Lists of JSON values to choose from, in `samples.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fastrand::Rng;
use serde_json::Value;

static SAMPLES: LazyLock<BTreeMap<String, Vec<Value>>> = LazyLock::new(|| {
    let text = include_str!("samples.json");
    serde_json::from_str(text).unwrap_or_else(|error| unreachable!("samples.json: {error}"))
});

/// Returns an element of a list.
pub(super) fn any(random: &mut Rng, list: &str) -> Value {
    let list = SAMPLES.get(list).unwrap_or_else(|| unreachable!("samples.json has no list {list}"));
    super::pick(random, list).clone()
}

/// Returns an element of a list of strings.
pub(super) fn text(random: &mut Rng, list: &str) -> String {
    any(random, list).as_str().unwrap_or_default().to_owned()
}

/// Returns a patch of `metadata`: two of three are allowed.
pub(super) fn metadata(random: &mut Rng) -> Value {
    let list = if random.u32(..3) > 0 { "metadata" } else { "odd metadata" };
    serde_json::json!({"metadata": any(random, list)})
}
