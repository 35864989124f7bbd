//! The tests of the specification, from the Go module `cel.dev/expr`.

mod convert;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use windlass_cel::{Env, Limits, Value};

use crate::{Result, control_plane};
use convert::{type_of, value_of};

const VERSION: &str = "v0.25.3";

/// Files of features that only other implementations have, or that need messages.
const LEFT_OUT: [(&str, &str); 5] = [
    ("block_ext", "the form of an optimiser"),
    ("network_ext", "Kubernetes has its own addresses"),
    ("proto2", "messages"),
    ("proto3", "messages"),
    ("proto2_ext", "messages"),
];

/// Tests that fail as they fail with cel-go 0.26, the version in Kubernetes, with its options.
const AS_CEL_GO: [(&str, &str); 8] = [
    ("fields/qualified_identifier_resolution/map_value_repeat_key", "a repeated key replaces the entry"),
    ("lists_ext/range/negative_error", "an empty list"),
    ("optionals/optionals/map_null_entry_no_such_key", "absent"),
    ("optionals/optionals/map_present_key_invalid_field", "absent"),
    ("string_ext/value_errors/indexof_out_of_range", "-1"),
    ("string_ext/value_errors/lastindexof_out_of_range", "-1"),
    ("string_ext/format/", "version 2 of the extension; the tests are of version 4"),
    ("type_deductions/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate", "null"),
];

/// The counts of a file.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    as_cel_go: usize,
    left_out: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, as_cel_go, left_out } = self;
        write!(f, "{passed:>5} passed {failed:>3} failed {as_cel_go:>3} as cel-go {left_out:>4} left out")
    }
}

pub(super) fn run(verbose: bool) -> Result {
    let files = tests()?;
    let mut all = BTreeMap::new();
    for file in &files {
        let name = file["name"].as_str().unwrap_or_default().to_owned();
        let counts: &mut Counts = all.entry(name.clone()).or_default();
        for section in array(file, "section") {
            for test in array(section, "test") {
                let reason = LEFT_OUT.iter().any(|(file, _)| *file == name);
                match if reason { Outcome::LeftOut } else { run_test(test) } {
                    Outcome::Passed => counts.passed += 1,
                    Outcome::LeftOut => counts.left_out += 1,
                    Outcome::Failed(message) => {
                        let part = |json: &Json| json["name"].as_str().unwrap_or_default().to_owned();
                        let full = format!("{name}/{}/{}", part(section), part(test));
                        if let Some((_, result)) = AS_CEL_GO.iter().find(|(known, _)| full.starts_with(known))
                        {
                            counts.as_cel_go += 1;
                            println!("as cel-go: {full}: {result}");
                            continue;
                        }
                        counts.failed += 1;
                        if verbose {
                            println!("{full}: {}\n    {message}", test["expr"]);
                        }
                    }
                }
            }
        }
    }
    let mut total = Counts::default();
    for (name, counts) in &all {
        println!("{counts}  {name}");
        total.passed += counts.passed;
        total.failed += counts.failed;
        total.as_cel_go += counts.as_cel_go;
        total.left_out += counts.left_out;
    }
    println!("{total}  all");
    let failed = total.failed;
    if failed == 0 { Ok(()) } else { Err(format!("{failed} tests have failed").into()) }
}

fn array<'a>(json: &'a Json, name: &str) -> impl Iterator<Item = &'a Json> {
    json[name].as_array().into_iter().flatten()
}

