//! Checks of literals that a compiled expression would refuse at its first evaluation.

use super::Checked;
use crate::ast::{Id, Kind, Literal};
use crate::env::Env;
use crate::issue::Issues;
use crate::regex::compile;
use crate::types::Type;
use crate::value::{Timestamp, duration_from_text};

pub(super) fn check(source: &str, checked: &Checked, env: &Env, issues: &mut Issues) {
    let mut walk = Walk { source, checked, issues };
    if env.validates_literals {
        walk.visit(checked.ast.root, false);
    }
}

struct Walk<'a> {
    source: &'a str,
    checked: &'a Checked,
    issues: &'a mut Issues,
}

impl Walk<'_> {
    /// Checks a node and the nodes below. `exempt` is set inside of the arguments of `format`.
    fn visit(&mut self, id: Id, exempt: bool) {
        let ast = &self.checked.ast;
        let mut inside = exempt;
        match ast.kind(id) {
            Kind::Call { function, arguments, .. } => {
                inside |= &**function == "format";
                if let Some(argument) = arguments.first() {
                    self.argument(function, *argument);
                }
            }
            Kind::List { elements, optional } if !exempt => self.list(elements, optional),
            Kind::Map(entries) if !exempt => {
                let keys: Vec<(Id, bool)> = entries.iter().map(|entry| (entry.key, false)).collect();
                let values: Vec<(Id, bool)> =
                    entries.iter().map(|entry| (entry.value, entry.optional)).collect();
                self.same_types(&keys, false);
                self.same_types(&values, false);
            }
            _ => {}
        }
        ast.for_each_child(id, &mut |child| self.visit(child, inside));
    }

    fn argument(&mut self, function: &str, argument: Id) {
        let Kind::Literal(literal) = self.checked.ast.kind(argument) else { return };
        let valid = match (function, literal) {
            ("duration", Literal::String(text)) => duration_from_text(text).is_some(),
            ("duration", _) => false,
            ("timestamp", Literal::String(text)) => Timestamp::parse(text).is_some(),
            ("timestamp", Literal::Int(seconds)) => Timestamp::from_seconds(*seconds).is_some(),
            ("matches", Literal::String(pattern)) => compile(pattern).is_ok(),
            _ => return,
        };
        if !valid {
            let offset = self.checked.ast.offset(argument);
            self.issues.add(self.source, offset, format!("invalid {function} argument"));
        }
    }

    fn list(&mut self, elements: &[Id], optional: &[usize]) {
        let elements: Vec<(Id, bool)> =
            elements.iter().enumerate().map(|(index, id)| (*id, optional.contains(&index))).collect();
        self.same_types(&elements, true);
    }

    fn same_types(&mut self, elements: &[(Id, bool)], first_only: bool) {
        let checked = self.checked;
        let known = |(id, optional): &(Id, bool)| match checked.type_of(*id) {
            Type::Optional(inner) if *optional => (**inner).clone(),
            other => other.clone(),
        };
        let Some(first) = elements.first().map(known) else { return };
        for element in &elements[1..] {
            let found = known(element);
            if found != first {
                let message = format!("expected type '{first}' but found '{found}'");
                self.issues.add(self.source, checked.ast.offset(element.0), message);
                if first_only {
                    return;
                }
            }
        }
    }
}
