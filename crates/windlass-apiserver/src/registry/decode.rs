//! Reads the body of a request as an object of the resource, defaulted and pruned.

use http::header;
use serde_json::Value;
use windlass_schema::{go_quote, json_type};

use super::Call;
use super::options::{FieldValidation, WriteOptions};
use crate::managed_fields;
use crate::meta;
use crate::resource::Resource;
use crate::wire::{self, ApiError};
use windlass_kinds::kind_names::{EVICTION, SCALE, TOKEN_REQUEST};

/// Groups with separate servers in the real control plane.
const SEPARATE_GROUPS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Kinds that every server of the real control plane has in version `v1`.
const UNVERSIONED: [&str; 6] =
    ["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList", "DeleteOptions"];

/// The version of a group that a body of a subresource may have besides `v1`.
const OTHER_VERSION_OF_EVICTION: &str = "policy/v1beta1";

impl Call<'_> {
    /// Reads the body as an object of the resource.
    ///
    /// Fields that the schema does not know are dropped; whether that is an error or a warning is the client's choice.
    pub(super) fn decode(&mut self, options: WriteOptions) -> Result<Value, ApiError> {
        let kind = self.resource.kind.clone();
        let content_type = self.header(header::CONTENT_TYPE);
        let mut decoded =
            wire::decode_body(content_type, self.body, &kind, |bytes| self.state.decode_protobuf(bytes))?;
        self.expect_kind(&mut decoded.value, options)?;
        self.expect_fields(&decoded.value).map_err(|why| self.misread(&decoded.value, &why))?;
        let unknown = self.admit_fields(&mut decoded.value)?;
        let (found_kind, version) = self.found_kind(&decoded.value);
        let (found_kind, version) = (found_kind.to_owned(), version.to_owned());
        let is_custom = self.resource.is_custom();
        let complaints = || decoded.strict_complaints(&unknown, is_custom);
        self.complain(options, complaints, &found_kind, &version, &found_kind)?;
        let (version, found) = (self.resource.api_version(), meta::at(&decoded.value, "/apiVersion"));
        let found = found.and_then(Value::as_str).unwrap_or_default();
        if self.resource.is_custom() && found != version {
            return Err(other_version(found, version));
        }
        Ok(decoded.value)
    }

    /// Warns about the errors of strict decoding, or refuses the body, as the client wishes.
    fn complain(
        &mut self,
        options: WriteOptions,
        complaints: impl FnOnce() -> Vec<String>,
        found_kind: &str,
        version: &str,
        kind: &str,
    ) -> Result<(), ApiError> {
        match options.field_validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                self.warnings.extend(complaints().iter().flat_map(|complaint| warnings_of(complaint)));
                Ok(())
            }
            FieldValidation::Strict => match complaints() {
                complaints if complaints.is_empty() => Ok(()),
                complaints => Err(refused(
                    found_kind,
                    version,
                    kind,
                    &format!("strict decoding error: {}", complaints.join(", ")),
                )),
            },
        }
    }

    /// Decodes the body of a request to a subresource with a separate kind, such as `TokenRequest`.
    pub(super) fn decode_as(
        &mut self,
        group: &str,
        version: &str,
        kind: &str,
        options: WriteOptions,
    ) -> Result<Value, ApiError> {
        let content_type = self.header(header::CONTENT_TYPE);
        let mut decoded =
            wire::decode_body(content_type, self.body, kind, |bytes| self.state.decode_protobuf(bytes))?;
        self.expect_subresource_kind(&decoded.value, group, version, kind)?;
        let Some(schema) = self.state.catalog.schema(group, version, kind) else { return Ok(decoded.value) };
        if let Some(why) = windlass_schema::decode_error(&schema, kind, &decoded.value) {
            return Err(refused(kind, version, kind, &why));
        }
        let unknown = windlass_schema::prune(&schema, &mut decoded.value);
        self.complain(options, || decoded.strict_complaints(&unknown, false), kind, version, kind)?;
        Ok(decoded.value)
    }

    /// Checks that a body has the kind of a subresource. The body may lack kind and version.
    fn expect_subresource_kind(
        &self,
        object: &Value,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<(), ApiError> {
        if let Some(why) = wrong_type_meta(object) {
            return Err(self.unrecognized_as(kind, &why));
        }
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (found_version, found_kind) = (text("apiVersion"), text("kind"));
        if let Some(why) = wrong_group_version(found_version) {
            return Err(self.unrecognized_as(kind, &why));
        }
        let expected = crate::resource::api_version(group, version);
        let found_group = found_version.split_once('/').map_or("", |(group, _)| group);
        let is_other = !found_version.is_empty() && found_group != group;
        if !is_other && (found_kind.is_empty() || found_kind == kind) {
            let known = ["", expected.as_str(), OTHER_VERSION_OF_EVICTION];
            if known.contains(&found_version) {
                return Ok(());
            }
            let why = format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                go_quote(kind),
                go_quote(found_version)
            );
            return Err(refused(kind, version_of(found_version), kind, &why));
        }
        let (found_version, found_kind) = (text_or(found_version, &expected), text_or(found_kind, kind));
        let why = self.decode_error_of_kind(object, &found_version, &found_kind).unwrap_or_else(|| {
            self.not_the_type(
                &found_version,
                &found_kind,
                &format!("{}.{kind}", crate::resource::go_package(group)),
            )
        });
        Err(refused(&found_kind, version_of(&found_version), kind, &why))
    }

    /// Defaults and prunes an object by the schema. Returns the paths of the dropped fields.
    ///
    /// # Errors
    ///
    /// The defaults would make the object too large.
    pub(super) fn admit_fields(&self, object: &mut Value) -> Result<Vec<String>, ApiError> {
        name_nothing(object);
        // Metadata of custom resources is decoded and encoded once more, and thereby loses an empty list.
        let is_lost = self.resource.is_custom()
            && meta::at(object, "/metadata/managedFields").is_some_and(|list| *list == serde_json::json!([]));
        let resets_managers = !is_lost && managed_fields::is_reset(object);
        let mut unknown = self.resource.default_and_prune_new(object)?;
        if self.resource.is_custom() && !self.is_of_the_kind(object) {
            // The real server prunes only objects of the kind. Other objects are refused later.
            unknown.retain(|field| field.starts_with("metadata."));
        }
        if resets_managers {
            // In Go, an empty list differs from a missing list.
            managed_fields::reset(object);
        }
        Ok(unknown)
    }

    /// Returns whether an object has the group and kind of the resource.
    fn is_of_the_kind(&self, object: &Value) -> bool {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        group == self.resource.group && text("kind") == self.resource.kind
    }

    /// Returns the kind and version for errors about the body: for a custom resource, the body's own kind and
    /// version.
    fn found_kind<'o>(&'o self, object: &'o Value) -> (&'o str, &'o str) {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        if !self.resource.is_custom() || text("kind").is_empty() {
            return (&self.resource.kind, &self.resource.version);
        }
        let version = text("apiVersion");
        (text("kind"), version.rsplit('/').next().unwrap_or(version))
    }

    /// Checks that the body has the kind and version of the resource. The body of a built-in kind may lack
    /// both.
    fn expect_kind(&self, object: &mut Value, options: WriteOptions) -> Result<(), ApiError> {
        let resource = &self.resource;
        let version = resource.api_version();
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (found_version, found_kind) = (text("apiVersion"), text("kind"));
        if let Some(why) = wrong_type_meta(object) {
            return Err(self.unrecognized(&why));
        }
        if !resource.is_custom() && (found_version.is_empty() || found_kind.is_empty()) {
            let fields = meta::fields_mut(object);
            if found_version.is_empty() {
                fields.insert("apiVersion".into(), version.into());
            }
            if found_kind.is_empty() {
                fields.insert("kind".into(), resource.kind.clone().into());
            }
            let (version, kind) = (text_or(&found_version, version), text_or(&found_kind, &resource.kind));
            return self.expect_kind_given(object, &version, &kind, options);
        }
        if resource.is_custom()
            && !found_kind.is_empty()
            && object.get("apiVersion").is_some_and(Value::is_null)
        {
            return Err(ApiError::bad_request(format!(
                "{found_kind} in version \"\" cannot be handled as a {}: .apiVersion accessor error: <nil> is of the type <nil>, expected string",
                resource.kind
            )));
        }
        self.expect_kind_given(object, &found_version, &found_kind, options)
    }

    fn expect_kind_given(
        &self,
        object: &Value,
        found_version: &str,
        found_kind: &str,
        options: WriteOptions,
    ) -> Result<(), ApiError> {
        let resource = &self.resource;
        let version = resource.api_version();
        if found_version == version && found_kind == resource.kind {
            return Ok(());
        }
        if let Some(why) = wrong_group_version(found_version) {
            return Err(self.unrecognized(&why));
        }
        if resource.is_custom() {
            if found_kind.is_empty() {
                let body = String::from_utf8_lossy(self.body);
                let why = format!("Object 'Kind' is missing in '{body}'");
                return Err(match options.field_validation {
                    FieldValidation::Ignore => self.misread(object, &why),
                    FieldValidation::Warn | FieldValidation::Strict => self.unrecognized(&why),
                });
            }
            // A wrong version is found when the fields are read, and a wrong kind by validation.
            return Ok(());
        }
        let (found_group, plain_version) = found_version.split_once('/').unwrap_or(("", found_version));
        let is_known = self.state.served.load().kind(found_group, plain_version, found_kind).is_some();
        if is_known && found_group == resource.group && found_kind == resource.kind {
            return Err(other_version(found_version, version));
        }
        let wrong = self.decode_error_of_kind(object, found_version, found_kind);
        let why = wrong.unwrap_or_else(|| self.not_the_kind(found_version, found_kind));
        Err(refused(found_kind, version_of(found_version), &resource.kind, &why))
    }

    /// Returns the error of decoding an object of another kind as an object of that kind.
    fn decode_error_of_kind(&self, object: &Value, found_version: &str, found_kind: &str) -> Option<String> {
        let (group, version) = found_version.split_once('/').unwrap_or(("", found_version));
        let table = self.state.served.load();
        let found = table.kind(group, version, found_kind).filter(|found| self.is_registered(found))?;
        windlass_schema::decode_error(found.schema.get(), found_kind, object)
    }

    /// Checks that the result of a JSON or merge patch has the kind and version of the resource, and fields
    /// of the right types. The error is in Go's words.
    pub(super) fn expect_kind_of_patched(&self, object: &Value) -> Result<(), String> {
        let resource = &self.resource;
        if let Some(why) = wrong_type_meta(object) {
            return Err(why);
        }
        let text = |field: &str, default: &str| match object.get(field).and_then(Value::as_str) {
            None | Some("") if !resource.is_custom() => default.to_owned(),
            found => found.unwrap_or_default().to_owned(),
        };
        let (version, kind) = (text("apiVersion", resource.api_version()), text("kind", &resource.kind));
        if resource.is_custom() {
            if kind.is_empty() {
                return Err(format!("Object 'Kind' is missing in '{object}'"));
            }
            // Validation reports another kind or version.
            return self.expect_fields(object);
        }
        if version == resource.api_version() && kind == resource.kind {
            return self.expect_fields(object);
        }
        let wrong = self.decode_error_of_kind(object, &version, &kind);
        Err(wrong.unwrap_or_else(|| self.not_the_kind(&version, &kind)))
    }

    /// Returns whether the real server of the resource knows a kind: the real server does not know the kinds
    /// of other API servers.
    fn is_registered(&self, kind: &Resource) -> bool {
        let own = &self.resource.group;
        let is_separate = |group: &String| SEPARATE_GROUPS.contains(&group.as_str());
        !kind.is_custom() && (kind.group == *own || !is_separate(&kind.group) && !is_separate(own))
    }

    /// Explains why an object of another kind is wrong for the resource.
    pub(super) fn not_the_kind(&self, found_version: &str, found_kind: &str) -> String {
        let go_type = format!("{}.{}", self.resource.go_package(), self.resource.kind);
        self.not_the_type(found_version, found_kind, &go_type)
    }

    /// Explains why an object of another kind is wrong for a Go type, such as `policy.Eviction`.
    fn not_the_type(&self, found_version: &str, found_kind: &str, go_type: &str) -> String {
        let resource = &self.resource;
        let (group, version) = found_version.split_once('/').unwrap_or(("", found_version));
        let table = self.state.served.load();
        let is_of_main_server = !SEPARATE_GROUPS.contains(&resource.group.as_str()) && !resource.is_custom();
        // Kinds of subresources, such as `Scale`, are not in the table.
        let is_of_subresource = |kind: &str| {
            is_of_main_server
                && [SCALE, EVICTION, TOKEN_REQUEST].contains(&kind)
                && self.state.catalog.schema(group, version, kind).is_some()
        };
        let is_list_of_any_kind = is_of_main_server && found_version == "v1" && found_kind == "List";
        let is_unversioned = found_version == "v1" && UNVERSIONED.contains(&found_kind);
        let is_known = |kind: &str| {
            is_unversioned
                || is_of_subresource(kind)
                || table.kind(group, version, kind).is_some_and(|kind| self.is_registered(kind))
        };
        if is_list_of_any_kind
            || is_known(found_kind)
            || found_kind.strip_suffix("List").is_some_and(is_known)
        {
            format!("converting ({version}.{found_kind}) to ({go_type}): unknown conversion")
        } else {
            format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                go_quote(found_kind),
                go_quote(found_version)
            )
        }
    }

    /// Checks the types of the fields. The error is in Go's words.
    pub(super) fn expect_fields(&self, object: &Value) -> Result<(), String> {
        self.resource.check_fields(object)
    }

    /// Returns 400 for a body without a kind or version.
    fn unrecognized(&self, why: &str) -> ApiError {
        self.unrecognized_as(&self.resource.kind, why)
    }

    /// Returns 400 for a body without the kind or version of an object of `kind`.
    fn unrecognized_as(&self, kind: &str, why: &str) -> ApiError {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            wire::body_summary(self.body)
        ))
    }

    /// Returns 400 for a body with fields of wrong types.
    fn misread(&self, object: &Value, why: &str) -> ApiError {
        let (kind, version) = self.found_kind(object);
        refused(kind, version, &self.resource.kind, why)
    }
}

