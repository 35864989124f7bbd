//! A value in an object together with its path, for validation.
//!
//! Paths cost more than the checks, so [`validate`] checks a value without paths first, and only up to the first error.
//! Only a value with an error is checked with paths, as far as the budget for errors goes: lists and maps have no more
//! elements after the budget is spent.

use std::rc::Rc;

use serde_json::{Map, Value};
use windlass_schema::{ErrorBudget, FieldError};
use windlass_wire::Quantity;

/// A finding about a value: an error, or a warning.
pub(crate) trait Finding: Sized {
    /// Charges the finding to a budget.
    fn spend(&self, budget: &ErrorBudget);

    /// Returns the finding that stands for the findings beyond the budget.
    fn others() -> Option<Self>;
}

impl Finding for FieldError {
    fn spend(&self, budget: &ErrorBudget) {
        budget.spend(self);
    }

    fn others() -> Option<Self> {
        Some(ErrorBudget::others())
    }
}

impl Finding for String {
    fn spend(&self, budget: &ErrorBudget) {
        budget.spend_bytes(1024 + self.len());
    }

    fn others() -> Option<Self> {
        None
    }
}

/// The errors, or warnings, about a value so far. After the budget is spent, no more are added.
pub(crate) struct Findings<T> {
    found: Vec<T>,
    /// The findings that follow `found`.
    declared: Vec<T>,
    /// True while findings are added to `declared`.
    is_declared: bool,
    /// True while other findings are dropped.
    only_declared: bool,
    budget: Rc<ErrorBudget>,
}

/// The errors about a value so far.
pub(crate) type Errors = Findings<FieldError>;

/// The warnings about a value so far.
pub(crate) type Warnings = Findings<String>;

impl<T: Finding> Findings<T> {
    /// Adds a finding.
    pub(crate) fn push(&mut self, finding: T) {
        if !self.budget.is_spent() && (self.is_declared || !self.only_declared) {
            finding.spend(&self.budget);
            if self.is_declared { &mut self.declared } else { &mut self.found }.push(finding);
        }
    }

    /// Adds findings behind the findings of other checks. kube-apiserver reports the rules that are declared in its types after
    /// all other rules.
    pub(crate) fn declared(&mut self, check: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_declared, true);
        check(self);
        self.is_declared = before;
    }

    /// Adds only the findings that `check` adds by [`declared`](Self::declared).
    pub(crate) fn only_declared(&mut self, check: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.only_declared, true);
        check(self);
        self.only_declared = before;
    }

    /// Returns the number of findings.
    pub(crate) fn len(&self) -> usize {
        self.found.len() + self.declared.len()
    }
}

impl<T: Finding> Extend<T> for Findings<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, findings: I) {
        for finding in findings {
            if self.budget.is_spent() {
                return;
            }
            self.push(finding);
        }
    }
}

/// Returns the errors, or warnings, that `check` finds in the value at `path`.
pub(crate) fn validate<'a, T: Finding>(
    path: &str,
    value: &'a Value,
    check: impl Fn(&Field<'a>, &mut Findings<T>),
) -> Vec<T> {
    if find(None, value, ErrorBudget::of_one(), &check).found.is_empty() {
        return Vec::new();
    }
    let Findings { mut found, budget, .. } = find(Some(path.to_owned()), value, ErrorBudget::new(), &check);
    if budget.is_spent() {
        found.extend(T::others());
    }
    found
}

fn find<'a, T: Finding>(
    path: Option<String>,
    value: &'a Value,
    budget: ErrorBudget,
    check: impl Fn(&Field<'a>, &mut Findings<T>),
) -> Findings<T> {
    let budget = Rc::new(budget);
    let mut findings = Findings {
        found: Vec::new(),
        declared: Vec::new(),
        is_declared: false,
        only_declared: false,
        budget: Rc::clone(&budget),
    };
    check(&Field { value, path, budget }, &mut findings);
    findings.found.append(&mut findings.declared);
    findings
}

/// A value in an object and its path. The value is null where the field is absent.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    value: &'a Value,
    path: Option<String>,
    /// The budget for the findings.
    budget: Rc<ErrorBudget>,
}

static ABSENT: Value = Value::Null;

impl<'a> Field<'a> {
    fn to(&self, value: Option<&'a Value>, path: impl FnOnce(&str) -> String) -> Self {
        let path = self.path.as_deref().map(path);
        Self { value: value.unwrap_or(&ABSENT), path, budget: Rc::clone(&self.budget) }
    }

    /// Returns the field with this name.
    pub(crate) fn at(&self, name: &str) -> Self {
        self.to(self.value.get(name), |path| join(path, name))
    }

    /// Returns the value at a JSON pointer without a leading slash, such as `securityContext/sysctls`.
    pub(crate) fn at_path(&self, pointer: &str) -> Self {
        pointer.split('/').fold(self.clone(), |place, name| place.at(name))
    }

