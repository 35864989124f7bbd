//! Chooses the overloads of calls.

use std::collections::HashMap;

use super::{Checker, Reference};
use crate::ast::{Id, Kind, Name, operator};
use crate::declare::{Function, Overload};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn call(&mut self, id: Id, name: &str, target: Option<Id>, arguments: &[Id]) {
        if name == operator::OPTIONAL_SELECT {
            self.optional_select(id, arguments[0], arguments[1]);
            return;
        }
        arguments.iter().for_each(|argument| self.visit(*argument));
        let env = self.env;
        let Some(target) = target else {
            match env.function(name) {
                Some(function) => self.resolve_global(id, function, arguments),
                None => self.undeclared(id, name),
            }
            return;
        };
        // `a.b.c()` may be a call of the function `a.b.c`.
        let qualified = self.ast.qualified_name(target).map(|prefix| format!("{prefix}.{name}"));
        if let Some(function) = qualified.and_then(|qualified| env.function(&qualified)) {
            self.resolve_global(id, function, arguments);
            return;
        }
        self.visit(target);
        match env.function(name) {
            Some(function) => self.resolve(id, function, Some(target), arguments),
            None => self.undeclared(id, name),
        }
    }

    fn resolve_global(&mut self, id: Id, function: &Function, arguments: &[Id]) {
        self.ast.kinds[id as usize] =
            Kind::Call { function: Name::from(function.name), target: None, arguments: arguments.to_vec() };
        self.resolve(id, function, None, arguments);
    }

    fn resolve(&mut self, id: Id, function: &Function, target: Option<Id>, arguments: &[Id]) {
        if target.is_none() && matches!(function.name, operator::AND | operator::OR) {
            self.logic(id, arguments);
            return;
        }
        let found: Vec<Type> = target.iter().chain(arguments).map(|argument| self.get(*argument)).collect();
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.parameters.len() != found.len() {
                continue;
            }
            let (parameters, of_overload) = self.signature(overload);
            if !self.bindings.are_assignable(&found, &parameters) {
                continue;
            }
            matching.push(index);
            let of_overload = self.bindings.resolve(&of_overload, false);
            result = Some(match result {
                None => of_overload,
                Some(known) if known.is_dyn() || known == of_overload => known,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            self.no_overload(id, function.name, target.is_some(), &found);
            return;
        };
        self.set(id, result);
        self.references[id as usize] = Reference::Overloads(matching);
    }

    fn signature(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if !overload.generic {
            return (overload.parameters.clone(), overload.result.clone());
        }
        let mut named = HashMap::new();
        let parameters = overload
            .parameters
            .iter()
            .map(|parameter| self.bindings.instantiate(parameter, &mut named))
            .collect();
        (parameters, self.bindings.instantiate(&overload.result, &mut named))
    }

    fn logic(&mut self, id: Id, arguments: &[Id]) {
        let mut known = Type::Bool;
        for argument in arguments {
            let found = self.get(*argument);
            if !self.bindings.is_assignable(&found, &Type::Bool) {
                self.mismatch(*argument, &Type::Bool, &found);
                known = Type::Error;
            }
        }
        self.set(id, known);
        self.references[id as usize] = Reference::Overloads(vec![0]);
    }

    fn no_overload(&mut self, id: Id, name: &str, member: bool, found: &[Type]) {
        let found: Vec<String> =
            found.iter().map(|argument| self.bindings.resolve(argument, true).to_string()).collect();
        let signature = match found.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", found.join(", ")),
        };
        self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        self.set(id, Type::Error);
    }
}
