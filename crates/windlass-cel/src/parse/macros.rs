//! Expands macros to comprehensions.

use std::sync::Arc;

use super::{Parsed, Parser};
use crate::ast::{ACCUMULATOR, Comprehension, Id, Kind, Literal, Name, UNUSED, operator};

/// A macro that cannot be expanded: the offset and the message of the issue.
type Refused = (usize, String);

type Expanded = Result<Id, Refused>;

/// The parts of a comprehension that differ between the macros.
struct Loop {
    range: Id,
    variable: Name,
    second: Option<Name>,
    init: Id,
    condition: Id,
    step: Id,
    result: Id,
}

const DUPLICATE: &str = "iteration variable overwrites accumulator variable";

impl Parser<'_> {
    /// Expands a call such as `has(a.b)`, if the function is a macro.
    pub(super) fn expand_global(
        &mut self,
        name: &str,
        offset: usize,
        arguments: &[Id],
    ) -> Parsed<Option<Id>> {
        let ("has", [argument], false) = (name, arguments, self.syntax.no_macros) else { return Ok(None) };
        self.check_size()?;
        if let Kind::Select { operand, field, test: false } = self.ast.kind(*argument).clone() {
            return self.node(offset, Kind::Select { operand, field, test: true }).map(Some);
        }
        let at = self.ast.offset(*argument);
        self.refuse((at, "invalid argument to has() macro".to_owned())).map(Some)
    }

    /// Expands a call such as `list.all(x, x > 0)`, if the method is a macro.
    pub(super) fn expand_member(
        &mut self,
        target: Id,
        name: &str,
        offset: usize,
        arguments: &[Id],
    ) -> Parsed<Option<Id>> {
        self.check_size()?;
        let syntax = self.syntax;
        if syntax.no_macros {
            return Ok(None);
        }
        let expanded = match (name, arguments) {
            ("all" | "exists" | "exists_one" | "existsOne", [variable, predicate]) => {
                let variable = self.simple_name(*variable, "argument must be a simple name");
                variable.map(|variable| self.quantifier(name, offset, target, (variable, None), *predicate))
            }
            ("map", [variable, transform]) => self.map_macro(offset, target, *variable, None, *transform),
            ("map", [variable, filter, transform]) => {
                self.map_macro(offset, target, *variable, Some(*filter), *transform)
            }
            ("filter", [variable, filter]) => self.filter(offset, target, *variable, *filter),
            ("all" | "exists" | "exists_one" | "existsOne", [first, second, predicate])
                if syntax.two_variables =>
            {
                self.two_names(*first, *second).map(|(first, second)| {
                    self.quantifier(name, offset, target, (first, Some(second)), *predicate)
                })
            }
            ("transformList" | "transformMap" | "transformMapEntry", [first, second, rest @ ..])
                if syntax.two_variables && matches!(rest.len(), 1 | 2) =>
            {
                self.two_names(*first, *second).map(|names| self.transform(name, offset, target, names, rest))
            }
            ("optMap" | "optFlatMap", [variable, body]) if syntax.optionals => {
                self.optional_map(name, offset, target, *variable, *body)
            }
            ("sortBy", [variable, key]) if syntax.sort_by => self.sort_by(offset, target, *variable, *key),
            ("bind", [variable, value, body]) if syntax.bind && self.is_named(target, "cel") => {
                let message = "cel.bind() variable names must be simple identifiers";
                self.simple_name(*variable, message).map(|name| self.bind(offset, name, *value, *body))
            }
            ("least" | "greatest", [_, ..]) if syntax.math && self.is_named(target, "math") => {
                Ok(self.extreme(name, offset, arguments))
            }
            _ => return Ok(None),
        };
        match expanded {
            Ok(id) => Ok(Some(id)),
            Err(refused) => self.refuse(refused).map(Some),
        }
    }

    fn refuse(&mut self, (offset, message): Refused) -> Parsed {
        self.report(offset, message);
        self.node(offset, Kind::Invalid)
    }

    fn is_named(&self, target: Id, wanted: &str) -> bool {
        matches!(self.ast.kind(target), Kind::Ident(name) if &**name == wanted)
    }

    fn extreme(&mut self, name: &str, at: usize, arguments: &[Id]) -> Id {
        let function = if name == "least" { "math.@min" } else { "math.@max" };
        if arguments.len() <= 2 {
            return self.global(at, function, arguments.to_vec());
        }
        let elements = arguments.to_vec();
        let list = self.ast.add(at, Kind::List { elements, optional: Vec::new() });
        self.global(at, function, vec![list])
    }

    /// Returns the name of a variable that a macro declares.
    fn simple_name(&self, id: Id, message: &str) -> Result<Name, Refused> {
        let at = self.ast.offset(id);
        match self.ast.kind(id) {
            Kind::Ident(name) if &**name == ACCUMULATOR => Err((at, DUPLICATE.to_owned())),
            Kind::Ident(name) => Ok(Arc::clone(name)),
            _ => Err((at, message.to_owned())),
        }
    }

    fn two_names(&self, first: Id, second: Id) -> Result<(Name, Name), Refused> {
        let one = self.simple_name(first, "argument must be a simple name")?;
        let two = self.simple_name(second, "argument must be a simple name")?;
        if one == two {
            return Err((self.ast.offset(second), format!("duplicate variable name: {one}")));
        }
        Ok((one, two))
    }

    fn literal_node(&mut self, offset: usize, literal: Literal) -> Id {
        self.ast.add(offset, Kind::Literal(literal))
    }

    fn ident(&mut self, offset: usize, name: &str) -> Id {
        self.ast.add(offset, Kind::Ident(Name::from(name)))
    }

    fn accumulator(&mut self, offset: usize) -> Id {
        self.ident(offset, ACCUMULATOR)
    }

    fn global(&mut self, offset: usize, function: &str, arguments: Vec<Id>) -> Id {
        self.ast.add(offset, Kind::Call { function: Name::from(function), target: None, arguments })
    }

    fn method(&mut self, offset: usize, function: &str, target: Id, arguments: Vec<Id>) -> Id {
        self.ast.add(offset, Kind::Call { function: Name::from(function), target: Some(target), arguments })
    }

    fn empty_list(&mut self, offset: usize) -> Id {
        self.ast.add(offset, Kind::List { elements: Vec::new(), optional: Vec::new() })
    }

    fn fold(&mut self, offset: usize, parts: Loop) -> Id {
        let Loop { range, variable, second, init, condition, step, result } = parts;
        let accumulator = Name::from(ACCUMULATOR);
        let fold = Comprehension { range, variable, second, accumulator, init, condition, step, result };
        self.ast.add(offset, Kind::Comprehension(Box::new(fold)))
    }

    fn quantifier(
        &mut self,
        name: &str,
        at: usize,
        range: Id,
        (variable, second): (Name, Option<Name>),
        predicate: Id,
    ) -> Id {
        let (init, condition, step, result);
        match name {
            "all" => {
                init = self.literal_node(at, Literal::Bool(true));
                let accumulated = self.accumulator(at);
                condition = self.global(at, operator::NOT_STRICTLY_FALSE, vec![accumulated]);
                let accumulated = self.accumulator(at);
                step = self.global(at, operator::AND, vec![accumulated, predicate]);
                result = self.accumulator(at);
            }
            "exists" => {
                init = self.literal_node(at, Literal::Bool(false));
                let accumulated = self.accumulator(at);
                let negated = self.global(at, operator::NOT, vec![accumulated]);
                condition = self.global(at, operator::NOT_STRICTLY_FALSE, vec![negated]);
                let accumulated = self.accumulator(at);
                step = self.global(at, operator::OR, vec![accumulated, predicate]);
                result = self.accumulator(at);
            }
            _ => {
                init = self.literal_node(at, Literal::Int(0));
                condition = self.literal_node(at, Literal::Bool(true));
                let (accumulated, one) = (self.accumulator(at), self.literal_node(at, Literal::Int(1)));
                let incremented = self.global(at, operator::ADD, vec![accumulated, one]);
                let unchanged = self.accumulator(at);
                step = self.global(at, operator::CONDITIONAL, vec![predicate, incremented, unchanged]);
                let (accumulated, one) = (self.accumulator(at), self.literal_node(at, Literal::Int(1)));
                result = self.global(at, operator::EQUALS, vec![accumulated, one]);
            }
        }
        self.fold(at, Loop { range, variable, second, init, condition, step, result })
    }

    /// Builds a loop that appends `element` to the accumulator, for the elements that the filter accepts.
    fn collect(
        &mut self,
        at: usize,
        range: Id,
        (variable, second): (Name, Option<Name>),
        filter: Option<Id>,
        element: Id,
    ) -> Id {
        let init = self.empty_list(at);
        let condition = self.literal_node(at, Literal::Bool(true));
        let accumulated = self.accumulator(at);
        let list = self.ast.add(at, Kind::List { elements: vec![element], optional: Vec::new() });
        let appended = self.global(at, operator::ADD, vec![accumulated, list]);
        let step = self.filtered(at, filter, appended);
        let result = self.accumulator(at);
        self.fold(at, Loop { range, variable, second, init, condition, step, result })
    }

    fn filtered(&mut self, at: usize, filter: Option<Id>, step: Id) -> Id {
        let Some(filter) = filter else { return step };
        let unchanged = self.accumulator(at);
        self.global(at, operator::CONDITIONAL, vec![filter, step, unchanged])
    }

    fn map_macro(
        &mut self,
        at: usize,
        range: Id,
        variable: Id,
        filter: Option<Id>,
        transform: Id,
    ) -> Expanded {
        let name = self.simple_name(variable, "argument is not an identifier")?;
        Ok(self.collect(at, range, (name, None), filter, transform))
    }

    fn filter(&mut self, at: usize, range: Id, variable: Id, filter: Id) -> Expanded {
        let name = self.simple_name(variable, "argument is not an identifier")?;
        Ok(self.collect(at, range, (name, None), Some(filter), variable))
    }

    fn transform(&mut self, name: &str, at: usize, range: Id, (one, two): (Name, Name), rest: &[Id]) -> Id {
        let (filter, transform) = match rest {
            [filter, transform, ..] => (Some(*filter), *transform),
            _ => (None, rest[0]),
        };
        if name == "transformList" {
            return self.collect(at, range, (one, Some(two)), filter, transform);
        }
        let init = self.ast.add(at, Kind::Map(Vec::new()));
        let condition = self.literal_node(at, Literal::Bool(true));
        let mut arguments = vec![self.accumulator(at)];
        if name == "transformMap" {
            arguments.push(self.ident(at, &one));
        }
        arguments.push(transform);
        let inserted = self.global(at, "cel.@mapInsert", arguments);
        let step = self.filtered(at, filter, inserted);
        let result = self.accumulator(at);
        self.fold(at, Loop { range, variable: one, second: Some(two), init, condition, step, result })
    }

    /// Builds a comprehension without iterations that binds a variable to a value.
    fn bind(&mut self, at: usize, name: Name, value: Id, body: Id) -> Id {
        let range = self.empty_list(at);
        let condition = self.literal_node(at, Literal::Bool(false));
        let step = self.ident(at, &name);
        let fold = Comprehension {
            range,
            variable: Name::from(UNUSED),
            second: None,
            accumulator: name,
            init: value,
            condition,
            step,
            result: body,
        };
        self.ast.add(at, Kind::Comprehension(Box::new(fold)))
    }

    fn optional_map(&mut self, macro_name: &str, at: usize, target: Id, variable: Id, body: Id) -> Expanded {
        let Kind::Ident(name) = self.ast.kind(variable) else {
            let message = format!("{macro_name}() variable name must be a simple identifier");
            return Err((self.ast.offset(variable), message));
        };
        let name = Arc::clone(name);
        let has_value = self.method(at, "hasValue", target, Vec::new());
        let copy = self.ast.copy(target);
        let value = self.method(at, "value", copy, Vec::new());
        let bound = self.bind(at, name, value, body);
        let mapped = if macro_name == "optMap" { self.global(at, "optional.of", vec![bound]) } else { bound };
        let none = self.global(at, "optional.none", Vec::new());
        Ok(self.global(at, operator::CONDITIONAL, vec![has_value, mapped, none]))
    }

    fn sort_by(&mut self, at: usize, target: Id, variable: Id, key: Id) -> Expanded {
        const INPUT: &str = "@__sortBy_input__";
        if matches!(self.ast.kind(target), Kind::Literal(_) | Kind::Map(_) | Kind::Struct { .. }) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select \
                           expression";
            return Err((self.ast.offset(target), message.to_owned()));
        }
        let input = self.ident(at, INPUT);
        let keys = self.map_macro(at, input, variable, None, key)?;
        let list = self.ident(at, INPUT);
        let sorted = self.method(at, "@sortByAssociatedKeys", list, vec![keys]);
        Ok(self.bind(at, Name::from(INPUT), target, sorted))
    }
}
