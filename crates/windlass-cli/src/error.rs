//! The error of the command, as text or as JSON.

use std::fmt;

use serde_json::{Value, json};

/// Any error. Errors are only printed.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with a remedy beside the message.
#[derive(Debug)]
pub(crate) struct Advice {
    message: String,
    hint: String,
}

impl Advice {
    /// Returns an error with a message, and with a sentence of advice.
    #[expect(clippy::new_ret_no_self, reason = "callers need the error of the command")]
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Self { message: message.into(), hint: hint.into() }.into()
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hint = self.hint.chars();
        let first = hint.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        write!(f, "{}. {first}{}", self.message, hint.as_str())
    }
}

impl std::error::Error for Advice {}

/// Returns an error as the JSON object of `--output json`: `message`, `causes` (outermost first), `hint` (or null) and `exitCode`.
pub(crate) fn to_json(error: &Error, exit_code: u8) -> Value {
    let (message, hint) = match error.downcast_ref::<Advice>() {
        Some(advice) => (advice.message.clone(), Some(advice.hint.clone())),
        None => (error.to_string(), None),
    };
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    json!({ "error": { "message": message, "causes": causes, "hint": hint, "exitCode": exit_code } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_as_json_has_its_causes_and_what_to_do() {
        let advice = Advice::new("no project", "begin a project with `windlass init`");
        assert_eq!(advice.to_string(), "no project. Begin a project with `windlass init`");
        let expected = json!({ "error": {
            "message": "no project", "causes": [], "hint": "begin a project with `windlass init`", "exitCode": 1,
        } });
        assert_eq!(to_json(&advice, 1), expected);

        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::num::ParseIntError);
        let error: Error = Outer("x".parse::<i32>().expect_err("no number")).into();
        let json = to_json(&error, 2);
        assert_eq!(json["error"]["causes"], json!(["invalid digit found in string"]));
        assert_eq!((&json["error"]["hint"], &json["error"]["exitCode"]), (&Value::Null, &json!(2)));
    }
}
