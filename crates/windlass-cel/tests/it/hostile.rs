//! Expressions that are made to take much time or memory.

use serde_json::json;
use windlass_cel::{Env, Limits, Type, Value};

/// Compiles and evaluates an expression, which may fail in any way but a panic.
fn survive(expression: &str) -> String {
    let list = json!(vec!["some text"; 10_000]);
    let env =
        Env::kubernetes().with_variable("list", Type::list(Type::String)).with_variable("text", Type::String);
    let program = match env.compile(expression) {
        Ok(program) => program,
        Err(issues) => return issues.to_string(),
    };
    let text = Value::text("ab".repeat(10_000));
    let (result, _) = program.evaluate(&[Value::from_json(&list), text], &Limits::of_cost(1_000_000));
    result.map_or_else(|error| error.to_string(), |_| "a result".to_owned())
}

#[test]
fn nesting_is_limited() {
    for nested in [
        format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000)),
        format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}true{}", "{'a': ".repeat(5_000), "}".repeat(5_000)),
        format!("{}1", "true ? 1 : ".repeat(5_000)),
    ] {
        assert!(survive(&nested).contains("recursion limit exceeded: 250"));
    }
    assert!(survive(&vec!["1"; 20_000].join(" + ")).contains("max recursion depth exceeded"));
    assert!(survive(&format!("list{}", "[0]".repeat(20_000))).contains("max recursion depth exceeded"));
    assert!(survive(&"!".repeat(99_999)).contains("Syntax error"));
    assert_eq!(survive(&vec!["true"; 12_000].join(" && ")), "a result");
    assert!(survive(&vec!["a"; 24_000].join("&&")).contains("more than 44000 nodes"));
}

#[test]
fn the_deepest_expressions_are_evaluated() {
    for expression in [
        format!("{}1{} == 1", "(".repeat(240), ")".repeat(240)),
        format!("{} == 240", vec!["1"; 240].join(" + ")),
        format!("{}[1]{} != []", "[".repeat(200), "]".repeat(200)),
        format!("{}true{}", "[1].all(x, ".repeat(120), ")".repeat(120)),
    ] {
        assert_eq!(survive(&expression), "a result", "{}", &expression[..20]);
    }
}

#[test]
fn the_depth_of_the_tree_is_limited() {
    let nested =
        |open: &str, close: &str, times: usize| format!("{}true{}", open.repeat(times), close.repeat(times));
    let refused = "max recursion depth exceeded";
    assert!(survive(&vec!["''"; 20_000].join("in")).contains(refused));
    assert!(survive(&nested("[1].exists(a, a == 1 && (a == 1 || (", ")))", 80)).contains("a result"));
    let mut results = Vec::new();
    let run = move || {
        for times in (2..=240).step_by(5) {
            for (open, close) in [
                ("(true && true && true && true && true && ", ")"),
                ("(false || true && true && !(", "))"),
                ("[1].exists(a, a == 1 && (a == 1 || (", ")))"),
                ("[1].exists(a, {'k': [", "]}['k'][0])"),
                ("[1].exists(a, {'k': [false || true && !!(true && ", ")]}['k'][0])"),
                ("optional.of(true ? 1 : 2).optMap(a, ", ").hasValue()"),
            ] {
                results.push(survive(&nested(open, close, times)));
            }
            results.push(survive(&format!(
                "{}[1]{}",
                "[1] + ".repeat(times),
                ".map(a, [[[[a]]]])".repeat(times)
            )));
            results.push(survive(&format!(
                "{}.size() > 0",
                nested("[1].map(a, dyn([[[[[[[", "]]]]]]]))", times)
            )));
        }
        results
    };
    let thread = std::thread::Builder::new().stack_size(3 << 19).spawn(run);
    let results = thread
        .and_then(|thread| thread.join().map_err(|_| std::io::ErrorKind::Other.into()))
        .unwrap_or_default();
    for wanted in ["a result", refused] {
        assert!(results.iter().any(|result| result.contains(wanted)), "{wanted}");
    }
}

