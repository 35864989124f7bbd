//! The file of `--config`: values of flags, with the flags' names in camelCase.

use std::{ffi::OsString, fmt::Display, path::Path};

use clap::{Arg, ArgAction, Command, error::ErrorKind};
use serde_json::{Map, Value, json};

/// The name of the flag with the path of the file. The file cannot set this flag.
pub(super) const FLAG: &str = "config";

/// The environment variable that names the file.
pub(super) const VARIABLE: &str = "WINDLASS_CONFIG";

/// A configuration file: values that take the place of the defaults of flags.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The path, for messages.
    name: String,
    values: Map<String, Value>,
}

impl ConfigFile {
    /// Reads a file. An empty file sets nothing.
    pub(super) fn read(path: &Path) -> Result<Self, clap::Error> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| refuse(&name, error))?;
        Self::parse(name, &text)
    }

    fn parse(name: String, text: &str) -> Result<Self, clap::Error> {
        let value = if text.trim().is_empty() {
            Value::Null
        } else {
            serde_saphyr::from_str(text).map_err(|error| refuse(&name, error))?
        };
        match value {
            Value::Null => Ok(Self { name, values: Map::new() }),
            Value::Object(values) => Ok(Self { name, values }),
            _ => Err(refuse(&name, "expected keys and values, such as `leaderElect: true`")),
        }
    }

    /// Makes the values of the file the defaults of the command's flags.
    ///
    /// # Errors
    /// A key is not the name of a flag, or a flag does not accept a value.
    pub(super) fn apply(&self, mut command: Command) -> Result<Command, clap::Error> {
        let mut line = vec![OsString::from("operator")];
        let mut defaults = Vec::new();
        for (key, value) in &self.values {
            let arg = self.flag(&command, key)?;
            let texts = self.texts(arg, key, value)?;
            line.extend(words(arg, &texts));
            defaults.push((arg.get_id().clone(), texts));
        }
        // Defaults that a flag does not accept are a mistake of the program for clap: the values are checked as words of a command line.
        let optional = command.clone().mut_args(|arg| arg.required(false)).disable_help_flag(true);
        let checked = optional.ignore_errors(false).try_get_matches_from(line);
        checked.map_err(|error| refuse(&self.name, first_line(&error)))?;
        for (id, texts) in defaults {
            command = command.mut_arg(id, |arg| arg.required(false).default_values(texts));
        }
        Ok(command)
    }

    /// Finds the flag of a key.
    fn flag<'a>(&self, command: &'a Command, key: &str) -> Result<&'a Arg, clap::Error> {
        flags(command).find(|(name, _)| name == key).map(|(_, arg)| arg).ok_or_else(|| {
            let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
            let meant = flags(command).find(|(name, _)| plain(name) == plain(key));
            let hint = meant.map_or_else(
                || "; `config-schema` prints those that there are".to_owned(),
                |(name, _)| format!("; did you mean {name:?}?"),
            );
            refuse(&self.name, format!("unknown key {key:?}{hint}"))
        })
    }

    /// Returns the values of a key as texts: the items of a list, or a single value.
    fn texts(&self, arg: &Arg, key: &str, value: &Value) -> Result<Vec<String>, clap::Error> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        };
        match value {
            Value::Array(items) if is_list(arg) => items.iter().map(text).collect(),
            Value::Array(_) => None,
            one => text(one).map(|text| vec![text]),
        }
        .filter(|texts| texts.iter().all(|text| is_accepted(arg, text)))
        .ok_or_else(|| {
            let wanted = match arg.get_action() {
                ArgAction::SetTrue | ArgAction::SetFalse => "true or false",
                ArgAction::Count => "a number from 0 to 255",
                _ if is_list(arg) => "a text, or a list of texts",
                _ => "a text, a number, true or false",
            };
            refuse(&self.name, format!("{key}: expected {wanted}"))
        })
    }
}

