//! Measures the compilation and evaluation of rules. The arguments are a CustomResourceDefinition and an object, as JSON; the
//! output is a line with a name and nanoseconds of processor time for each measurement.
#![allow(clippy::print_stdout, reason = "the measurements are the output")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use windlass_cel::{Env, Limits, Rules, Schema, Type, Value};

/// The time that a measurement takes.
const TIME: Duration = Duration::from_millis(400);

/// Rules on the object of [`object`].
const RULES: [&str; 6] = [
    "self.minReplicas <= self.replicas",
    "has(self.a) ? !has(self.b) : has(self.b)",
    "self.l.all(x, x.startsWith('a'))",
    "self.o.all(a, self.o.exists_one(b, a.name == b.name))",
    "self.s.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
    "self.s in ['HTTP', 'HTTPS', 'example.com']",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [definition, object] = &arguments[..] else { return Err("expected two files".into()) };
    small_rules()?;
    let definition: Json = serde_json::from_slice(&std::fs::read(definition)?)?;
    let object: Json = serde_json::from_slice(&std::fs::read(object)?)?;
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    measure("compile the definition", || Rules::compile(black_box(schema)));
    let rules = Rules::compile(schema).ok_or("a definition without rules")?;
    let found = rules.validate(&object, None);
    if !found.errors.is_empty() {
        return Err(format!("the object is refused: {:?}", found.errors).into());
    }
    measure("all rules of the object", || rules.validate(black_box(&object), None));
    Ok(())
}

fn small_rules() -> Result<(), Box<dyn std::error::Error>> {
    let schema = json!({"type": "object", "properties": {
        "minReplicas": {"type": "integer"}, "replicas": {"type": "integer"}, "s": {"type": "string"},
        "a": {"type": "string"}, "b": {"type": "string"},
        "l": {"type": "array", "items": {"type": "string"}},
        "o": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }});
    let names: Vec<Json> = (0..8).map(|index| json!({"name": format!("name-{index}")})).collect();
    let object = json!({
        "minReplicas": 1, "replicas": 3, "s": "example.com", "a": "x", "l": vec!["abc"; 10], "o": names,
    });
    let schema = Schema::compile(&schema, false);
    let env = Env::kubernetes().with_variable("self", Type::of_schema(&schema, "selfType"));
    let value = Value::with_schema(&object, &schema)?;
    let limits = Limits::of_cost(1_000_000);
    measure("compile a small rule", || env.compile(black_box(RULES[0])).is_ok());
    for rule in RULES {
        let program = env.compile(rule)?;
        let variables = [value.clone()];
        let (result, _) = program.evaluate(&variables, &limits);
        if result?.as_bool() != Some(true) {
            return Err(format!("{rule} does not hold").into());
        }
        measure(rule, || program.evaluate(black_box(&variables), &limits).1);
    }
    Ok(())
}

/// Prints the nanoseconds of processor time of a call.
fn measure<T>(name: &str, mut call: impl FnMut() -> T) {
    let mut calls: u64 = 0;
    let (start, begin) = (Instant::now(), processor_time());
    while start.elapsed() < TIME {
        for _ in 0..8 {
            black_box(call());
        }
        calls += 8;
    }
    println!("{name}\t{}", (processor_time() - begin) / calls);
}

/// Returns the nanoseconds of processor time of this process.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}
