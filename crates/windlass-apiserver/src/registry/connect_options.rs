//! `PodExecOptions` and similar kinds: the query of a connection as an object, for webhooks.

use serde_json::{Map, Value};
use windlass_kinds::Subresource;
use windlass_schema::go_quote;

use super::Call;
use crate::resource::api_version;
use crate::wire::ApiError;

/// Returns the options of a request as an object, in the version of the subresource.
///
/// # Errors
/// 400 if a port is not a number.
pub(super) fn read(call: &Call<'_>) -> Result<Value, ApiError> {
    let mut options = Map::new();
    if let Some(shown) = call.resource.subresource(&call.route.subresource) {
        options.insert("kind".to_owned(), shown.kind.clone().into());
        options.insert("apiVersion".to_owned(), api_version(&shown.group, &shown.version).into());
    }
    match call.route.subresource {
        Subresource::Exec => {
            add_streams(call, &mut options);
            let command: Vec<&str> = call.query.all("command").collect();
            options
                .insert("command".to_owned(), if command.is_empty() { Value::Null } else { command.into() });
        }
        Subresource::Attach => add_streams(call, &mut options),
        Subresource::PortForward => {
            let ports = ports(call)?;
            if !ports.is_empty() {
                options.insert("ports".to_owned(), ports.into());
            }
        }
        _ if !call.route.subpath.is_empty() => {
            options.insert("path".to_owned(), call.route.subpath.clone().into());
        }
        _ => {}
    }
    Ok(Value::Object(options))
}

/// Adds the streams and the container that the query asks for.
fn add_streams(call: &Call<'_>, options: &mut Map<String, Value>) {
    for stream in ["stdin", "stdout", "stderr", "tty"] {
        let value = call.query.get(stream);
        if value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false")) {
            options.insert(stream.to_owned(), true.into());
        }
    }
    let container = call.query.text("container");
    if !container.is_empty() {
        options.insert("container".to_owned(), container.into());
    }
}

/// Parses the ports. Each value of the query may be a list of ports.
fn ports(call: &Call<'_>) -> Result<Vec<u16>, ApiError> {
    let ports = call.query.all("ports").flat_map(|value| value.split(','));
    ports
        .map(|port| {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            port.parse().ok().filter(|_| is_number).ok_or_else(|| {
                let quoted = go_quote(port);
                ApiError::bad_request(format!(
                    "cannot convert to []int32: strconv.ParseUint: parsing {quoted}: {why}"
                ))
            })
        })
        .collect()
}