#[test]
fn length_and_expansion_are_limited() {
    assert!(survive(&"a".repeat(100_001)).contains("expression code point size exceeds limit"));
    let doubling = (0..60).fold("optional.of(1)".to_owned(), |inner, _| format!("{inner}.optMap(x, x)"));
    assert!(survive(&doubling).contains("nodes"), "{}", survive(&doubling));
}

#[test]
fn loops_within_loops_run_out_of_cost() {
    let message = "operation cancelled: actual cost limit exceeded";
    assert_eq!(survive("list.all(a, list.all(b, list.all(c, true)))"), message);
    assert_eq!(survive("list.map(a, list.map(b, b)).size() > 0"), message);
}

#[test]
fn texts_and_lists_that_grow_are_limited() {
    let replaced = |times: usize| format!("text{}.size() > 0", ".replace('a', 'aaaaaaaaaa')".repeat(times));
    assert!(survive(&replaced(6)).starts_with("operation cancelled"), "{}", survive(&replaced(6)));
    let long = "x".repeat(4000);
    assert!(survive(&format!("text.replace('', '{long}').size() > 0")).starts_with("operation cancelled"));
    let doubled = (0..12).fold("list".to_owned(), |list, _| format!("({list} + {list})"));
    assert!(!survive(&doubled).is_empty());
    assert!(survive("lists.range(1000000000).size() > 0").starts_with("operation cancelled"));
    assert!(survive("(list + list + list).distinct().size() > 0").len() > 3);
}

#[test]
fn regular_expressions_are_limited() {
    assert!(survive("text.matches('(a{1000}){1000}')").contains("invalid matches argument"));
    assert_eq!(survive("text.matches('(a*)*(b*)*(ab)*$')"), "a result");
    assert!(!survive("list.all(x, 'a'.matches(x + '{100}'))").is_empty());
}

#[test]
fn doubled_lists_cost_their_elements() {
    let doubled = (0..15).fold("list".to_owned(), |list, _| format!("[{list}].map(l, l + l)[0]"));
    let result = survive(&format!("{doubled}.all(x, x != '')"));
    assert!(result.starts_with("operation cancelled"), "{result}");
    for call in ["isSorted()", "indexOf('some text') == 0", "lastIndexOf('some text') == 0", "min() == ''"] {
        let result = survive(&format!("{doubled}.{call}"));
        assert!(result.starts_with("operation cancelled"), "{call}: {result}");
    }
}

#[test]
fn texts_of_values_are_limited() {
    let doubled = format!("dyn([1]{})", ".map(a, [a, a])".repeat(40));
    let result = survive(&format!("{{'a': true}}[{doubled}]"));
    assert!(result.len() < 100_000, "{}", result.len());
    let named = doubled.replace("[a, a]", "{'x': a, 'y': optional.of(a)}");
    assert!(survive(&format!("{{'a': true}}[{named}]")).len() < 100_000);
}

#[test]
fn types_are_limited() {
    let grown = |step: &str, times: usize| format!("[1]{}.size() > 0", step.repeat(times));
    let too_large = "the types of the expression are too large";
    for step in [".map(a, {a: a})", ".map(a, [{a: a}])", ".map(a, optional.of({a: a}))"] {
        assert!(survive(&grown(step, 100)).contains(too_large), "{step}");
    }
    let variables = grown(".map(a, [a, a])", 60).replacen("[1]", "[]", 1);
    assert_eq!(survive(&variables), "a result");
    let compared =
        format!("{}.map(x, x == {{x: x}}) == []", "[[]]".to_owned() + &".map(b, {b: b})".repeat(30));
    assert!(!survive(&compared).is_empty());
    assert_eq!(survive(&format!("{}1{} != {{}}", "{'a': ".repeat(200), "}".repeat(200))), "a result");
}
