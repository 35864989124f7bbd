//! Tests of the expression language from outside: results, costs, messages and limits.

mod admission;
mod costs;
mod hostile;
mod issues;
mod library;
mod results;
mod rules;

use std::sync::Arc;

use serde_json::Value as Json;
use windlass_cel::{Env, Error, Limits, Program, Schema, Type, Value};

/// The cost that an expression may have in Kubernetes.
const LIMIT: u64 = 1_000_000;

/// Evaluates an expression without variables.
fn eval(expression: &str) -> Result<Value<'static>, Error> {
    let program = Env::kubernetes().compile(expression).unwrap_or_else(|issues| panic!("{issues}"));
    program.evaluate(&[], &Limits::of_cost(LIMIT)).0
}

/// A rule of a schema, compiled.
struct Rule {
    schema: Arc<Schema>,
    program: Program,
}

impl Rule {
    fn new(schema: &Json, rule: &str) -> Self {
        let schema = Schema::compile(schema, false);
        let known = Type::of_schema(&schema, "selfType");
        let env = Env::kubernetes().with_variable("self", known.clone()).with_variable("oldSelf", known);
        let program = env.compile(rule).unwrap_or_else(|issues| panic!("{issues}"));
        Self { schema, program }
    }

    /// Returns the result as a text, and the cost.
    fn check(&self, object: &Json) -> (Result<String, String>, u64) {
        let value = Value::with_schema(object, &self.schema).expect("an object of the schema");
        let (result, cost) = self.program.evaluate(&[value], &Limits::of_cost(LIMIT));
        (result.map(|value| value.to_string()).map_err(|error| error.to_string()), cost)
    }
}
