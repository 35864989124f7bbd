//! Finds the types that type variables stand for.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::types::{Type, TypeKind};

/// The number of types, with parameters, that the check of an expression may look at.
const MAX_STEPS: usize = 5_000_000;

/// The number of types that a type may consist of.
const MAX_SIZE: usize = 5_000;

/// The depth to which types may be nested.
const MAX_DEPTH: usize = 1_000;

/// The types that are known of type variables. Types share their parameters, so that a small expression can have a type
/// that is huge when written out; the steps limit the work.
#[derive(Default)]
pub(super) struct Bindings {
    known: Vec<Option<Type>>,
    /// The changes since the start of an attempt, to take them back.
    trail: Vec<(u32, Option<Type>)>,
    /// The number of types that the check has looked at.
    steps: Cell<usize>,
    depth: Cell<usize>,
    exhausted: Cell<bool>,
}

impl Bindings {
    /// Returns whether the types of the expression are too large for a check.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Runs a step of the check; returns `otherwise` if the types are too large.
    fn step<T>(&self, otherwise: T, run: impl FnOnce() -> T) -> T {
        self.count();
        if self.depth.get() >= MAX_DEPTH {
            self.exhausted.set(true);
        }
        if self.exhausted.get() {
            return otherwise;
        }
        self.depth.set(self.depth.get() + 1);
        let result = run();
        self.depth.set(self.depth.get() - 1);
        result
    }

    fn count(&self) {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_STEPS {
            self.exhausted.set(true);
        }
    }

    /// Counts the types that a type consists of, and notes when there are too many.
    pub(super) fn measure(&self, of: &Type) {
        let mut size = 0;
        let mut rest = vec![(of, 1)];
        while let Some((next, depth)) = rest.pop() {
            size += 1;
            self.count();
            if size > MAX_SIZE || depth > MAX_DEPTH {
                self.exhausted.set(true);
            }
            if self.exhausted.get() {
                return;
            }
            rest.extend(next.parameters().into_iter().map(|parameter| (parameter, depth + 1)));
        }
    }

