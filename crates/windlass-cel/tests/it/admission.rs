//! Expressions of admission: variables, patches, budgets, and the bounds of hostile policies.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use windlass_cel::admission::{
    Compiler, Declarations, Evaluation, Input, OutOfBudget, Output, POLICY_BUDGET, Variables,
};
use windlass_cel::{AccessRequest, Authorize, Check, Decision, Encoder, Library, NameCheck, Numbers, Value};

static NULL: Json = Json::Null;

fn input(object: &Json) -> Input<'_> {
    Input { object, old_object: &NULL, namespace: &NULL, request: &NULL, params: &NULL, authorizer: None }
}

/// Evaluates an expression with variables on an object.
fn evaluate(variables: &[(&str, &str)], expression: &str, object: &Json) -> Result<String, String> {
    let with = Declarations::default();
    let mut compiler = Compiler::with_variables();
    for (name, source) in variables {
        let _ = compiler.add_variable(name, source, with);
    }
    let expression = compiler.compile(expression, Output::Any, with);
    let (input, variables) = (input(object), compiler.into_variables());
    let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
    let result = evaluation.evaluate(&expression).expect("within the budget");
    result.map(|value| value.to_string())
}

#[test]
fn variables_are_computed_once_and_on_demand() {
    let object = json!({"a": 3});
    let variables =
        [("a", "object.a"), ("b", "variables.a * variables.a"), ("c", "int('x' + string(object.a))")];
    assert_eq!(evaluate(&variables, "variables.b + variables.a", &object).as_deref(), Ok("12"));
    assert_eq!(evaluate(&variables, "has(variables.b)", &object).as_deref(), Ok("true"));
    assert_eq!(evaluate(&variables, "variables.?b.orValue(0)", &object).as_deref(), Ok("9"));
    assert_eq!(
        evaluate(&variables, "variables.c", &object).unwrap_err(),
        "expression 'variables.c' resulted in error: composited variable \"c\" fails to evaluate: type conversion \
         error from 'string' to 'int'"
    );
    assert_eq!(evaluate(&variables, "variables.c == 1 || variables.a == 3", &object).as_deref(), Ok("true"));
    let broken = [("a", "object."), ("b", "variables.a")];
    let error = evaluate(&broken, "variables.b", &object).unwrap_err();
    assert!(
        error.contains("composited variable \"a\" fails to compile: compilation failed: ERROR"),
        "{error}"
    );
}

#[test]
fn the_cost_of_a_variable_counts_once() {
    let with = Declarations::default();
    let mut compiler = Compiler::with_variables();
    compiler.add_variable("list", "object.list.map(x, x + 1)", with).unwrap();
    let (one, two) = ("variables.list.size() > 0", "variables.list.size() > 1");
    let expressions = [one, two].map(|source| compiler.compile(source, Output::Bool, with));
    let object = json!({"list": [1, 2, 3]});
    let (input, variables) = (input(&object), compiler.into_variables());
    let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
    let costs = expressions.each_ref().map(|expression| {
        let before = evaluation.budget();
        evaluation.evaluate(expression).unwrap().unwrap();
        before - evaluation.budget()
    });
    // The variable and a field of it, a call, a comparison.
    assert_eq!(costs[1], 4);
    assert!(costs[0] > 40, "{costs:?}");
    let mut poor = Evaluation::new(&input, &variables, 20, None);
    assert_eq!(poor.evaluate(&expressions[0]).unwrap_err(), OutOfBudget);
}

#[test]
fn patches_are_json() {
    let with = Declarations { patches: true, ..Declarations::default() };
    let compiler = Compiler::new();
    let object = json!({"a": {"b": [1, 2.5, "x"]}, "n": 9_007_199_254_740_993_i64});
    let input = input(&object);
    let variables = Variables::default();
    let json = |source: &str, output: Output, numbers: Numbers| {
        let expression = compiler.compile(source, output, with);
        assert_eq!(expression.error(), None, "{source}");
        let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
        evaluation.evaluate(&expression).unwrap().unwrap().to_json(numbers).map_err(|error| error.to_string())
    };
    let configuration = "Object{spec: Object.spec{a: object.a, list: [Object.spec.list{n: 1}], ?no: optional.none(), \
                         m: {'k': 2.0}}}";
    assert_eq!(
        json(configuration, Output::Configuration, Numbers::Exact),
        Ok(json!({"spec": {"a": {"b": [1, 2.5, "x"]}, "list": [{"n": 1}], "m": {"k": 2}}}))
    );
    let operations = "[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/~b'), value: object.n}]";
    let written = |n: Json| Ok(json!([{"op": "add", "path": "/a~1~0b", "value": n}]));
    assert_eq!(json(operations, Output::Operations, Numbers::Safe), written(json!("9007199254740993")));
    assert_eq!(
        json(operations, Output::Operations, Numbers::Exact),
        written(json!(9_007_199_254_740_993_i64))
    );
    let error = json("Object{a: url('https://a/')}", Output::Configuration, Numbers::Exact).unwrap_err();
    assert_eq!(error, "unsupported conversion from 'kubernetes.URL' to google.protobuf.Value");
}

