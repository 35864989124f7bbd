//! Evaluates loops.

use std::sync::Arc;

use super::{Evaluator, Slot, costs};
use crate::error::Error;
use crate::plan::{Append, Fold, Insert};
use crate::value::{Key, List, Map, Value};

/// The continuation of a loop.
enum Next {
    Continue,
    Break,
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn fold(&mut self, fold: &Fold) -> Result<Value<'a>, Error> {
        let range = self.eval(&fold.range)?;
        self.slots[fold.accumulator] = match &fold.init {
            Some(init) => Slot::Value(self.eval(init)),
            None => Slot::Empty,
        };
        match range {
            Value::List(list) => self.fold_list(fold, &list)?,
            Value::Map(map) => self.fold_map(fold, &map)?,
            other => return Err(Error::new(format!("got '{}', expected iterable type", other.type_name()))),
        }
        let result = self.eval(&fold.result);
        self.slots[fold.accumulator] = Slot::Empty;
        result
    }

    fn fold_list(&mut self, fold: &Fold, list: &List<'a>) -> Result<(), Error> {
        for (index, element) in list.iter().enumerate() {
            let next = match fold.second {
                None => self.iterate(fold, element, None)?,
                Some(_) => self.iterate(fold, Ok(Value::Int(index as i64)), Some(element))?,
            };
            if matches!(next, Next::Break) {
                break;
            }
        }
        Ok(())
    }

    fn fold_map(&mut self, fold: &Fold, map: &Map<'a>) -> Result<(), Error> {
        self.meter.elements(map.len())?;
        if fold.second.is_none() {
            for key in map.keys() {
                if matches!(self.iterate(fold, Ok(key), None)?, Next::Break) {
                    break;
                }
            }
            return Ok(());
        }
        for (key, value) in map.entries() {
            if matches!(self.iterate(fold, Ok(key), Some(value))?, Next::Break) {
                break;
            }
        }
        Ok(())
    }

    fn iterate(
        &mut self,
        fold: &Fold,
        first: Result<Value<'a>, Error>,
        second: Option<Result<Value<'a>, Error>>,
    ) -> Result<Next, Error> {
        self.meter.iterate(self.limits)?;
        self.slots[fold.variable] = Slot::Value(first);
        if let (Some(slot), Some(second)) = (fold.second, second) {
            self.slots[slot] = Slot::Value(second);
        }
        match self.eval(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(Next::Break),
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
        match self.eval(&fold.step) {
            Err(error) if error.is_fatal() => Err(error),
            step => {
                self.slots[fold.accumulator] = Slot::Value(step);
                Ok(Next::Continue)
            }
        }
    }

    fn take(&mut self, slot: usize) -> Result<Value<'a>, Error> {
        match std::mem::replace(&mut self.slots[slot], Slot::Empty) {
            Slot::Value(value) => value,
            Slot::Empty => Err(Error::no_overload()),
        }
    }

    /// Evaluates `accumulator + [element]`.
    pub(super) fn append(&mut self, append: &Append) -> Result<Value<'a>, Error> {
        let element = self.eval(&append.element);
        if element.as_ref().is_err_and(Error::is_fatal) {
            return element;
        }
        let list = if append.constant { 0 } else { costs::LIST };
        self.meter.charge(costs::IDENT + list + costs::CALL)?;
        self.meter.allocate(size_of::<Value<'_>>())?;
        let accumulated = self.take(append.slot)?;
        let element = element?;
        let Value::List(List::Values(mut values)) = accumulated else { return Err(Error::no_overload()) };
        Arc::make_mut(&mut values).push(element);
        Ok(Value::List(List::Values(values)))
    }

    /// Evaluates `cel.@mapInsert(accumulator, …)`.
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<Value<'a>, Error> {
        self.meter.charge(costs::IDENT)?;
        let mut arguments = Vec::with_capacity(insert.arguments.len());
        let mut failure = None;
        for argument in &insert.arguments {
            match self.eval(argument) {
                Ok(value) => arguments.push(value),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => _ = failure.get_or_insert(error),
            }
        }
        self.meter.charge(costs::CALL)?;
        let accumulated = self.take(insert.slot)?;
        if let Some(error) = failure {
            return Err(error);
        }
        let Value::Map(Map::Values(mut entries)) = accumulated else { return Err(Error::no_overload()) };
        let target = Arc::make_mut(&mut entries);
        let added = match arguments.as_slice() {
            [key, value] => vec![(key.clone(), Ok(value.clone()))],
            [Value::Map(map)] => map.entries(),
            _ => return Err(Error::no_overload()),
        };
        for (key, value) in added {
            let Some(named) = Key::of(&key) else {
                return Err(Error::new(format!("unsupported key type: {}", key.type_name())));
            };
            if target.contains(&named) {
                return Err(Error::new(format!("insert failed: key {key} already exists")));
            }
            let moved = target.insert(named, value?);
            self.meter.work(moved / 8)?;
            self.meter.allocate(2 * size_of::<Value<'_>>())?;
        }
        Ok(Value::Map(Map::Values(entries)))
    }
}
