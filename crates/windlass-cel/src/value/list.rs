//! Lists.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Value;
use super::json::{dynamic, of_schema};
use crate::error::Error;
use crate::schema::{Form, ListKind, Schema};

/// A list.
#[derive(Clone)]
pub enum List<'a> {
    /// Values that the evaluation made.
    Values(Arc<Vec<Value<'a>>>),
    /// Elements of JSON that have a schema: that of the list.
    Json(&'a [Json], &'a Schema),
    /// Elements of JSON without a schema.
    Dynamic(&'a [Json]),
    /// Values in a list that has a schema: a set, or a list whose elements have keys.
    Merged(Arc<Vec<Value<'a>>>, &'a Schema),
    /// Two lists, one after the other.
    Concat(Arc<Concat<'a>>),
}

/// Two lists, one after the other.
pub struct Concat<'a> {
    first: List<'a>,
    second: List<'a>,
    length: usize,
}

/// Drops the parts of a long concatenation one after the other, not one within the other.
impl Drop for Concat<'_> {
    fn drop(&mut self) {
        let mut rest = vec![std::mem::take(&mut self.first), std::mem::take(&mut self.second)];
        while let Some(list) = rest.pop() {
            if let List::Concat(shared) = list
                && let Some(mut owned) = Arc::into_inner(shared)
            {
                rest.push(std::mem::take(&mut owned.first));
                rest.push(std::mem::take(&mut owned.second));
            }
        }
    }
}

impl Default for List<'_> {
    fn default() -> Self {
        Self::Dynamic(&[])
    }
}

impl<'a> List<'a> {
    pub(crate) fn of(values: Vec<Value<'a>>) -> Self {
        Self::Values(Arc::new(values))
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) | Self::Merged(values, _) => values.len(),
            Self::Json(items, _) | Self::Dynamic(items) => items.len(),
            Self::Concat(concat) => concat.length,
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the list is not a list of JSON with a schema.
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self, Self::Json(..) | Self::Merged(..))
    }

    /// Returns an element, whose JSON may not have the form that the schema demands.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        let mut list = self;
        let mut index = index;
        loop {
            match list {
                Self::Values(values) | Self::Merged(values, _) => {
                    return values.get(index).cloned().map(Ok);
                }
                Self::Json(items, schema) => return items.get(index).map(|item| item_of(item, schema)),
                Self::Dynamic(items) => return items.get(index).map(|item| Ok(dynamic(item))),
                Self::Concat(concat) => {
                    let first = concat.first.len();
                    if index < first {
                        list = &concat.first;
                    } else {
                        list = &concat.second;
                        index -= first;
                    }
                }
            }
        }
    }

    /// Returns the elements.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, Error>> + '_ {
        let mut stack = vec![(self, 0)];
        std::iter::from_fn(move || {
            while let Some((list, index)) = stack.pop() {
                if let Self::Concat(concat) = list {
                    stack.push((&concat.second, 0));
                    stack.push((&concat.first, 0));
                } else if let Some(element) = list.get(index) {
                    stack.push((list, index + 1));
                    return Some(element);
                }
            }
            None
        })
    }

    /// Returns the elements of this list followed by those of the other list.
    pub(crate) fn concat(self, other: Self) -> Self {
        if self.is_empty() && self.is_plain() {
            return other;
        }
        if other.is_empty() && self.is_plain() {
            return self;
        }
        let length = self.len() + other.len();
        Self::Concat(Arc::new(Concat { first: self, second: other, length }))
    }

    /// Returns how elements of the list are identified.
    pub(crate) fn kind(&self) -> &ListKind {
        match self {
            Self::Json(_, Schema { form: Form::List { kind, .. }, .. })
            | Self::Merged(_, Schema { form: Form::List { kind, .. }, .. }) => kind,
            _ => &ListKind::Atomic,
        }
    }
}

fn item_of<'a>(item: &'a Json, schema: &'a Schema) -> Result<Value<'a>, Error> {
    match &schema.form {
        Form::List { items, .. } => of_schema(item, items),
        _ => Ok(dynamic(item)),
    }
}
