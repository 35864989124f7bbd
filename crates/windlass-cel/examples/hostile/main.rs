//! Compiles and evaluates random expressions that are made to take much time or memory, each as the rule of a custom
//! resource, and measures the processor time and the memory of each expression. The arguments are the number of
//! expressions and the seed. Fails if an expression breaks a limit.
#![allow(clippy::print_stdout, reason = "the measurements are the output")]

mod expressions;

use std::time::Duration;

use peak_alloc::PeakAlloc;
use serde_json::{Value as Json, json};
use windlass_cel::{Rules, check_definition};

use self::expressions::Expressions;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The processor time that an expression may take, to compile or to evaluate.
const MAX_TIME: Duration = Duration::from_millis(100);
/// The memory that an expression may take, to compile or to evaluate, beyond the object.
const MAX_MEMORY: usize = 16 << 20;

/// The consumption of an expression.
struct Measured {
    expression: String,
    step: &'static str,
    time: Duration,
    memory: usize,
    outcome: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [count, seed] = arguments[..] else {
        return Err("expected the number of expressions and a seed".into());
    };
    let object = object();
    let mut found = Vec::new();
    let mut outcomes = std::collections::BTreeMap::<String, usize>::new();
    for expression in Expressions::new(seed).take(count as usize) {
        for measured in measure_all(&expression, &object) {
            *outcomes.entry(format!("{}: {}", measured.step, measured.outcome)).or_default() += 1;
            found.push(measured);
        }
    }
    outcomes.iter().for_each(|(outcome, count)| println!("{count:6}  {outcome}"));
    found.sort_by_key(|measured| std::cmp::Reverse(measured.time));
    print_worst("the longest processor time", &found);
    found.sort_by_key(|measured| std::cmp::Reverse(measured.memory));
    print_worst("the most memory", &found);
    let broken = found.iter().filter(|measured| measured.time > MAX_TIME || measured.memory > MAX_MEMORY);
    match broken.count() {
        0 => Ok(()),
        count => {
            Err(format!("{count} measurements are above {MAX_TIME:?} or {} MiB", MAX_MEMORY >> 20).into())
        }
    }
}

fn print_worst(title: &str, found: &[Measured]) {
    println!("{title}:");
    for measured in found.iter().take(12) {
        let start: String = measured.expression.chars().take(110).collect();
        let mib = measured.memory as f64 / f64::from(1 << 20);
        let (time, step) = (measured.time.as_secs_f64() * 1e3, measured.step);
        println!("  {time:8.2} ms {mib:7.2} MiB  {step}, {}: {start}", measured.outcome);
    }
}

/// Measures the check of a definition with the expression, the compilation, and the evaluation.
fn measure_all(expression: &str, object: &Json) -> Vec<Measured> {
    let schema = schema(expression);
    let (issues, check) = measure("check", expression, || check_definition(&schema, "schema"));
    let check = Measured { outcome: class(issues.first().map(|issue| issue.detail.as_str())), ..check };
    let (rules, compile) = measure("compile", expression, || Rules::compile(&schema));
    let Some(rules) = rules else { return vec![check, compile] };
    let (violations, evaluate) = measure("evaluate", expression, || rules.validate(object, None));
    let outcome = class(violations.errors.first().map(|violation| violation.detail.as_str()));
    vec![check, compile, Measured { outcome, ..evaluate }]
}

fn measure<T>(step: &'static str, expression: &str, call: impl FnOnce() -> T) -> (T, Measured) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let begin = processor_time();
    let result = call();
    let time = Duration::from_nanos(processor_time() - begin);
    let memory = ALLOCATOR.peak_usage().saturating_sub(before);
    (result, Measured { expression: expression.to_owned(), step, time, memory, outcome: "ends".to_owned() })
}

/// Returns the kind of a message, without the parts that name the expression.
fn class(message: Option<&str>) -> String {
    const KINDS: [&str; 9] = [
        "compilation failed",
        "exceeds budget",
        "recursion",
        "cost limit exceeded",
        "cost budget",
        "resources that the rule needs",
        "no such overload",
        "must evaluate to a bool",
        "failed rule",
    ];
    match message {
        None => "ends".to_owned(),
        Some(text) => {
            (*KINDS.iter().find(|kind| text.contains(**kind)).unwrap_or(&"fails otherwise")).to_owned()
        }
    }
}

/// Returns the schema of a resource with the rule.
fn schema(expression: &str) -> Json {
    json!({
        "type": "object",
        "properties": {
            "words": {"type": "array", "maxItems": 10_000, "items": {"type": "string", "maxLength": 20}},
            "numbers": {"type": "array", "maxItems": 10_000, "items": {"type": "integer"}},
            "lists": {"type": "array", "maxItems": 100, "items": {
                "type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 20},
            }},
            "map": {"type": "object", "maxProperties": 10_000, "additionalProperties": {"type": "string", "maxLength": 20}},
            "text": {"type": "string", "maxLength": 100_000},
            "number": {"type": "integer"},
        },
        "x-kubernetes-validations": [{"rule": expression}],
    })
}

/// Returns an object that is nearly as large as its schema permits.
fn object() -> Json {
    let word = |index: usize| format!("word-{}", index * 7919 % 10_000);
    let map: serde_json::Map<String, Json> =
        (0..10_000).map(|index| (word(index), word(index).into())).collect();
    let text: String = (0..20_000).map(|index| ["a", "b", " 1.2", ",é"][index * 7 % 4]).collect();
    json!({
        "words": (0..10_000).map(word).collect::<Vec<_>>(),
        "numbers": (0..10_000).map(|index| index * 7919 % 10_007).collect::<Vec<_>>(),
        "lists": (0..100).map(|_| (0..100).map(word).collect::<Vec<_>>()).collect::<Vec<_>>(),
        "map": map,
        "text": text,
        "number": 3,
    })
}

/// Returns the nanoseconds of processor time of this thread.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}
