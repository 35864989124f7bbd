//! The rules of a schema, and the values of an object at which the server evaluates the rules.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// A step from a schema to a schema below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Property(String),
    Items,
    Values,
}

/// A rule of a schema.
pub(super) struct Rule {
    /// The path of the schema.
    pub(super) steps: Vec<Step>,
    pub(super) source: String,
    /// The message of a violation.
    pub(super) message: String,
    /// The path of the field in the error, from the value on.
    field: String,
    pub(super) uses_old: bool,
    /// The texts and numbers that the rule names.
    pub(super) words: Vec<String>,
}

/// Returns the rules at all levels of a schema.
pub(super) fn collect(schema: &Value) -> Vec<Rule> {
    let mut found = Vec::new();
    visit(schema, &mut Vec::new(), &mut found);
    found
}

fn visit(schema: &Value, steps: &mut Vec<Step>, found: &mut Vec<Rule>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        found.push(Rule::new(rule, steps));
    }
    let mut below = |step: Step, schema: &Value| {
        steps.push(step);
        visit(schema, steps, found);
        steps.pop();
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        below(Step::Property(name.clone()), property);
    }
    if schema["items"].is_object() {
        below(Step::Items, &schema["items"]);
    }
    if schema["additionalProperties"].is_object() {
        below(Step::Values, &schema["additionalProperties"]);
    }
}

static WORD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"'([^']*)'|"([^"]*)"|\b(\d+)\b"#).unwrap_or_else(|error| unreachable!("{error}"))
});

impl Rule {
    fn new(json: &Value, steps: &[Step]) -> Self {
        let text = |name: &str| json[name].as_str().unwrap_or_default().trim().to_owned();
        let source = text("rule");
        let message = text("message");
        let words = WORD.captures_iter(&source).filter_map(|found| found.iter().skip(1).flatten().next());
        Self {
            steps: steps.to_vec(),
            message: if message.is_empty() { format!("failed rule: {source}") } else { message },
            field: text("fieldPath"),
            uses_old: source.contains("oldSelf"),
            words: words.map(|word| word.as_str().to_owned()).collect(),
            source,
        }
    }

    /// Returns whether the rule is about the status of an object.
    pub(super) fn is_of_status(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Property(name)) if name == "status")
    }

    /// Calls a function with each value of an object at which the server evaluates the rule, and with the value's path.
    pub(super) fn values<'a>(&self, object: &'a Value, found: &mut impl FnMut(&str, &'a Value)) {
        descend(&self.steps, object, &mut String::new(), found);
    }

    /// Returns whether an object has a value at which the server evaluates the rule.
    pub(super) fn applies(&self, object: &Value) -> bool {
        let mut applies = false;
        self.values(object, &mut |_, _| applies = true);
        applies
    }

    /// Returns whether a cause of a refused object is a violation of the rule.
    pub(super) fn is_violated(&self, object: &Value, cause: &Value) -> bool {
        let field = cause["field"].as_str().unwrap_or_default();
        let message = cause["message"].as_str().unwrap_or_default();
        if !message.ends_with(&self.message) {
            return false;
        }
        let mut violated = false;
        self.values(object, &mut |path, _| {
            let path = match (path, self.field.as_str()) {
                ("", "") => "<nil>".to_owned(),
                (path, "") => path.to_owned(),
                (path, field) => format!("{path}{field}").trim_start_matches('.').to_owned(),
            };
            violated |= path == field;
        });
        violated
    }
}

fn descend<'a>(steps: &[Step], value: &'a Value, path: &mut String, found: &mut impl FnMut(&str, &'a Value)) {
    if value.is_null() {
        return;
    }
    let Some((step, rest)) = steps.split_first() else {
        found(path, value);
        return;
    };
    let length = path.len();
    let mut into = |part: String, value: &'a Value| {
        path.push_str(&part);
        descend(rest, value, path, found);
        path.truncate(length);
    };
    match (step, value) {
        (Step::Property(name), Value::Object(fields)) => {
            if let Some(field) = fields.get(name) {
                into(if length == 0 { name.clone() } else { format!(".{name}") }, field);
            }
        }
        (Step::Values, Value::Object(fields)) => {
            fields.iter().for_each(|(name, field)| into(format!("[{name}]"), field));
        }
        (Step::Items, Value::Array(items)) => {
            items.iter().enumerate().for_each(|(index, item)| into(format!("[{index}]"), item));
        }
        _ => {}
    }
}
