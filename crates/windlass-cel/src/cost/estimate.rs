//! Estimates the cost of an expression before it is evaluated.

use std::collections::HashMap;
use std::sync::Arc;

use super::path::Path;
use super::range::Range;
use crate::ast::{ACCUMULATOR, Comprehension, Id, Kind, Literal, Name};
use crate::check::{Checked, Reference};
use crate::env::Env;
use crate::evaluate::costs;
use crate::schema::Schema;
use crate::types::{Type, TypeKind};

/// Returns the largest sizes of values, by the paths of fields to the values.
pub trait SizeHints {
    /// Returns the number of characters, elements or entries that a value has at most. The path begins with a variable;
    /// `@items`, `@keys` and `@values` stand for the parts of lists and maps. A value that is not a part of a variable has an empty path.
    fn max_size(&self, path: &[Arc<str>], known: &Type) -> Option<u64>;
}

/// The hints of a schema: the sizes of the values below the variables of an expression, which all have the schema.
impl SizeHints for Schema {
    fn max_size(&self, path: &[Arc<str>], _: &Type) -> Option<u64> {
        let (_, names) = path.split_first()?;
        let mut schema = self;
        for name in names {
            schema = schema.part(name)?;
        }
        Some(schema.max_elements)
    }
}

/// Estimates the cost of an expression.
pub(crate) fn estimate(checked: &Checked, env: &Env, hints: &dyn SizeHints) -> Range {
    let mut estimator = Estimator {
        checked,
        env,
        hints,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: HashMap::new(),
    };
    estimator.cost(checked.ast.root)
}

/// The sizes of the keys and values of a list or map.
#[derive(Clone, Copy)]
pub(super) struct EntrySize {
    pub(super) is_list: bool,
    pub(super) key: Range,
    pub(super) value: Range,
}

impl EntrySize {
    pub(super) fn union(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        let (key, value) = (one.key.union(other.key), one.value.union(other.value));
        Some(Self { is_list: one.is_list, key, value })
    }
}

/// A variable of a macro.
#[derive(Clone)]
struct Local {
    path: Path,
    size: Option<Range>,
    entries: Option<EntrySize>,
}

/// A node as the estimates of functions see it.
pub(super) struct Node {
    /// The node. `None` for the elements of a list.
    pub(super) id: Option<Id>,
    pub(super) path: Path,
    pub(super) known: Type,
    pub(super) size: Option<Range>,
}

/// The cost of a call, and the size of its result.
pub(super) struct CallEstimate {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
}

pub(super) struct Estimator<'a> {
    pub(super) checked: &'a Checked,
    env: &'a Env,
    hints: &'a dyn SizeHints,
    paths: HashMap<Id, Path>,
    sizes: HashMap<Id, Range>,
    entries: HashMap<Id, EntrySize>,
    locals: HashMap<Name, Vec<Local>>,
}

