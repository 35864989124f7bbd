//! Applying the operations of a JSON patch.

use serde_json::Value;

use super::Limits;
use super::measure::{Allowance, count};
use super::operation::{Kind, Operation};
use super::pointer::Pointer;
use crate::ApiError;

/// The error of a JSON patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// An operation does not apply to the document.
    #[error("operation {operation} does not apply: {why}")]
    DoesNotApply {
        /// The index of the operation.
        operation: usize,
        /// The reason of the mismatch.
        why: Mismatch,
    },
    /// The `copy` operations copy more than [`Limits::copied_bytes`].
    #[error("the copy operations copy more than {0} bytes")]
    CopiesTooMuch(usize),
    /// The result would nest deeper than [`Limits::depth`].
    #[error("the result would be more than {0} levels deep")]
    TooDeep(usize),
    /// The operations need more than [`Limits::work`].
    #[error("the operations of a JSON patch may shift {0} array elements; set the array as a whole instead")]
    TooMuchWork(usize),
}

/// Why an operation of a JSON patch does not apply to the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The operation has no path, or a path without a slash.
    #[error("it has no path, or the path has no `/`")]
    Path,
    /// The path goes through a value that is absent or is neither an object nor an array.
    #[error("there is no object or array at its path")]
    Container,
    /// The object has no member of this name.
    #[error("there is no value at its path")]
    Member,
    /// The array has no element of this index.
    #[error("its path ends in an index that the array does not have")]
    Index,
    /// The whole document would become a scalar.
    #[error("a document can only be replaced with an object or an array")]
    Document,
    /// A `test` found a different value.
    #[error("the values differ")]
    Value,
    /// The operation is unknown.
    #[error("it is none of add, remove, replace, move, copy, test")]
    Kind,
}

impl From<JsonPatchError> for ApiError {
    /// Drops the reason of a patch that does not apply, as kube-apiserver does.
    fn from(error: JsonPatchError) -> Self {
        match error {
            JsonPatchError::TooMuchWork(_) => ApiError::too_large(error),
            _ => ApiError::unprocessable(),
        }
    }
}

/// The reason of a failed operation; [`apply`] adds the index of the operation.
enum Failure {
    DoesNotApply(Mismatch),
    Limit(JsonPatchError),
}

type Result<T> = std::result::Result<T, Failure>;

const NO_PATH: Failure = Failure::DoesNotApply(Mismatch::Path);
const NO_CONTAINER: Failure = Failure::DoesNotApply(Mismatch::Container);
const NO_MEMBER: Failure = Failure::DoesNotApply(Mismatch::Member);
const NO_INDEX: Failure = Failure::DoesNotApply(Mismatch::Index);

pub(super) fn apply(
    document: Value,
    operations: &[Operation],
    limits: &Limits,
) -> std::result::Result<Value, JsonPatchError> {
    let mut target = Target {
        root: document,
        limits,
        copies: Allowance { bytes: limits.copied_bytes },
        work: limits.work,
    };
    for (index, operation) in operations.iter().enumerate() {
        target.apply(operation).map_err(|failure| match failure {
            Failure::DoesNotApply(why) => JsonPatchError::DoesNotApply { operation: index, why },
            Failure::Limit(error) => error,
        })?;
    }
    Ok(target.root)
}

/// The document that is patched.
struct Target<'l> {
    root: Value,
    limits: &'l Limits,
    /// The remaining allowance for copies.
    copies: Allowance,
    /// The work that is left.
    work: usize,
}