/// Returns 400 for an object of `found_kind` that cannot be decoded as an object of `kind`.
fn refused(found_kind: &str, version: &str, kind: &str, why: &str) -> ApiError {
    let version = go_quote(version);
    ApiError::bad_request(format!("{found_kind} in version {version} cannot be handled as a {kind}: {why}"))
}

/// Returns the version of `group/version`, or of a version without a group.
fn version_of(version: &str) -> &str {
    version.rsplit('/').next().unwrap_or_default()
}

/// Explains why an `apiVersion` is no group and version.
pub(super) fn wrong_group_version(version: &str) -> Option<String> {
    (version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {version}"))
}

/// Returns the warnings for an error of strict decoding: an error of YAML has a line for each duplicate key.
fn warnings_of(complaint: &str) -> impl Iterator<Item = String> {
    let of_yaml = complaint.strip_prefix("yaml: unmarshal errors:\n");
    let lines = of_yaml.map_or_else(|| vec![complaint], |lines| lines.split('\n').collect());
    lines.into_iter().map(|line| line.trim_start().to_owned())
}

/// Explains why the kind or the version of an object cannot be read.
pub(super) fn wrong_type_meta(object: &Value) -> Option<String> {
    let is_wrong = |found: &Value| !found.is_null() && !found.is_string();
    let fields = ["apiVersion", "kind"].into_iter();
    let (field, found) =
        fields.filter_map(|field| Some((field, object.get(field)?))).find(|(_, found)| is_wrong(found))?;
    Some(format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{field} of type string",
        json_type(found)
    ))
}

/// Replaces `null` in labels and annotations by an empty text, as Go does.
pub(super) fn name_nothing(object: &mut Value) {
    for field in ["labels", "annotations"] {
        let entries = object.pointer_mut(&format!("/metadata/{field}")).and_then(Value::as_object_mut);
        for value in entries.into_iter().flat_map(serde_json::Map::values_mut).filter(|value| value.is_null())
        {
            *value = "".into();
        }
    }
}

/// Returns 400 for an object of the right kind in a wrong version.
fn other_version(found: &str, expected: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    ))
}

fn text_or(text: &str, other: &str) -> String {
    if text.is_empty() { other.to_owned() } else { text.to_owned() }
}
