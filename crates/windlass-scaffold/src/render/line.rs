//! Code that rustfmt breaks into several lines when a name is long.

/// The width of a line, for rustfmt.
const LINE: usize = 100;

/// The width up to which rustfmt keeps the arguments of a call, or a chain of calls, on one line.
const SHORT: usize = 60;

/// The longest kind for which the templates have line breaks. Files of longer kinds are marked, and rustfmt
/// leaves marked files alone.
const LONGEST_KIND: usize = 36;

/// Returns whether rustfmt would break more lines of a kind's files than the templates do.
pub(super) fn is_too_long(kind: &str) -> bool {
    kind.len() > LONGEST_KIND
}

/// Returns a declaration that imports some names of a module.
pub(super) fn import(module: &str, names: &[&str]) -> String {
    let line = match names {
        [name] => format!("use {module}::{name};"),
        names => format!("use {module}::{{{}}};", names.join(", ")),
    };
    // rustfmt leaves room for the end of the list.
    if line.len() <= LINE - 2 || names.len() == 1 {
        return line;
    }
    format!("use {module}::{{\n    {},\n}};", names.join(", "))
}

/// Returns the head of a function.
pub(super) fn signature(head: &str, parameters: &[String], end: &str) -> String {
    let line = format!("{head}({}){end} {{", parameters.join(", "));
    if line.len() <= LINE {
        return line;
    }
    format!("{head}(\n    {},\n){end} {{", parameters.join(",\n    "))
}

/// Returns a statement that binds a value, inside of a function in a module.
pub(super) fn binding(name: &str, value: &str) -> String {
    let line = format!("        let {name} = {value};");
    if line.len() <= LINE {
        return line;
    }
    format!("        let {name} =\n            {value};")
}

/// Returns a statement that binds a new object with an empty spec.
pub(super) fn new_object(path: &str) -> String {
    let spec = format!("{path}Spec::default()");
    let arguments = format!("\"example\", {spec}");
    let line = binding("object", &format!("{path}::new({arguments})"));
    if arguments.len() <= SHORT && line.lines().all(|line| line.len() <= LINE) {
        return line;
    }
    format!("        let object = {path}::new(\n            \"example\",\n            {spec},\n        );")
}

/// Returns an expression of two chained calls, for the value of a function.
pub(super) fn chain(first: &str, second: &str) -> String {
    let line = format!("    {first}{second}");
    if line.len() <= LINE { line } else { format!("    {first}\n        {second}") }
}

/// Returns the statement of a test that installs the CRD of a kind.
pub(super) fn install(kind: &str) -> String {
    let call = format!("install_crd::<{kind}>()");
    let line = format!("cluster.{call}.await");
    if line.len() <= SHORT {
        return format!("        {line};");
    }
    format!("        cluster\n            .{call}\n            .await;")
}

/// Returns the body of `main`: registers the parts of a crate, and runs the manager.
pub(super) fn main_body(name: &str) -> String {
    let registered = format!("{name}::register(manager, &setup)?");
    if registered.len() + ".run().await".len() <= SHORT {
        return format!("    {registered}.run().await");
    }
    format!("    {registered}\n        .run()\n        .await")
}
