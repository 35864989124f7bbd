//! Costs, estimated and counted. The numbers are cel-go's.

use serde_json::json;
use windlass_cel::{Env, Limits, Schema, Type, Value};

use super::Rule;

#[test]
fn rules_cost_what_they_cost_in_kubernetes() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": "integer"},
        "s": {"type": "string"}, "t": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}},
        "o": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }});
    let items: Vec<_> = (0..8).map(|index| json!({"name": format!("n{index}")})).collect();
    let object = json!({"a": 1, "b": 2, "s": "HTTP", "t": "a".repeat(25), "l": vec!["abc"; 10], "o": items});
    for (rule, cost) in [
        ("self.a <= self.b", 5),
        ("has(self.a) ? has(self.b) : !has(self.b)", 2),
        ("self.l.all(x, x.startsWith('a'))", 53),
        ("self.t.startsWith('a') && self.t.endsWith('a')", 6),
        ("self.o.all(a, self.o.exists_one(b, a.name == b.name))", 395),
        ("self.s in ['HTTP', 'HTTPS']", 2),
        ("self.s.matches('^[A-Z]+$')", 4),
        ("self.l.map(x, x).size() == 10", 135),
        ("self.s + 'x' == 'HTTPx'", 4),
        ("self.l[0] == 'abc'", 4),
        ("(self.a > 0 ? self.s : self.l[0]) == 'HTTP'", 5),
    ] {
        let (result, found) = Rule::new(&schema, rule).check(&object);
        assert_eq!((result.as_deref(), found), (Ok("true"), cost), "{rule}");
    }
}

#[test]
fn a_limit_ends_an_evaluation() {
    let program = Env::kubernetes().compile("[1, 2, 3].all(x, x > 0)").expect("a valid expression");
    let (result, cost) = program.evaluate(&[], &Limits::of_cost(10));
    let error = result.map(|_| ()).expect_err("over the limit");
    assert_eq!(error.to_string(), "operation cancelled: actual cost limit exceeded");
    assert_eq!(cost, 12);
}

#[test]
fn an_interrupt_ends_an_evaluation() {
    let list: Vec<i64> = (0..1000).collect();
    let json = json!(list);
    let env = Env::kubernetes().with_variable("list", Type::list(Type::Int));
    let program = env.compile("list.all(x, x >= 0)").expect("a valid expression");
    let interrupt = || true;
    let limits = Limits { cost: u64::MAX, interrupt: Some(&interrupt), shared: None };
    let (result, _) = program.evaluate(&[Value::from_json(&json)], &limits);
    assert_eq!(
        result.map(|_| ()).map_err(|error| error.to_string()),
        Err("operation interrupted".to_owned())
    );
}

#[test]
fn estimates_come_from_the_sizes_of_the_schema() {
    let schema = json!({"type": "object", "properties": {
        "l": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 5}},
        "s": {"type": "string", "maxLength": 20}, "e": {"type": "string", "enum": ["one", "three"]},
        "free": {"type": "array", "items": {"type": "string"}},
    }});
    let schema = Schema::compile(&schema, false);
    let env = Env::kubernetes().with_variable("self", Type::of_schema(&schema, "selfType"));
    for (rule, min, max) in [
        ("self.l.all(x, x == 'a')", 3, 53),
        ("self.s.contains('x')", 2, 10),
        ("self.e == 'three'", 3, 3),
        ("self.free.all(x, true)", 3, 3_145_728),
        ("self.l.map(x, x).size() > 3", 15, 145),
        ("has(self.s) && self.s != ''", 1, 3),
    ] {
        let program = env.compile(rule).expect(rule);
        let range = program.estimate(&*schema);
        assert_eq!((range.min, range.max), (min, max), "{rule}");
    }
}