#[test]
fn the_types_of_patches_are_named_as_their_fields() {
    let with = Declarations { patches: true, ..Declarations::default() };
    let (compiler, variables) = (Compiler::new(), Variables::default());
    let names = |source: &str| {
        let expression = compiler.compile(source, Output::Configuration, with);
        let input = input(&NULL);
        let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
        match evaluation.evaluate(&expression).unwrap().unwrap() {
            Value::Library(Library::Message(message)) => NameCheck::default().check(&message),
            other => panic!("no object: {other}"),
        }
    };
    assert_eq!(names("Object{a: [Object.a{b: {'k': Object.a.b{}}}]}"), Ok(()));
    assert_eq!(
        names("Object{a: Object.b{}, c: [Object.c.d{}]}").unwrap_err(),
        "unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path from root Object \
         type\nunexpected type name \"Object.c.d\", expected \"Object.c\", which matches field name path from root \
         Object type"
    );
}

struct Only(&'static str);

impl Authorize for Only {
    fn authorize(&self, request: &AccessRequest) -> Decision {
        Decision { allowed: request.verb == self.0 && request.resource == "pods", ..Decision::default() }
    }
}

#[test]
fn expressions_without_an_authorizer_cannot_ask() {
    let with = Declarations { authorizer: true, ..Declarations::default() };
    let mut compiler = Compiler::with_variables();
    compiler.add_variable("may", "authorizer.requestResource.check('get').allowed()", with).unwrap();
    let expression = compiler.compile("variables.may", Output::Any, Declarations::default());
    let variables = compiler.into_variables();
    let asked = |authorizer| {
        let input = Input { authorizer, ..input(&NULL) };
        let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
        evaluation.evaluate(&expression).unwrap().map(|value| value.as_bool())
    };
    let pods = AccessRequest { resource: "pods".to_owned(), ..AccessRequest::default() };
    let values = |verb| {
        let authorizer: Arc<dyn Authorize> = Arc::new(Only(verb));
        let resource = Check::of_resource(Arc::clone(&authorizer), pods.clone());
        Some((Check::new(authorizer).into_value(), resource.into_value()))
    };
    assert_eq!(asked(values("get")), Ok(Some(true)));
    assert_eq!(asked(values("list")), Ok(Some(false)));
    let error = asked(None).unwrap_err();
    assert!(error.contains("no such attribute(s): authorizer.requestResource"), "{error}");
}

#[test]
fn the_last_declaration_of_a_variable_counts() {
    assert_eq!(evaluate(&[("a", "1"), ("a", "'x'")], "variables.a", &NULL), Ok("x".to_owned()));
    let variables = [("a", "1"), ("b", "variables.a"), ("a", "2")];
    assert_eq!(evaluate(&variables, "variables.b + variables.a", &NULL), Ok("4".to_owned()));
    let error = evaluate(&[("a", "1"), ("a", "variables.a + 1")], "variables.a", &NULL).unwrap_err();
    assert!(error.ends_with("the variable is declared twice"), "{error}");
}

#[test]
fn the_variables_together_are_a_value() {
    let variables = [("a", "1"), ("b", "dyn(variables).a + 1"), ("c", "[variables]")];
    let cases = [
        ("dyn(variables).b", Ok("2")),
        ("dyn(variables)['b']", Ok("2")),
        ("variables.c[0].b + dyn([variables])[0].a", Ok("3")),
        ("[variables].map(v, v.b)[0]", Ok("2")),
        ("has(dyn(variables).a) && !has(dyn(variables).z)", Ok("true")),
        ("dyn(variables).?a.orValue(7)", Ok("1")),
        ("dyn(variables).?z.orValue(7)", Ok("7")),
        ("variables == variables", Ok("true")),
        ("dyn(variables).z", Err("no such key: z")),
        ("variables.c[0].c", Err("no such key: c")),
    ];
    for (source, expected) in cases {
        let found = evaluate(&variables, source, &NULL);
        match expected {
            Ok(expected) => assert_eq!(found.as_deref(), Ok(expected), "{source}"),
            Err(why) => {
                assert!(found.as_ref().is_err_and(|error| error.ends_with(why)), "{source}: {found:?}");
            }
        }
    }
    let error = evaluate(&[("a", "1"), ("a", "dyn(variables).a")], "variables.a", &NULL).unwrap_err();
    assert!(error.ends_with("the variable is declared twice"), "{error}");
}

#[test]
fn short_expressions_end_at_an_interrupt() {
    let compiler = Compiler::new();
    let expression = compiler.compile("true", Output::Bool, Declarations::default());
    let (input, variables) = (input(&NULL), compiler.into_variables());
    let is_over = std::cell::Cell::new(false);
    let interrupt = || is_over.get();
    let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, Some(&interrupt));
    assert!(evaluation.evaluate(&expression).unwrap().is_ok());
    is_over.set(true);
    let error = evaluation.evaluate(&expression).unwrap().map(|value| value.to_string()).unwrap_err();
    assert_eq!(error, "expression 'true' resulted in error: operation interrupted");
}