impl Target<'_> {
    fn apply(&mut self, operation: &Operation) -> Result<()> {
        let path = operation.path.as_deref().ok_or(NO_PATH);
        match operation.kind {
            Kind::Add => {
                let path = Pointer::of(path?).ok_or(NO_PATH)?;
                let value = operation.value.as_ref().unwrap_or(&Value::Null);
                self.expect_depth(path, value)?;
                self.add(path, value.clone())
            }
            Kind::Remove => self.remove(Pointer::of(path?).ok_or(NO_PATH)?).map(drop),
            Kind::Replace => self.replace(path?, operation.value.as_ref()),
            Kind::Move => {
                let from = operation.from.as_deref().and_then(Pointer::of).ok_or(NO_PATH)?;
                let path = Pointer::of(path?).ok_or(NO_PATH)?;
                let value = self.remove(from)?;
                if path.depth() > from.depth() {
                    let values = self.expect_depth(path, &value)?;
                    self.work(values.saturating_mul(Limits::MEASURED))?;
                }
                self.add(path, value)
            }
            Kind::Copy => {
                let from = operation.from.as_deref().and_then(Pointer::of).ok_or(NO_PATH)?;
                let path = Pointer::of(path?).ok_or(NO_PATH)?;
                let value = self.copy(from, path)?;
                self.add(path, value)
            }
            Kind::Test => self.test(path?, operation.value.as_ref().unwrap_or(&Value::Null)),
            Kind::Unknown => Err(Failure::DoesNotApply(Mismatch::Kind)),
        }
    }

    fn add(&mut self, path: Pointer<'_>, value: Value) -> Result<()> {
        match self.container(path)? {
            (Value::Object(members), name) => {
                members.insert(name.into_owned(), value);
                Ok(())
            }
            (Value::Array(items), key) if key == "-" => {
                items.push(value);
                Ok(())
            }
            (Value::Array(items), key) => {
                let at = index(&key, items.len() + 1)?;
                let shifted = items.len() - at;
                items.insert(at, value);
                self.work(shifted)
            }
            _ => Err(NO_CONTAINER),
        }
    }

    fn remove(&mut self, path: Pointer<'_>) -> Result<Value> {
        match self.container(path)? {
            (Value::Object(members), name) => members.remove(&*name).ok_or(NO_MEMBER),
            (Value::Array(items), key) => {
                let at = index(&key, items.len())?;
                let shifted = items.len() - at;
                let removed = items.remove(at);
                self.work(shifted)?;
                Ok(removed)
            }
            _ => Err(NO_CONTAINER),
        }
    }

    fn replace(&mut self, path: &str, value: Option<&Value>) -> Result<()> {
        if path.is_empty() {
            return match value {
                Some(value @ (Value::Object(_) | Value::Array(_))) => {
                    count(value, self.limits.depth).ok_or(self.too_deep())?;
                    self.root = value.clone();
                    Ok(())
                }
                _ => Err(Failure::DoesNotApply(Mismatch::Document)),
            };
        }
        let path = Pointer::of(path).ok_or(NO_PATH)?;
        let value = value.unwrap_or(&Value::Null);
        self.expect_depth(path, value)?;
        match self.container(path)? {
            (Value::Object(members), name) => {
                members.insert(name.into_owned(), value.clone());
                Ok(())
            }
            (Value::Array(items), key) => {
                let at = index(&key, items.len())?;
                items[at] = value.clone();
                Ok(())
            }
            _ => Err(NO_CONTAINER),
        }
    }

    /// Returns a copy of the value at `from`, for an addition at `path`.
    fn copy(&mut self, from: Pointer<'_>, path: Pointer<'_>) -> Result<Value> {
        // The copy fits if the copy is not deeper than the levels that are left below the new place.
        let depth = self.limits.depth.checked_sub(path.depth()).ok_or(self.too_deep())?;
        let (keys, last) = from.split();
        let container = descend(&self.root, keys)?;
        let value = member(container, &last)?;
        match self.copies.take(value, depth) {
            Some(()) => Ok(value.clone()),
            None if count(value, depth).is_none() => Err(self.too_deep()),
            None => Err(Failure::Limit(JsonPatchError::CopiesTooMuch(self.limits.copied_bytes))),
        }
    }

    fn test(&self, path: &str, expected: &Value) -> Result<()> {
        let found = if path.is_empty() {
            &self.root
        } else {
            let (keys, last) = Pointer::of(path).ok_or(NO_PATH)?.split();
            member(descend(&self.root, keys)?, &last)?
        };
        if found == expected { Ok(()) } else { Err(Failure::DoesNotApply(Mismatch::Value)) }
    }

    /// Returns the object or array that the path leads to, and the last key of the path.
    fn container<'s, 'p>(
        &'s mut self,
        path: Pointer<'p>,
    ) -> Result<(&'s mut Value, std::borrow::Cow<'p, str>)> {
        let (keys, last) = path.split();
        let mut place = &mut self.root;
        for key in keys {
            place = match place {
                Value::Object(members) => members.get_mut(&*key).ok_or(NO_CONTAINER)?,
                Value::Array(items) => {
                    let at = index(&key, items.len())?;
                    &mut items[at]
                }
                _ => return Err(NO_CONTAINER),
            };
        }
        Ok((place, last))
    }

    /// Checks that a value is not too deep for a place. Returns the number of values inside.
    fn expect_depth(&self, path: Pointer<'_>, value: &Value) -> Result<usize> {
        let depth = self.limits.depth.checked_sub(path.depth());
        depth.and_then(|depth| count(value, depth)).ok_or(self.too_deep())
    }

    fn too_deep(&self) -> Failure {
        Failure::Limit(JsonPatchError::TooDeep(self.limits.depth))
    }

    fn work(&mut self, units: usize) -> Result<()> {
        let too_much = Failure::Limit(JsonPatchError::TooMuchWork(self.limits.work));
        self.work = self.work.checked_sub(units).ok_or(too_much)?;
        Ok(())
    }
}

fn descend<'v, 'k>(
    root: &'v Value,
    keys: impl Iterator<Item = std::borrow::Cow<'k, str>>,
) -> Result<&'v Value> {
    let mut place = root;
    for key in keys {
        place = match place {
            Value::Object(members) => members.get(&*key).ok_or(NO_CONTAINER)?,
            Value::Array(items) => &items[index(&key, items.len())?],
            _ => return Err(NO_CONTAINER),
        };
    }
    Ok(place)
}

/// Returns the value at the last key of a path. A member that is missing is `null`.
fn member<'v>(container: &'v Value, key: &str) -> Result<&'v Value> {
    match container {
        Value::Object(members) => Ok(members.get(key).unwrap_or(&Value::Null)),
        Value::Array(items) => Ok(&items[index(key, items.len())?]),
        _ => Err(NO_CONTAINER),
    }
}

/// Reads an index below `length`. Negative indexes count from the end.
fn index(key: &str, length: usize) -> Result<usize> {
    let index: i64 = key.parse().map_err(|_| NO_INDEX)?;
    let index = if index < 0 { index + length as i64 } else { index };
    usize::try_from(index).ok().filter(|index| *index < length).ok_or(NO_INDEX)
}