    /// Returns this value under another path: the path of the field `name`, for errors of kube-apiserver.
    pub(crate) fn report_at(&self, name: &str) -> Self {
        self.to(Some(self.value), |path| join(path, name))
    }

    /// Returns this value under the path of the field `name` of `parent`.
    pub(crate) fn report_under(&self, parent: &Self, name: &str) -> Self {
        let path = parent.path.as_deref().map(|path| join(path, name));
        Self { value: self.value, path, budget: Rc::clone(&self.budget) }
    }

    /// Returns `other` with the path of this value.
    pub(crate) fn with(&self, other: &'a Value) -> Self {
        Self { value: other, ..self.clone() }
    }

    /// Returns this value with the path of `other`.
    pub(crate) fn at_path_of(&self, other: &Self) -> Self {
        Self { value: self.value, ..other.clone() }
    }

    /// Returns the elements of a list, none for other values.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let list = self.clone();
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate();
        items.map_while(move |(index, value)| {
            (!list.budget.is_spent()).then(|| list.to(Some(value), |path| format!("{path}[{index}]")))
        })
    }

    /// Returns the entries of a map, none for other values. The path of an entry ends in its key in brackets.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let map = self.clone();
        self.value.as_object().into_iter().flatten().map_while(move |(key, value)| {
            let entry = || (key.as_str(), map.to(Some(value), |path| format!("{path}[{key}]")));
            (!map.budget.is_spent()).then(entry)
        })
    }

    /// Returns the entry of a map with this key.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.to(self.value.get(key), |path| format!("{path}[{key}]"))
    }

    /// Returns the element of a list.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.to(self.value.get(index), |path| format!("{path}[{index}]"))
    }

    /// Returns the value itself.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns whether the field is there and not null.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns whether the field is absent, null, or an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the text, empty for other values.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the number, zero for other values.
    pub(crate) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// Returns whether the value is `true`.
    pub(crate) fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// Returns the number of elements of a list.
    pub(crate) fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    /// Returns the map.
    pub(crate) fn map(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// Returns the quantity, if the value is one.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        match self.value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    }

    /// Returns errors with empty paths as errors of this value.
    pub(crate) fn moved(&self, errors: Vec<FieldError>) -> impl Iterator<Item = FieldError> {
        errors.into_iter().map(|mut error| {
            error.field = self.path().to_owned();
            error
        })
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or_default()
    }

    /// Returns an error that shows the value.
    pub(crate) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        self.typed(FieldError::invalid(self.path(), self.value.clone(), detail))
    }

    /// Returns an error that shows no value.
    pub(crate) fn invalid_omitted(&self, detail: impl Into<String>) -> FieldError {
        FieldError { bad_value: None, ..self.invalid(detail) }
    }

    /// Returns a warning about the value.
    pub(crate) fn warning(&self, text: impl std::fmt::Display) -> String {
        format!("{}: {text}", self.path())
    }

    /// Returns an error that shows another value.
    pub(crate) fn invalid_as(&self, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        self.typed(FieldError::invalid(self.path(), value, detail))
    }

    /// Returns an error about a required value.
    pub(crate) fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// Returns an error about a value that is not permitted here.
    pub(crate) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path(), detail)
    }

    /// Returns an error about a value that occurs twice.
    pub(crate) fn duplicate(&self) -> FieldError {
        self.typed(FieldError::duplicate(self.path(), self.value.clone()))
    }

    /// Returns an error about a different value that occurs twice.
    pub(crate) fn duplicate_as(&self, value: impl Into<Value>) -> FieldError {
        FieldError::duplicate(self.path(), value)
    }

    /// Returns an error about a reference to something absent.
    pub(crate) fn not_found(&self) -> FieldError {
        FieldError::not_found(self.path(), self.text())
    }

    /// Returns an error about a reference to a missing object, with a different text.
    pub(crate) fn not_found_as(&self, value: &str) -> FieldError {
        FieldError::not_found(self.path(), value)
    }

    /// Returns an error about a text that is not one of `known`.
    pub(crate) fn unsupported(&self, known: &[&str]) -> FieldError {
        self.unsupported_as(self.text(), known)
    }

    /// Returns an error about a different text that is not in `known`.
    pub(crate) fn unsupported_as(&self, value: impl Into<Value>, known: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), value, known).of_named_type()
    }

    /// Returns an error about a text that is not in `known`, in a field that is no enumeration in Go.
    pub(crate) fn unsupported_text(&self, text: &str, known: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), text, known)
    }

    /// Prints the value of an error as JSON, if the error shows the value or the key of this field, and the type in Go has a name.
    fn typed(&self, error: FieldError) -> FieldError {
        let Some(path) = self.path.as_deref() else { return error };
        let shows = |text: &str| error.bad_value.as_ref().is_some_and(|value| value == text);
        let last = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
        let is_key = last.is_some_and(|(list, key)| shows(key) && ends_with(list, RESOURCE_LISTS));
        let is_named = is_key || shows(self.text()) && ends_with(path, NAMED_TYPES);
        if is_named { error.of_named_type() } else { error }
    }

    /// Returns an error about a list that is too long.
    pub(crate) fn too_many(&self, max: usize) -> FieldError {
        FieldError::too_many(self.path(), self.len(), max)
    }

    /// Returns an error about a text that is too long.
    pub(crate) fn too_long(&self, max: usize) -> FieldError {
        FieldError::too_long(self.path(), max)
    }

    /// Returns an error about a text that has too many characters.
    pub(crate) fn too_long_characters(&self, max: usize) -> FieldError {
        FieldError::too_long_characters(self.path(), max)
    }

    /// Returns an error of the server itself.
    pub(crate) fn internal(&self, detail: impl Into<String>) -> FieldError {
        FieldError::internal(self.path(), detail)
    }

    /// Reports an empty text, and returns whether it is empty.
    pub(crate) fn require(&self, errors: &mut Errors) -> bool {
        let is_empty = self.text().is_empty();
        if is_empty {
            errors.push(self.required(""));
        }
        is_empty
    }

    /// Reports each problem of a text.
    pub(crate) fn check(&self, check: impl FnOnce(&str) -> Vec<String>, errors: &mut Errors) {
        errors.extend(check(self.text()).into_iter().map(|problem| self.invalid_as(self.text(), problem)));
    }

    /// Reports an empty text, or each problem of a non-empty text.
    pub(crate) fn require_check(&self, check: impl FnOnce(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.require(errors) {
            self.check(check, errors);
        }
    }

    /// Reports each problem of a text that is not empty.
    pub(crate) fn check_if_any(&self, check: impl FnOnce(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.text().is_empty() {
            self.check(check, errors);
        }
    }

    /// Reports a text that is not one of `known`. An absent field has no error.
    pub(crate) fn one_of(&self, known: &[&str], errors: &mut Errors) {
        if self.is_set() && !known.contains(&self.text()) {
            errors.push(self.unsupported(known));
        }
    }

    /// Reports an empty text as required, and any other text that is not in `known`.
    pub(crate) fn require_one_of(&self, known: &[&str], errors: &mut Errors) {
        if !self.require(errors) && !known.contains(&self.text()) {
            errors.push(self.unsupported(known));
        }
    }

    /// Reports a number below zero.
    pub(crate) fn not_negative(&self, errors: &mut Errors) {
        if self.int() < 0 {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// Reports a number that is not above zero.
    pub(crate) fn positive(&self, errors: &mut Errors) {
        if self.int() <= 0 {
            errors.push(self.invalid_as(self.int(), "must be greater than zero"));
        }
    }

    /// Reports a number outside a range. An absent field has no error.
    pub(crate) fn within(&self, least: i64, most: i64, errors: &mut Errors) {
        if self.is_set() && !(least..=most).contains(&self.int()) {
            errors.push(self.invalid(format!("must be between {least} and {most}, inclusive")));
        }
    }
}

/// The fields whose texts are not plain strings in Go, but pointers or strings with a name for the type. Enumerations are such strings,
/// too, but an unsupported value needs no entry here.
const NAMED_TYPES: &[&str] = &[
    "effect",
    "externalTrafficPolicy",
    "failedIndexes",
    "gmsaCredentialSpec",
    "gmsaCredentialSpecName",
    "ipFamilies",
    "ipFamilyPolicy",
    "limits.type",
    "loadBalancerClass",
    "nodeUID",
    "operator",
    "podGroupName",
    "podManagementPolicy",
    "podUID",
    "protocol",
    "resourceClaimName",
    "resourceID",
    "restartPolicy",
    "runAsUserName",
    "scopeName",
    "serviceAccountUID",
    "target.type",
    "timeZone",
    "usages",
    "validationActions",
];

/// The maps whose keys are names of resources, which are a type in Go.
const RESOURCE_LISTS: &[&str] = &[
    "allocatable",
    "capacity",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "max",
    "maxLimitRequestRatio",
    "min",
    "podFixed",
    "requests",
    "used",
];

/// Returns whether a path without indices and keys ends with one of `names`: `spec.tolerations[0].operator` ends with `operator`.
fn ends_with(path: &str, names: &[&str]) -> bool {
    let parts: Vec<&str> = path.split('.').map(|part| part.split('[').next().unwrap_or_default()).collect();
    names.iter().any(|name| {
        let wanted: Vec<&str> = name.split('.').collect();
        parts.ends_with(&wanted)
    })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