/// Returns the test files as JSON.
fn tests() -> Result<Vec<Json>> {
    let folder = control_plane::cache_folder()?.join(format!("cel-spec-{VERSION}"));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("main.go"), include_str!("spec/main.go"))?;
    let module = format!("module spec\n\ngo 1.24\n\nrequire cel.dev/expr {VERSION}\n");
    fs::write(folder.join("go.mod"), module)?;
    go(&folder, &["mod", "tidy"])?;
    let source = PathBuf::from(go(&folder, &["list", "-m", "-f", "{{.Dir}}", "cel.dev/expr"])?.trim());
    let data = source.join("tests/simple/testdata");
    let output = go(&folder, &["run", ".", &data.to_string_lossy()])?;
    output.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn go(folder: &Path, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new("go").args(arguments).current_dir(folder).env("GOFLAGS", "-mod=mod").output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The outcome of a test.
enum Outcome {
    Passed,
    Failed(String),
    /// The test needs messages.
    LeftOut,
}

fn run_test(test: &Json) -> Outcome {
    match try_test(test) {
        Ok(Some(())) => Outcome::Passed,
        Ok(None) => Outcome::LeftOut,
        Err(message) => Outcome::Failed(message),
    }
}

/// Runs a test. `None` if the test needs messages.
fn try_test(test: &Json) -> std::result::Result<Option<()>, String> {
    let expression = test["expr"].as_str().unwrap_or_default();
    let expects_error = test.get("evalError").is_some() || test.get("anyEvalErrors").is_some();
    if needs_messages(test) {
        return Ok(None);
    }
    let mut env = Env::extended().with_container(test["container"].as_str().unwrap_or_default());
    let mut names = Vec::new();
    for declaration in array(test, "typeEnv") {
        let Some(name) = declaration["name"].as_str() else { continue };
        let Some(variable) = declaration.get("ident") else { return Ok(None) };
        let Some(known) = type_of(&variable["type"]) else { return Ok(None) };
        env = env.with_variable(name, known);
        names.push(name.to_owned());
    }
    let mut values = Vec::new();
    let bindings = test["bindings"].as_object();
    for name in &names {
        let bound = bindings.and_then(|bindings| bindings.get(name));
        values.push(bound.and_then(|bound| value_of(&bound["value"])));
    }
    let unchecked = test["disableCheck"].as_bool().unwrap_or_default();
    if test["disableMacros"].as_bool().unwrap_or_default() {
        env = env.without_macros();
    }
    let compiled = if unchecked { env.compile_unchecked(expression) } else { env.compile(expression) };
    let program = match compiled {
        Ok(program) => program,
        // An error of a type that is found early is an error, too.
        Err(_) if expects_error => return Ok(Some(())),
        Err(issues) => return Err(issues.to_string()),
    };
    if let Some(known) = test["typedResult"].get("deducedType") {
        let expected = convert::type_text(known);
        let found = program.output().to_string();
        if expected != found {
            return Err(format!("expected the type {expected}, found {found}"));
        }
    }
    if test["checkOnly"].as_bool().unwrap_or_default() {
        return Ok(Some(()));
    }
    let activation = Bound(values);
    let (result, _) = program.evaluate(&activation, &Limits::of_cost(1_000_000));
    let expected = test.get("value").or_else(|| test["typedResult"].get("result"));
    match (result, expects_error) {
        (Err(_), true) => Ok(Some(())),
        (Ok(value), true) => Err(format!("expected an error, found {value:?}")),
        (Err(error), false) => Err(format!("failed: {error}")),
        (Ok(found), false) => {
            let expected = match expected {
                Some(expected) => value_of(expected).ok_or("a value that is not known")?,
                None => Value::Bool(true),
            };
            if convert::same(&expected, &found) {
                Ok(Some(()))
            } else {
                Err(format!("expected {expected:?}, found {found:?}"))
            }
        }
    }
}

/// Returns whether a test needs messages, enumerations, unknown values or other protobuf types.
fn needs_messages(test: &Json) -> bool {
    if test.get("unknown").is_some() || test.get("anyUnknowns").is_some() {
        return true;
    }
    let text = test.to_string();
    let expression = test["expr"].as_str().unwrap_or_default();
    let declares = array(test, "typeEnv").any(|declaration| declaration.get("function").is_some());
    let special = ["TestAllTypes", "messageType", "enumValue", "NestedTestAllTypes", "GlobalEnum"];
    let protobuf = [
        "google.protobuf.Any",
        "google.protobuf.Value",
        "google.protobuf.Struct",
        "google.protobuf.ListValue",
    ];
    let wrapper = expression.contains("google.protobuf.") && expression.contains('{');
    declares
        || wrapper
        || special.iter().any(|word| text.contains(word))
        || protobuf.iter().any(|word| text.contains(word))
        || text.contains("\"wrapper\"")
        || expression.contains("Value{")
        || expression.contains("Duration{")
}

/// The values of a test's variables.
struct Bound<'a>(Vec<Option<Value<'a>>>);

impl<'a> windlass_cel::Activation<'a> for Bound<'a> {
    fn get(&self, index: usize) -> Option<std::result::Result<Value<'a>, windlass_cel::Error>> {
        self.0.get(index).cloned().flatten().map(Ok)
    }
}