#[test]
fn the_values_of_an_encoder_are_limited_together() {
    let text = Value::text("x".repeat(3 << 20));
    let mut encoder = Encoder::new(Numbers::Exact);
    assert!(encoder.value(&text).is_ok() && encoder.value(&text).is_ok());
    assert!(encoder.value(&text).unwrap_err().to_string().contains("too large"));
}

#[test]
fn a_variable_that_uses_its_earlier_declaration_fails() {
    let variables = [("a", "1"), ("b", "variables.a"), ("a", "variables.b")];
    let error = evaluate(&variables, "variables.b", &NULL).unwrap_err();
    assert!(
        error.ends_with("composited variable \"a\" fails to compile: the variable is declared twice"),
        "{error}"
    );
}

#[test]
fn long_chains_of_variables_end() {
    let with = Declarations::default();
    let mut compiler = Compiler::with_variables();
    compiler.add_variable("v0", "[object]", with).unwrap();
    let mut failed = 0;
    for index in 1..5000 {
        let source = format!("[variables.v{}]", index - 1);
        failed += usize::from(compiler.add_variable(&format!("v{index}"), &source, with).is_err());
    }
    // A chain begins anew behind a variable that is refused.
    assert!(failed > 10, "the variables that are nested too deep are refused: {failed}");
    let expression = compiler.compile("variables.v4999 == variables.v4999", Output::Bool, with);
    let (input, variables) = (input(&NULL), compiler.into_variables());
    let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
    assert!(evaluation.evaluate(&expression).unwrap().is_err());
}

#[test]
fn variables_that_hold_much_memory_end() {
    let with = Declarations::default();
    let mut compiler = Compiler::with_variables();
    let mut sum = String::from("0");
    for index in 0..200 {
        let source =
            "lists.range(1000).map(a, 'x'.replace('', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'))";
        compiler.add_variable(&format!("v{index}"), source, with).unwrap();
        write!(sum, " + variables.v{index}.size()").unwrap();
    }
    let expression = compiler.compile(&sum, Output::Any, with);
    let (input, variables) = (input(&NULL), compiler.into_variables());
    let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
    let start = Instant::now();
    let error = evaluation.evaluate(&expression).unwrap().map(|value| value.to_string()).unwrap_err();
    assert!(error.contains("the result is too large"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn shared_parts_of_a_patch_are_not_written_out_without_end() {
    let with = Declarations { patches: true, ..Declarations::default() };
    let mut compiler = Compiler::with_variables();
    compiler.add_variable("v0", "['xxxxxxxxxxxxxxxx']", Declarations::default()).unwrap();
    for index in 1..40 {
        let source = format!("[variables.v{0}, variables.v{0}]", index - 1);
        compiler.add_variable(&format!("v{index}"), &source, Declarations::default()).unwrap();
    }
    let expression = compiler.compile("Object{a: variables.v39}", Output::Configuration, with);
    let (input, variables) = (input(&NULL), compiler.into_variables());
    let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
    let value = evaluation.evaluate(&expression).unwrap().unwrap();
    let start = Instant::now();
    assert!(value.to_json(Numbers::Exact).unwrap_err().to_string().contains("too large"));
    let Value::Library(Library::Message(message)) = &value else { panic!("no object") };
    assert_eq!(NameCheck::default().check(message), Ok(()));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