/// Returns the file that a command line or the environment names. Mistakes in the rest of the line are not noticed here.
pub(super) fn named_by(line: &[OsString], variable: Option<OsString>) -> Option<OsString> {
    let mut words = line.iter().skip(1).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else { continue };
        if text == "--config" {
            return words.next().cloned();
        }
        if let Some(path) = text.strip_prefix("--config=") {
            return Some(path.into());
        }
    }
    variable.filter(|path| !path.is_empty())
}

/// Returns the JSON schema of the file.
pub(super) fn schema(command: &Command) -> Value {
    let properties: Map<String, Value> = flags(command).map(|(key, arg)| (key, property(arg))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The configuration file of an operator",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn property(arg: &Arg) -> Value {
    let mut property = json!({ "type": type_of(arg) });
    let choices: Vec<String> =
        arg.get_possible_values().iter().map(|choice| choice.get_name().to_owned()).collect();
    if !choices.is_empty() && type_of(arg) == "string" {
        property["enum"] = json!(choices);
    }
    if is_list(arg) {
        property = json!({ "type": "array", "items": property });
    }
    if let Some(help) = arg.get_help() {
        property["description"] = json!(help.to_string());
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|text| text.to_string_lossy()).collect();
    match &defaults[..] {
        [] => {}
        all if is_list(arg) => property["default"] = json!(all),
        [one, ..] => property["default"] = typed(one, type_of(arg)),
    }
    property
}

fn typed(text: &str, kind: &str) -> Value {
    let value = if kind == "string" { None } else { serde_json::from_str(text).ok() };
    value.unwrap_or_else(|| json!(text))
}

fn type_of(arg: &Arg) -> &'static str {
    let parser = arg.get_value_parser().type_id();
    let is = |ids: &[std::any::TypeId]| ids.iter().any(|id| parser == *id);
    macro_rules! ids {
        ($($kind:ty),*) => { [$(std::any::TypeId::of::<$kind>()),*] };
    }
    match arg.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse => "boolean",
        ArgAction::Count => "integer",
        _ if is(&ids![bool]) => "boolean",
        _ if is(&ids![u8, u16, u32, u64, usize, i8, i16, i32, i64, isize]) => "integer",
        _ if is(&ids![f32, f64]) => "number",
        _ => "string",
    }
}

fn is_list(arg: &Arg) -> bool {
    let several = arg.get_num_args().is_some_and(|number| number.max_values() > 1);
    several || arg.get_value_delimiter().is_some() || matches!(arg.get_action(), ArgAction::Append)
}

/// Returns the flags that a file may set, with the key of each flag.
fn flags(command: &Command) -> impl Iterator<Item = (String, &Arg)> {
    command.get_arguments().filter_map(|arg| {
        let name = arg.get_long().filter(|name| *name != FLAG)?;
        let shows = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        (!shows).then(|| (camel_case(name), arg))
    })
}

fn camel_case(name: &str) -> String {
    let mut upper = false;
    let letter = |letter: char| {
        let begins = std::mem::replace(&mut upper, letter == '-');
        match letter {
            '-' => None,
            letter if begins => Some(letter.to_ascii_uppercase()),
            letter => Some(letter),
        }
    };
    name.chars().filter_map(letter).collect()
}

/// Returns the words of a command line that set a flag.
fn words(arg: &Arg, texts: &[String]) -> Vec<OsString> {
    let name = arg.get_long().unwrap_or_default();
    match arg.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count => Vec::new(),
        _ => texts.iter().map(|text| format!("--{name}={text}").into()).collect(),
    }
}

/// Returns whether a flag accepts a value. The flag is not on the command line.
fn is_accepted(arg: &Arg, text: &str) -> bool {
    match arg.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse => text.parse::<bool>().is_ok(),
        ArgAction::Count => text.parse::<u8>().is_ok(),
        _ => true,
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn refuse(file: &str, reason: impl Display) -> clap::Error {
    super::refusal(ErrorKind::InvalidValue, format_args!("configuration file {file}: {reason}"))
}
