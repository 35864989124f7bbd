//! Targets for the Common Expression Language.

use std::sync::LazyLock;

use serde_json::Value as Json;
use windlass_cel::{Env, Limits, Program, Schema, Type, Value, escape, unescape};

use crate::split;

/// The cost of an evaluation.
const COST: u64 = 20_000;

static ENV: LazyLock<Env> = LazyLock::new(Env::kubernetes);

/// Every text is an expression or has errors at its lines; escaped names are the same after unescaping.
pub(crate) fn parse(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    if let Err(issues) = ENV.parse(source) {
        let lines = source.split('\n').count();
        let found = issues.sorted();
        assert!(!found.is_empty(), "a refusal without an issue");
        assert!(found.iter().all(|issue| issue.line <= lines), "an issue after the last line");
        assert!(!issues.to_string().is_empty());
    }
    if let Some(escaped) = escape(source) {
        assert_eq!(unescape(&escaped).as_deref(), Some(source), "another name after unescaping");
    }
}

/// Every expression that compiles evaluates within its cost, to a value of its type, and to the same value without
/// constant folding.
pub(crate) fn check_and_evaluate(data: &[u8]) {
    let (source, rest) = split(data);
    let (schema, object) = split(rest);
    let Ok(source) = std::str::from_utf8(source) else { return };
    let Ok(schema) = serde_json::from_slice::<Json>(schema) else { return };
    let Ok(object) = serde_json::from_slice::<Json>(object) else { return };
    let schema = Schema::compile(&schema, false);
    let env = ENV.clone().with_variable("self", Type::of_schema(&schema, "selfType"));
    let Ok(program) = env.compile(source) else { return };
    let estimate = program.estimate(&*schema);
    assert!(estimate.min <= estimate.max, "an estimate from {} to {}", estimate.min, estimate.max);
    let Ok(value) = Value::with_schema(&object, &schema) else { return };
    let folded = evaluate(&program, &value);
    if let (Some(result), Type::Bool) = (&folded, program.output()) {
        assert!(result == "true" || result == "false", "a boolean expression has the result {result}");
    }
    let unfolded = env.without_folding().compile(source).expect("the expression compiles without folding");
    if let (Some(folded), Some(unfolded)) = (folded, evaluate(&unfolded, &value)) {
        assert_eq!(folded, unfolded, "another result without folding");
    }
}

fn evaluate(program: &Program, value: &Value<'_>) -> Option<String> {
    let (result, cost) = program.evaluate(&vec![value.clone()], &Limits::of_cost(COST));
    let result = result.ok()?;
    assert!(cost <= COST, "a result for {cost}");
    Some(result.to_string())
}