impl Estimator<'_> {
    fn cost(&mut self, id: Id) -> Range {
        let checked = self.checked;
        match checked.ast.kind(id) {
            Kind::Invalid | Kind::Literal(_) => Range::fixed(0),
            Kind::Ident(name) => {
                let path = self.local(name).map_or_else(|| Path::of(name), |local| local.path.clone());
                self.paths.insert(id, path);
                Range::fixed(costs::IDENT)
            }
            Kind::Select { operand, test: true, .. } => self.cost(*operand),
            Kind::Select { operand, field, .. } => self.select(id, *operand, field),
            Kind::Call { function, target, arguments } => self.call(id, function, *target, arguments),
            Kind::List { elements, .. } => {
                let (cost, value) = self.sum_and_size(elements);
                self.entries.insert(id, EntrySize { is_list: true, key: Range::fixed(1), value });
                cost.plus(Range::fixed(costs::LIST))
            }
            Kind::Map(entries) => {
                let mut sum = Range::fixed(0);
                let min = if entries.is_empty() { 0 } else { u64::MAX };
                let (mut key, mut value) = (Range { min, max: 0 }, Range { min, max: 0 });
                for entry in entries {
                    sum = sum.plus(self.cost(entry.key)).plus(self.cost(entry.value));
                    key = key.union(self.size_or_unknown(entry.key));
                    value = value.union(self.size_or_unknown(entry.value));
                }
                self.entries.insert(id, EntrySize { is_list: false, key, value });
                sum.plus(Range::fixed(costs::MAP))
            }
            Kind::Struct { fields, .. } => {
                let sum = fields.iter().fold(Range::fixed(0), |sum, init| sum.plus(self.cost(init.value)));
                sum.plus(Range::fixed(costs::MESSAGE))
            }
            Kind::Comprehension(fold) if self.is_bind(fold) => self.bind(id, fold),
            Kind::Comprehension(fold) => self.comprehension(id, fold),
        }
    }

    fn sum_and_size(&mut self, elements: &[Id]) -> (Range, Range) {
        let mut size = Range { min: if elements.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let mut sum = Range::fixed(0);
        for element in elements {
            sum = sum.plus(self.cost(*element));
            size = size.union(self.size_or_unknown(*element));
        }
        (sum, size)
    }

    fn select(&mut self, id: Id, operand: Id, field: &str) -> Range {
        let mut sum = self.cost(operand);
        let kind = self.checked.type_of(operand).kind();
        if matches!(kind, TypeKind::Map | TypeKind::Struct | TypeKind::Parameter) {
            sum = sum.plus(Range::fixed(costs::FIELD));
        }
        let path = self.path(operand).append(field);
        self.paths.insert(id, path);
        sum
    }

    fn call(&mut self, id: Id, name: &str, target: Option<Id>, arguments: &[Id]) -> Range {
        if name == "dyn"
            && let Some(argument) = arguments.first()
        {
            let cost = self.cost(*argument);
            self.copy_sizes(id, *argument);
            return cost.plus(Range::fixed(1));
        }
        let mut costs = Vec::with_capacity(arguments.len());
        let mut nodes = Vec::with_capacity(arguments.len());
        for argument in arguments {
            costs.push(self.cost(*argument));
            nodes.push(self.node(*argument));
        }
        let overloads = self.overloads(id, name);
        if overloads.is_empty() {
            return Range::fixed(0);
        }
        let mut sum = Range::fixed(0);
        let target = target.map(|target| {
            sum = sum.plus(self.cost(target));
            self.node(target)
        });
        let mut cost = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in overloads {
            let estimate = self.function(id, name, overload, target.as_ref(), &nodes, &costs);
            cost = cost.union(estimate.cost);
            if let Some(found) = estimate.size {
                size = Some(size.map_or(found, |size| size.union(found)));
            }
            let part = match overload {
                "index_list" => "@items",
                "index_map" => "@values",
                _ => "",
            };
            if !part.is_empty() {
                size = self.entry_size(arguments[0]).map(|entry| entry.value);
                let path = self.path(arguments[0]).append(part);
                self.paths.insert(id, path);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(id, size);
        }
        sum.plus(cost)
    }

    fn overloads(&self, id: Id, name: &str) -> Vec<&'static str> {
        let Reference::Overloads(matching) = &self.checked.references[id as usize] else { return Vec::new() };
        let Some(function) = self.env.function(name) else { return Vec::new() };
        matching.iter().map(|index| function.overloads[*index].id).collect()
    }

    fn is_bind(&self, fold: &Comprehension) -> bool {
        let ast = &self.checked.ast;
        matches!(ast.kind(fold.range), Kind::List { elements, .. } if elements.is_empty())
            && matches!(ast.kind(fold.condition), Kind::Literal(Literal::Bool(false)))
            && &*fold.accumulator != ACCUMULATOR
    }

    fn bind(&mut self, id: Id, fold: &Comprehension) -> Range {
        let mut sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push_value(&fold.accumulator, fold.init);
        sum = sum.plus(self.cost(fold.result));
        self.pop(&fold.accumulator);
        self.copy_sizes(id, fold.result);
        sum
    }

    fn comprehension(&mut self, id: Id, fold: &Comprehension) -> Range {
        let mut sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push_value(&fold.accumulator, fold.init);
        match &fold.second {
            Some(second) => {
                self.push_part(&fold.variable, fold.range, Part::Key);
                self.push_part(second, fold.range, Part::Value);
            }
            None => self.push_part(&fold.variable, fold.range, Part::Single),
        }
        let condition = self.cost(fold.condition);
        let step = self.cost(fold.step);
        self.pop(&fold.variable);
        if let Some(second) = &fold.second {
            self.pop(second);
        }
        sum = sum.plus(self.cost(fold.result));
        self.pop(&fold.accumulator);
        let count = self.size_or_unknown(fold.range);
        sum = sum.plus(count.times(step.plus(condition)));
        match self.checked.ast.kind(fold.init) {
            Kind::Literal(_) => {
                if let Some(size) = self.size(fold.init) {
                    self.sizes.insert(id, size);
                }
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.sizes.insert(id, count);
                if let Some(entry) = self.entry_size(fold.step) {
                    self.entries.insert(id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name).and_then(|stack| stack.last())
    }

    fn push(&mut self, name: &Name, local: Local) {
        self.locals.entry(Arc::clone(name)).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn push_value(&mut self, name: &Name, value: Id) {
        let path = self.path(value);
        let entries = self.entry_size(value);
        let size = self.size(value);
        self.push(name, Local { path, size, entries });
    }

    /// Declares a variable for the keys or values of a range.
    fn push_part(&mut self, name: &Name, range: Id, part: Part) {
        let entry = self.entry_size(range);
        let is_list =
            entry.map_or(self.checked.type_of(range).kind() == TypeKind::List, |entry| entry.is_list);
        let (size, field) = match (part, is_list) {
            (Part::Key, true) => (entry.map(|entry| entry.key), "@indices"),
            (Part::Key | Part::Single, false) => (entry.map(|entry| entry.key), "@keys"),
            (Part::Value | Part::Single, true) => (entry.map(|entry| entry.value), "@items"),
            (Part::Value, false) => (entry.map(|entry| entry.value), "@values"),
        };
        let path = self.path(range).append(field);
        self.push(name, Local { path, size, entries: None });
    }

    fn path(&self, id: Id) -> Path {
        if let Kind::Ident(name) = self.checked.ast.kind(id)
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&id).cloned().unwrap_or_default()
    }

    fn node(&mut self, id: Id) -> Node {
        let mut path = self.path(id);
        if !path.is_empty() && &*path.names()[0] == ACCUMULATOR {
            path = Path::default();
        }
        let size = self.size(id);
        Node { id: Some(id), path, known: self.checked.type_of(id).clone(), size }
    }

    pub(super) fn hint(&self, path: &Path, known: &Type) -> Option<Range> {
        self.hints.max_size(&path.names(), known).map(|max| Range { min: 0, max })
    }

    /// Returns the size of a node, if the size is known.
    pub(super) fn size(&mut self, id: Id) -> Option<Range> {
        if let Some(size) = self.sizes.get(&id) {
            return Some(*size);
        }
        let literal = match self.checked.ast.kind(id) {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count()),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Kind::Literal(_) => Some(1),
            Kind::List { elements, .. } => Some(elements.len()),
            Kind::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = literal {
            return Some(Range::fixed(size as u64));
        }
        if let Some(size) = self.hint(&self.path(id), self.checked.type_of(id)) {
            self.sizes.insert(id, size);
            return Some(size);
        }
        if self.checked.type_of(id).is_scalar() {
            return Some(Range::fixed(1));
        }
        match self.checked.ast.kind(id) {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    pub(super) fn size_or_unknown(&mut self, id: Id) -> Range {
        self.size(id).unwrap_or(Range::UNKNOWN)
    }

    pub(super) fn entry_size(&self, id: Id) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&id) {
            return Some(*entry);
        }
        match self.checked.ast.kind(id) {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }

    pub(super) fn set_entry_size(&mut self, id: Id, entry: Option<EntrySize>) {
        if let Some(entry) = entry {
            self.entries.insert(id, entry);
        }
    }

    fn copy_sizes(&mut self, to: Id, from: Id) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to, size);
        }
        let entry = self.entry_size(from);
        self.set_entry_size(to, entry);
    }
}

/// The part of a range that a variable stands for.
#[derive(Clone, Copy)]
enum Part {
    Key,
    Value,
    /// The element of a list, or the key of a map.
    Single,
}
