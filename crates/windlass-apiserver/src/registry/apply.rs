//! Server-side apply: `PATCH` with a configuration.

use http::{Response, StatusCode};
use serde_json::Value;
use windlass_kinds::Subresource;
use windlass_schema::json_type;

use super::Call;
use super::decode::name_nothing;
use super::options::{FieldValidation, WriteOptions};
use super::update::expect_name;
use super::write::{self, Change};
use crate::body::Body;
use crate::meta;
use crate::wire::{self, ApiError};

pub(super) async fn apply(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse_apply(&call.query)?;
    let configuration = Configuration::read(call.body)?;
    let may_create = match call.route.subresource {
        Subresource::None => true,
        Subresource::Status => call.resource.strategy.config.create_on_update,
        _ => false,
    };
    loop {
        let view = call.state.store.view();
        let creates = may_create && view.get(&call.resource.storage, &call.key()).is_none();
        let applying = Applying { options, configuration: &configuration };
        let written = if creates {
            let object = applying.create(call).await?;
            write::create(call, object, options).await
        } else {
            write::update(call, options, applying).await
        };
        match written {
            Ok(stored) => {
                let code = if creates { StatusCode::CREATED } else { StatusCode::OK };
                return call.object(code, &stored).await;
            }
            // The object came or went in between. A webhook may refuse with the same reason.
            Err(error) if creates && error.reason() == "AlreadyExists" && call.is_there() => {}
            Err(error) if may_create && !creates && error.code() == 404 && !call.is_there() => {}
            Err(error) => return Err(error),
        }
    }
}

fn broken(why: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

/// Returns whether kube-apiserver takes a body for JSON: the first character is a brace.
fn is_json(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
}

/// The configuration of a request.
pub(super) struct Configuration {
    pub(super) value: Value,
    /// The errors about duplicate fields.
    duplicates: Vec<String>,
}

impl Configuration {
    /// Reads the body of a request. The outer error is about the syntax of YAML, and for every object. The inner
    /// error matters if the object is there, or may be created.
    pub(super) fn read(body: &[u8]) -> Result<Result<Self, ApiError>, ApiError> {
        match wire::from_yaml_with_duplicates(body) {
            Ok((value, duplicates)) => Ok(Self::classify(value, duplicates)),
            Err(why) if is_json(body) => Ok(Err(broken(&format!("error converting YAML to JSON: {why}")))),
            Err(why) => Err(ApiError::bad_request(format!("error encoding patch: {why}"))),
        }
    }

    fn classify(value: Value, duplicates: Vec<String>) -> Result<Self, ApiError> {
        match value {
            // Go decodes null as a map without members.
            Value::Null => Ok(Self { value: Value::Object(serde_json::Map::new()), duplicates }),
            Value::Object(_) => Ok(Self { value, duplicates }),
            other => Err(broken(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type(&other)
            ))),
        }
    }

    /// Complains of fields that the configuration has twice.
    pub(super) fn apply_field_validation(
        &self,
        call: &mut Call<'_>,
        validation: FieldValidation,
    ) -> Result<(), ApiError> {
        let complaints = self.duplicates.iter().map(|why| format!("error converting YAML to JSON: {why}"));
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => call.warnings.extend(complaints),
            FieldValidation::Strict => {
                if let Some(first) = complaints.into_iter().next() {
                    return Err(ApiError::bad_request(format!("error strict decoding patch: {first}")));
                }
            }
        }
        Ok(())
    }
}

/// An apply to the present object, or to none.
struct Applying<'a> {
    options: WriteOptions,
    configuration: &'a Result<Configuration, ApiError>,
}

impl Applying<'_> {
    async fn merge(&self, call: &mut Call<'_>, old: Option<&Value>) -> Result<Value, ApiError> {
        let configuration = self.configuration.as_ref().map_err(Clone::clone)?;
        let (served, manager) = (call.state.served.load_full(), call.manager());
        let fields = call.field_manager(&served, &manager);
        // A default may replace a wrong value of the configuration. The copy is gone before the new object is made.
        let fits = restore(call, &mut configuration.value.clone());
        // Boxed: other requests are smaller, and share the type of the future.
        let mut new = Box::pin(fields.apply(old, &configuration.value, self.options.force)).await?;
        configuration.apply_field_validation(call, self.options.field_validation)?;
        let fits = fits.and_then(|()| restore(call, &mut new));
        fits.map_err(|why| unconvertible(call, &configuration.value, &why))?;
        name_nothing(&mut new);
        Ok(new)
    }

    /// Makes a new object of the configuration.
    async fn create(&self, call: &mut Call<'_>) -> Result<Value, ApiError> {
        let new = self.merge(call, None).await?;
        let uid = meta::uid(&new);
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(&call.resource.group_resource(), &call.route.name, why));
        }
        expect_name(call, &new)?;
        Ok(new)
    }
}

/// Makes the fields of an object of a built-in kind fit the Go types.
///
/// # Errors
/// The first field that does not fit.
fn restore(call: &Call<'_>, object: &mut Value) -> Result<(), String> {
    let resource = &call.resource;
    if resource.is_custom() { Ok(()) } else { windlass_schema::restore(resource.schema.get(), object) }
}

/// Returns the error of an object that does not fit the Go types after the apply of `configuration`.
fn unconvertible(call: &Call<'_>, configuration: &Value, why: &str) -> ApiError {
    let resource = &call.resource;
    let kind = if resource.group.is_empty() {
        format!("/{}, Kind={}", resource.version, resource.kind)
    } else {
        format!("{}, Kind={}", resource.api_version(), resource.kind)
    };
    let (namespace, name) = (meta::namespace(configuration), meta::name(configuration));
    ApiError::unexplained(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured object to {kind}: {why}"
    ))
}

impl Change for Applying<'_> {
    async fn make(&mut self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        let new = self.merge(call, Some(old)).await?;
        expect_name(call, &new)?;
        Ok(new)
    }
}
