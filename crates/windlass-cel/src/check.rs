//! The type checker.

mod fields;
mod literals;
mod overloads;
mod texts;
mod unify;

use std::sync::Arc;

use crate::ast::{Ast, Comprehension, Entry, Id, Init, Kind, Literal, Name};
use crate::env::Env;
use crate::issue::Issues;
use crate::types::{StructType, Type};
use unify::Bindings;

/// The target of a name or a call.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable of the environment, by its index.
    Variable(usize),
    /// A variable of a macro.
    Local,
    /// The name of a type.
    TypeName(Type),
    /// The overloads that a call may have, by their indices in the function.
    Overloads(Vec<usize>),
}

/// An expression whose types are known.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) ast: Ast,
    pub(crate) types: Vec<Type>,
    pub(crate) references: Vec<Reference>,
}

impl Checked {
    pub(crate) fn type_of(&self, id: Id) -> &Type {
        &self.types[id as usize]
    }
}

/// Checks the types of an expression.
pub(crate) fn check(source: &str, ast: Ast, env: &Env) -> Result<Checked, Issues> {
    let count = ast.kinds.len();
    let mut checker = Checker::new(source, ast, env, false);
    let root = checker.ast.root;
    checker.visit(root);
    for index in 0..count {
        if checker.bindings.is_exhausted() {
            break;
        }
        let known = checker.bindings.resolve(&checker.types[index], true);
        checker.types[index] = known;
    }
    let exhausted = checker.bindings.is_exhausted();
    let Checker { ast, types, references, mut issues, .. } = checker;
    if exhausted {
        issues = Issues::new(source);
        issues.add_general("the types of the expression are too large");
    }
    let checked = Checked { ast, types, references };
    if issues.is_empty() {
        literals::check(source, &checked, env, &mut issues);
        texts::check(source, &checked, &mut issues);
    }
    if issues.is_empty() { Ok(checked) } else { Err(issues) }
}

/// Resolves the names of an expression, without a check of its types.
pub(crate) fn resolve(source: &str, ast: Ast, env: &Env) -> Checked {
    let mut checker = Checker::new(source, ast, env, true);
    let root = checker.ast.root;
    checker.visit(root);
    let Checker { ast, types, references, .. } = checker;
    Checked { ast, types, references }
}

struct Checker<'a> {
    /// True if every type is `dyn`.
    lenient: bool,
    source: &'a str,
    env: &'a Env,
    ast: Ast,
    types: Vec<Type>,
    references: Vec<Reference>,
    bindings: Bindings,
    /// The variables of the macros around a node.
    scopes: Vec<(Name, Type)>,
    issues: Issues,
}

impl<'a> Checker<'a> {
    fn new(source: &'a str, ast: Ast, env: &'a Env, lenient: bool) -> Self {
        let count = ast.kinds.len();
        let types = vec![if lenient { Type::Dyn } else { Type::Error }; count];
        let references = vec![Reference::None; count];
        let (bindings, scopes, issues) = (Bindings::default(), Vec::new(), Issues::new(source));
        Self { lenient, source, env, ast, types, references, bindings, scopes, issues }
    }

    fn report(&mut self, id: Id, message: impl Into<String>) {
        self.issues.add(self.source, self.ast.offset(id), message);
    }

    fn set(&mut self, id: Id, known: Type) {
        if !self.lenient {
            self.bindings.measure(&known);
            self.types[id as usize] = known;
        }
    }

