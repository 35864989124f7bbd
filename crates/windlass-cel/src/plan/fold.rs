//! Compiles comprehensions.

use std::sync::Arc;

use super::{Append, Fold, Insert, Local, Node, Planner};
use crate::ast::{Comprehension, Id, Kind, Name, UNUSED, operator};
use crate::error::Error;

impl Planner<'_> {
    pub(super) fn fold(&mut self, fold: &Comprehension) -> Result<Node, Error> {
        let range = self.node(fold.range)?;
        let init = self.node(fold.init)?;
        let accumulator = self.new_slot();
        let variable = self.new_slot();
        let second = fold.second.is_some().then(|| self.new_slot());
        let depth = self.locals.len();
        let (init, lazy) = match init {
            constant @ Node::Constant(_) => (Some(constant), None),
            Node::List(list) if list.elements.is_empty() => (Some(Node::List(list)), None),
            Node::Map(entries) if entries.is_empty() => (Some(Node::Map(entries)), None),
            node => (None, Some(Arc::new(node))),
        };
        self.declare(&fold.accumulator, accumulator, lazy);
        if &*fold.variable != UNUSED {
            self.declare(&fold.variable, variable, None);
        }
        if let (Some(name), Some(slot)) = (&fold.second, second) {
            self.declare(name, slot, None);
        }
        let condition = self.node(fold.condition)?;
        let step = self.node(fold.step)?;
        self.locals.truncate(depth + 1);
        let result = self.node(fold.result)?;
        self.locals.truncate(depth);
        let planned = Fold { range, variable, second, accumulator, init, condition, step, result };
        Ok(Node::Fold(Box::new(planned)))
    }

    fn declare(&mut self, name: &Name, slot: usize, init: Option<Arc<Node>>) {
        self.locals.push(Local { name: Arc::clone(name), slot, init });
    }

    /// Compiles the step of a macro that appends to the accumulator, or inserts into it: without copies.
    pub(super) fn accumulate(
        &mut self,
        name: &str,
        target: Option<Id>,
        arguments: &[Id],
    ) -> Result<Option<Node>, Error> {
        let ast = &self.checked.ast;
        let (None, Some(first)) = (target, arguments.first()) else { return Ok(None) };
        let Kind::Ident(variable) = ast.kind(*first) else { return Ok(None) };
        if &**variable != crate::ast::ACCUMULATOR {
            return Ok(None);
        }
        let Some(slot) =
            self.locals.iter().rev().find(|local| local.name == *variable).map(|local| local.slot)
        else {
            return Ok(None);
        };
        match (name, arguments) {
            (operator::ADD, [_, list]) => match ast.kind(*list) {
                Kind::List { elements, optional } if elements.len() == 1 && optional.is_empty() => {
                    let element = self.node(elements[0])?;
                    let constant = self.env.folds_constants && matches!(element, Node::Constant(_));
                    Ok(Some(Node::Append(Box::new(Append { slot, element, constant }))))
                }
                _ => Ok(None),
            },
            ("cel.@mapInsert", [_, rest @ ..]) => {
                let arguments = self.nodes(rest.iter().copied())?;
                Ok(Some(Node::Insert(Box::new(Insert { slot, arguments }))))
            }
            _ => Ok(None),
        }
    }
}
