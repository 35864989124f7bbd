//! Compiles and evaluates expressions for tests in other languages: a JSON object a line in, one out.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use windlass_cel::{
    AccessRequest, Authorize, Check, Decision, Env, Issues, Limits, Program, Schema, SizeHints, Type, Value,
};

/// A compiled expression, and the schema of its variables.
struct Compiled {
    program: Program,
    schema: Option<Arc<Schema>>,
}

fn main() -> io::Result<()> {
    let mut programs = Vec::new();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Json = serde_json::from_str(&line?)?;
        let reply = match request["op"].as_str() {
            Some("compile") => compile(&request, &mut programs),
            Some("eval") => evaluate(&request, &programs),
            _ => json!({"error": "unknown operation"}),
        };
        serde_json::to_writer(&mut out, &reply)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

fn text<'a>(request: &'a Json, name: &str) -> &'a str {
    request[name].as_str().unwrap_or_default()
}

fn flag(request: &Json, name: &str) -> bool {
    request[name].as_bool().unwrap_or_default()
}

/// Compiles an expression. With a schema, the variables are `self` and `oldSelf`.
fn compile(request: &Json, programs: &mut Vec<Compiled>) -> Json {
    let mut env = Env::kubernetes().with_patches();
    let mut schema = None;
    if let Some(source) = request.get("schema") {
        let compiled = Schema::compile(source, flag(request, "resource"));
        let known = Type::of_schema(&compiled, "selfType1");
        let old = if flag(request, "optional") { Type::optional(known.clone()) } else { known.clone() };
        env = env.with_variable("self", known).with_variable("oldSelf", old);
        schema = Some(compiled);
    }
    if flag(request, "authorizer") {
        env = env
            .without_folding()
            .without_literal_checks()
            .with_variable("authorizer", Type::Object("kubernetes.authorization.Authorizer"));
    }
    let program = match env.compile(text(request, "expression")) {
        Ok(program) => program,
        Err(issues) => return json!({"error": issues.to_string(), "issues": positions(&issues)}),
    };
    let cost = match &schema {
        Some(schema) => program.estimate(&**schema),
        None => program.estimate(&TwelveCharacters),
    };
    let reply = json!({
        "id": programs.len(),
        "output": program.output().to_string(),
        "usesOldSelf": program.uses("oldSelf"),
        "min": cost.min.to_string(),
        "max": cost.max.to_string(),
        "cardinality": schema.as_ref().map_or(0, |schema| schema.max_cardinality()).to_string(),
        "failed": program.constant_error().map(ToString::to_string),
    });
    programs.push(Compiled { program, schema });
    reply
}

/// Evaluates a program.
fn evaluate(request: &Json, programs: &[Compiled]) -> Json {
    let id = request["id"].as_u64().unwrap_or_default() as usize;
    let Compiled { program, schema } = &programs[id];
    let limit = text(request, "limit").parse().unwrap_or(u64::MAX);
    let mut variables = Variables(Vec::new());
    if let Some(schema) = schema {
        let optional = flag(request, "optional");
        variables.0.push(request.get("self").map(|value| Value::with_schema(value, schema)));
        let old = request.get("oldSelf").map(|value| Value::with_schema(value, schema));
        variables.0.push(match old {
            None if optional => Some(Ok(Value::Optional(None))),
            Some(Ok(old)) if optional => Some(Ok(Value::Optional(Some(Arc::new(old))))),
            old => old,
        });
    }
    if schema.is_none() {
        variables.0.push(Some(Ok(Check::new(Arc::new(AlwaysAllow)).into_value())));
    }
    let (result, cost) = program.evaluate(&variables, &Limits::of_cost(limit));
    match result {
        Ok(value) => {
            json!({
                "bool": value.as_bool(),
                "text": value.to_string(),
                "type": value.type_name(),
                "value": typed(&value),
                "cost": cost.to_string(),
            })
        }
        Err(error) => json!({"error": error.to_string(), "cost": cost.to_string()}),
    }
}

/// The values of the variables.
struct Variables<'a>(Vec<Option<Result<Value<'a>, windlass_cel::Error>>>);

impl<'a> windlass_cel::Activation<'a> for Variables<'a> {
    fn get(&self, index: usize) -> Option<Result<Value<'a>, windlass_cel::Error>> {
        self.0.get(index).cloned().flatten()
    }
}

/// Sizes for tests: texts and bytes have at most twelve characters.
struct TwelveCharacters;

impl SizeHints for TwelveCharacters {
    fn max_size(&self, _: &[Arc<str>], known: &Type) -> Option<u64> {
        matches!(known, Type::String | Type::Bytes).then_some(12)
    }
}

/// An authorizer for tests.
struct AlwaysAllow;

impl Authorize for AlwaysAllow {
    fn authorize(&self, _: &AccessRequest) -> Decision {
        Decision { allowed: true, ..Decision::default() }
    }
}

fn positions(issues: &Issues) -> Json {
    let position = |issue: &&windlass_cel::Issue| json!({"line": issue.line, "column": issue.column as i32, "message": issue.message});
    issues.sorted().iter().map(position).collect()
}

/// Writes a value with its type.
fn typed(value: &Value<'_>) -> Json {
    let content = match value {
        Value::List(list) => list.iter().filter_map(Result::ok).map(|element| typed(&element)).collect(),
        Value::Optional(Some(value)) => typed(value),
        Value::Optional(None) => Json::Null,
        other => Json::from(other.to_string()),
    };
    json!({"t": value.type_name(), "v": content})
}