    fn get(&self, id: Id) -> Type {
        self.types[id as usize].clone()
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        let message = format!("undeclared reference to '{name}' (in container '{}')", self.env.container);
        self.report(id, message);
        self.set(id, Type::Error);
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.bindings.measure(expected);
        self.bindings.measure(found);
        if self.bindings.is_exhausted() {
            return;
        }
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn visit(&mut self, id: Id) {
        if self.bindings.is_exhausted() {
            return;
        }
        match self.ast.kind(id).clone() {
            Kind::Invalid => {}
            Kind::Literal(literal) => self.set(id, type_of_literal(&literal)),
            Kind::Ident(name) => match self.look_up(&name) {
                Some((name, known, reference)) => self.refer(id, name, known, reference),
                None => self.undeclared(id, &name),
            },
            Kind::Select { operand, field, test } => self.select(id, operand, &field, test),
            Kind::Call { function, target, arguments } => self.call(id, &function, target, &arguments),
            Kind::List { elements, optional } => self.list(id, &elements, &optional),
            Kind::Map(entries) => self.map(id, &entries),
            Kind::Struct { name, fields } => self.message(id, &name, &fields),
            Kind::Comprehension(fold) => self.comprehension(id, &fold),
        }
    }

    fn refer(&mut self, id: Id, name: Name, known: Type, reference: Reference) {
        self.set(id, known);
        self.references[id as usize] = reference;
        self.ast.kinds[id as usize] = Kind::Ident(name);
    }

    /// Finds a variable or the name of a type. Returns the full name and the type.
    fn look_up(&self, name: &str) -> Option<(Name, Type, Reference)> {
        if let Some((name, known)) = self.local(name) {
            return Some((Arc::clone(name), known.clone(), Reference::Local));
        }
        for candidate in self.env.candidates(name) {
            if let Some((index, known)) = self.env.variable(&candidate) {
                return Some((candidate.as_str().into(), known.clone(), Reference::Variable(index)));
            }
            if let Some(named) = self.env.type_named(&candidate) {
                let known = Type::Type(Arc::new(named.clone()));
                return Some((candidate.as_str().into(), known, Reference::TypeName(named)));
            }
        }
        None
    }

    /// Finds a variable of a macro.
    fn local(&self, name: &str) -> Option<&(Name, Type)> {
        self.scopes.iter().rev().find(|(known, _)| **known == *name)
    }

    fn list(&mut self, id: Id, elements: &[Id], optional: &[usize]) {
        let mut joined = None;
        for (index, element) in elements.iter().enumerate() {
            self.visit(*element);
            let found = self.unwrap_optional(*element, optional.contains(&index));
            joined = Some(self.join(joined, found));
        }
        let element = joined.unwrap_or_else(|| self.bindings.fresh());
        self.set(id, Type::list(element));
    }

    /// Returns the type of an element; an optional one must be of an optional type.
    fn unwrap_optional(&mut self, id: Id, optional: bool) -> Type {
        let found = self.get(id);
        if !optional {
            return found;
        }
        match &found {
            Type::Optional(inner) => (**inner).clone(),
            found if found.is_dyn() => found.clone(),
            found => {
                self.mismatch(id, &Type::optional(found.clone()), found);
                found.clone()
            }
        }
    }

    fn map(&mut self, id: Id, entries: &[Entry]) {
        let mut joined: Option<(Type, Type)> = None;
        for entry in entries {
            self.visit(entry.key);
            let key = self.get(entry.key);
            let (keys, values) = joined.unzip();
            let keys = self.join(keys, key);
            self.visit(entry.value);
            let value = self.unwrap_optional(entry.value, entry.optional);
            joined = Some((keys, self.join(values, value)));
        }
        let (key, value) = joined.unwrap_or_else(|| (self.bindings.fresh(), self.bindings.fresh()));
        self.set(id, Type::map(key, value));
    }

    /// Returns the most general of two types of a list or map.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.bindings.is_assignable(&previous, &current) {
            return unify::most_general(previous, current);
        }
        Type::Dyn
    }

    fn message(&mut self, id: Id, name: &str, fields: &[Init]) {
        let Some(object) = self.message_type(id, name) else {
            self.set(id, Type::Error);
            // A type without fields is known, and the fields are looked up.
            let is_type = matches!(self.look_up(name), Some((_, Type::Type(_), _)));
            for init in fields {
                self.visit(init.value);
                if is_type {
                    self.undefined_field(init);
                }
            }
            return;
        };
        for init in fields {
            self.visit(init.value);
            let found = self.unwrap_optional(init.value, init.optional);
            let Some(expected) = object.field(&init.field) else {
                self.undefined_field(init);
                continue;
            };
            if !self.bindings.is_assignable(&expected, &found) {
                let message = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                    init.field
                );
                self.issues.add(self.source, init.offset, message);
            }
        }
        let known = Type::Struct(object);
        self.references[id as usize] = Reference::TypeName(known.clone());
        self.set(id, known);
    }

    fn undefined_field(&mut self, init: &Init) {
        self.issues.add(self.source, init.offset, format!("undefined field '{}'", init.field));
    }

    /// Returns the type of a message. Reports a name that is not the name of such a type.
    fn message_type(&mut self, id: Id, name: &str) -> Option<StructType> {
        match self.look_up(name) {
            None => self.undeclared(id, name),
            Some((_, Type::Type(named), _)) => match &*named {
                Type::Struct(object) => return Some(object.clone()),
                other => self.report(id, format!("'{}' is not a message type", other.name())),
            },
            Some((_, known, _)) => self.report(id, format!("'{}' is not a type", known.name())),
        }
        None
    }

    fn comprehension(&mut self, id: Id, fold: &Comprehension) {
        self.visit(fold.range);
        self.visit(fold.init);
        let range = self.bindings.resolve(&self.types[fold.range as usize], false);
        let accumulator = self.get(fold.init);
        let depth = self.scopes.len();
        self.scopes.push((Arc::clone(&fold.accumulator), accumulator.clone()));
        let (first, second) = self.variables(fold, &range);
        self.scopes.push((Arc::clone(&fold.variable), first));
        if let Some(name) = &fold.second {
            self.scopes.push((Arc::clone(name), second));
        }
        self.visit(fold.condition);
        self.assert_type(fold.condition, &Type::Bool);
        self.visit(fold.step);
        self.assert_type(fold.step, &accumulator);
        self.scopes.truncate(depth + 1);
        self.visit(fold.result);
        self.scopes.truncate(depth);
        let result = self.bindings.resolve(&self.types[fold.result as usize], false);
        self.set(id, result);
    }

    /// Returns the types of the variables of a comprehension.
    fn variables(&mut self, fold: &Comprehension, range: &Type) -> (Type, Type) {
        let two = fold.second.is_some();
        match range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) | Type::Parameter(_) => {
                self.bindings.is_assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert_type(&mut self, id: Id, expected: &Type) {
        let found = self.get(id);
        if !self.bindings.is_assignable(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
