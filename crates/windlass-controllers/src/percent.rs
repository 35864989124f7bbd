//! Numbers that may be percentages.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Returns a number, or a percentage of `of`, rounded up or down. A text that is no percentage is 0.
pub(crate) fn scaled(value: &IntOrString, of: i32, round_up: bool) -> i32 {
    let percent = |percent: i64| {
        let product = percent.saturating_mul(of.into());
        let whole = product.div_euclid(100) + i64::from(round_up && product.rem_euclid(100) != 0);
        i32::try_from(whole).unwrap_or(i32::MAX)
    };
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            text.strip_suffix('%').and_then(|number| number.parse().ok()).map_or(0, percent)
        }
    }
}