    /// Returns a new type variable.
    pub(super) fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Variable(self.known.len() as u32 - 1)
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Variable(index) => self.known[*index as usize].as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, variable: &Type, to: Type) {
        if let Type::Variable(index) = variable {
            let old = self.known[*index as usize].replace(to);
            self.trail.push((*index, old));
        }
    }

    fn attempt(&mut self, run: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        let succeeded = run(self);
        if !succeeded {
            while let Some((index, old)) = self.trail.pop() {
                self.known[index as usize] = old;
            }
        }
        succeeded
    }

    /// Returns whether a type can be assigned to another type; if so, variables are bound.
    pub(super) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|bindings| bindings.assign(from, to))
    }

    pub(super) fn are_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len()
            && self.attempt(|bindings| from.iter().zip(to).all(|(from, to)| bindings.assign(from, to)))
    }

    fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.count();
        if self.depth.get() >= MAX_DEPTH {
            self.exhausted.set(true);
        }
        if self.exhausted.get() {
            return true;
        }
        self.depth.set(self.depth.get() + 1);
        let assigned = self.assign_within(from, to);
        self.depth.set(self.depth.get() - 1);
        assigned
    }

    fn assign_within(&mut self, from: &Type, to: &Type) -> bool {
        let is_variable = |of: &Type| of.kind() == TypeKind::Parameter;
        if is_variable(to) {
            let (valid, bound) = self.substitute(from, to);
            if valid || bound {
                return valid;
            }
        }
        if is_variable(from) {
            return self.substitute(to, from).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        if matches!(from, Type::Null) {
            return is_nullable(to);
        }
        if matches!(to, Type::Null) {
            return is_nullable(from);
        }
        match (from, to) {
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.assign(a, b),
            (Type::Map(a), Type::Map(b)) => self.assign(&a.0, &b.0) && self.assign(&a.1, &b.1),
            (Type::Type(_), Type::Type(_)) => true,
            _ => from == to,
        }
    }

    /// Returns whether a variable can stand for a type, and whether the variable already stands for some
    /// type.
    fn substitute(&mut self, of: &Type, variable: &Type) -> (bool, bool) {
        if of == variable {
            return (true, true);
        }
        let Some(known) = self.find(variable).cloned() else {
            if self.is_free_of(variable, of) {
                self.bind(variable, of.clone());
                return (true, false);
            }
            return (false, false);
        };
        if *of == known {
            return (true, true);
        }
        if !self.assign(of, &known) {
            return (false, true);
        }
        let general = most_general(of.clone(), known);
        if self.is_free_of(variable, &general) {
            self.bind(variable, general);
        }
        (true, true)
    }

    /// Returns whether a variable does not occur in a type.
    fn is_free_of(&self, variable: &Type, within: &Type) -> bool {
        self.step(false, || {
            if variable == within {
                return false;
            }
            if within.kind() == TypeKind::Parameter {
                return self.find(within).is_none_or(|known| self.is_free_of(variable, known));
            }
            within.parameters().into_iter().all(|parameter| self.is_free_of(variable, parameter))
        })
    }

    /// Replaces variables by their types, and unknown types by `dyn` if wanted.
    pub(super) fn resolve(&self, of: &Type, to_dyn: bool) -> Type {
        self.replaced(of, to_dyn).unwrap_or_else(|| of.clone())
    }

    /// Returns a type whose variables are replaced; `None` if there is nothing to replace.
    fn replaced(&self, of: &Type, to_dyn: bool) -> Option<Type> {
        self.step(Some(Type::Error), || match of {
            Type::Variable(_) | Type::Parameter(_) => match self.find(of) {
                Some(known) => Some(self.resolve(known, to_dyn)),
                None => to_dyn.then_some(Type::Dyn),
            },
            Type::List(inner) => self.replaced(inner, to_dyn).map(Type::list),
            Type::Optional(inner) => self.replaced(inner, to_dyn).map(Type::optional),
            Type::Type(inner) => self.replaced(inner, to_dyn).map(|inner| Type::Type(Arc::new(inner))),
            Type::Map(pair) => match (self.replaced(&pair.0, to_dyn), self.replaced(&pair.1, to_dyn)) {
                (None, None) => None,
                (key, value) => {
                    let key = key.unwrap_or_else(|| pair.0.clone());
                    Some(Type::map(key, value.unwrap_or_else(|| pair.1.clone())))
                }
            },
            _ => None,
        })
    }

    /// Replaces the type parameters of a declaration by new variables.
    pub(super) fn instantiate(&mut self, of: &Type, named: &mut HashMap<&'static str, Type>) -> Type {
        match of {
            Type::Parameter(name) => named.entry(name).or_insert_with(|| self.fresh()).clone(),
            Type::List(inner) => Type::list(self.instantiate(inner, named)),
            Type::Optional(inner) => Type::optional(self.instantiate(inner, named)),
            Type::Type(inner) => Type::Type(Arc::new(self.instantiate(inner, named))),
            Type::Map(pair) => Type::map(self.instantiate(&pair.0, named), self.instantiate(&pair.1, named)),
            other => other.clone(),
        }
    }
}

fn is_nullable(of: &Type) -> bool {
    matches!(of.kind(), TypeKind::Opaque | TypeKind::Struct | TypeKind::Null)
        || matches!(of, Type::Duration | Type::Timestamp)
}

/// Returns the more general of two types that can be assigned to each other.
pub(super) fn most_general(one: Type, other: Type) -> Type {
    if is_less_specific(&one, &other) { one } else { other }
}

fn is_less_specific(one: &Type, other: &Type) -> bool {
    let is_open = |of: &Type| of.is_dyn() || of.kind() == TypeKind::Parameter;
    if is_open(one) {
        return true;
    }
    if is_open(other) {
        return false;
    }
    match (one, other) {
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_less_specific(a, b),
        (Type::Map(a), Type::Map(b)) => is_less_specific(&a.0, &b.0) && is_less_specific(&a.1, &b.1),
        (Type::Type(_), Type::Type(_)) => true,
        _ => one == other,
    }
}
