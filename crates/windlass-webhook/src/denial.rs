//! Denials: how a webhook refuses a request.

use std::fmt;

use kube_core::{
    Resource,
    response::{Status, StatusCause, StatusDetails, StatusSummary},
};
use serde::Serialize;

/// Any error. Webhooks may return each error type that converts into `BoxError`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A refusal of a request, with the message that the client of the API server sees.
///
/// A webhook may return any error: the request is denied with the error's text, code 403 and reason `Forbidden`. An `AdmissionDenial`
/// sets the code, the reason and the causes, too.
///
/// ```
/// use windlass_webhook::{AdmissionDenial, FieldError};
/// # use k8s_openapi::api::core::v1::ConfigMap;
///
/// let denial = AdmissionDenial::invalid::<ConfigMap>("colours", [FieldError::required("data.red", "every palette has red")]);
/// assert_eq!(
///     denial.to_string(),
///     "ConfigMap \"colours\" is invalid: data.red: Required value: every palette has red"
/// );
/// assert_eq!(denial.status().code, 422);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionDenial(Box<Status>);

impl AdmissionDenial {
    /// Denies with code 403 and reason `Forbidden`.
    pub fn new(message: impl Into<String>) -> Self {
        let status = Status {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: message.into(),
            ..Status::default()
        };
        Self(Box::new(status))
    }

    /// Denies with this status. A code of 0 stands for 403.
    pub fn from_status(status: Status) -> Self {
        Self(Box::new(status))
    }

    /// Denies because fields of an object are invalid: code 422, reason `Invalid`, and a cause for each field, as the API
    /// server's own validation does.
    pub fn invalid<K: Resource<DynamicType = ()>>(
        name: impl Into<String>,
        errors: impl IntoIterator<Item = FieldError>,
    ) -> Self {
        let errors: Vec<FieldError> = errors.into_iter().collect();
        let (group, kind, name) = (K::group(&()).into_owned(), K::kind(&()).into_owned(), name.into());
        let qualified = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let list = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let causes = errors.into_iter().map(FieldError::into_cause).collect();
        Self(Box::new(Status {
            status: Some(StatusSummary::Failure),
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{qualified} {name:?} is invalid: {list}"),
            details: Some(StatusDetails {
                name,
                group,
                kind,
                uid: String::new(),
                causes,
                retry_after_seconds: 0,
            }),
            ..Status::default()
        }))
    }

    /// Sets the HTTP status code and the reason that the client gets.
    pub fn with_code(mut self, code: u16, reason: impl Into<String>) -> Self {
        self.0.code = code;
        self.0.reason = reason.into();
        self
    }

    /// Returns the status.
    pub fn status(&self) -> &Status {
        &self.0
    }

    /// Finds a denial, or the status of an API server, in an error or in the causes of the error. Any other
    /// error becomes a denial with the error's text.
    pub(crate) fn from_error(error: &BoxError) -> Self {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error.as_ref());
        while let Some(cause) = next {
            if let Some(denial) = cause.downcast_ref::<Self>() {
                return denial.clone();
            }
            let status = cause.downcast_ref::<Status>();
            if let Some(status) = status.or_else(|| cause.downcast_ref::<Box<Status>>().map(AsRef::as_ref)) {
                return Self::from_status(status.clone());
            }
            next = cause.source();
        }
        Self::new(error.to_string())
    }

    pub(crate) fn into_status(self) -> Status {
        let mut status = *self.0;
        if status.code == 0 {
            status.code = 403;
        }
        status
    }
}

impl fmt::Display for AdmissionDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for AdmissionDenial {}

/// An invalid field, for [`AdmissionDenial::invalid`]. `Display` prints the field in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    field: String,
    reason: &'static str,
    text: String,
}

impl FieldError {
    /// Reports a value that breaks a rule.
    pub fn invalid(field: impl Into<String>, value: impl Serialize, detail: impl fmt::Display) -> Self {
        Self::new(field, "FieldValueInvalid", format!("Invalid value: {}: {detail}", shown(&value)))
    }

    /// Reports a missing value.
    pub fn required(field: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self::new(field, "FieldValueRequired", format!("Required value: {detail}"))
    }

    /// Reports a value that must not be set, or not be changed.
    pub fn forbidden(field: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self::new(field, "FieldValueForbidden", format!("Forbidden: {detail}"))
    }

    /// Reports a value that is not among the supported values.
    pub fn not_supported(field: impl Into<String>, value: impl Serialize, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let text =
            format!("Unsupported value: {}: supported values: {}", shown(&value), supported.join(", "));
        Self::new(field, "FieldValueNotSupported", text)
    }

    /// Reports a value that another element of the list also has.
    pub fn duplicate(field: impl Into<String>, value: impl Serialize) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {}", shown(&value)))
    }

    fn new(field: impl Into<String>, reason: &'static str, text: String) -> Self {
        Self { field: field.into(), reason, text }
    }

    fn into_cause(self) -> StatusCause {
        StatusCause { reason: self.reason.to_owned(), message: self.text, field: self.field }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.text)
    }
}

fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
