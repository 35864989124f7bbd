//! Types of fields.

use super::{Checker, Reference};
use crate::ast::{Id, Kind, Literal};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) {
        if let Some(qualified) = self.ast.qualified_name(id)
            && self.local(qualified.split('.').next().unwrap_or_default()).is_none()
            && let Some((name, known, reference)) = self.look_up(&qualified)
        {
            self.refer(id, name, known, reference);
            return;
        }
        let found = self.field(id, operand, field, false);
        let known = if test { Type::Bool } else { self.bindings.resolve(&found, false) };
        self.set(id, known);
    }

    /// Checks `a.?b`, which is a call of an operator.
    pub(super) fn optional_select(&mut self, id: Id, operand: Id, field: Id) {
        let Kind::Literal(Literal::String(name)) = self.ast.kind(field).clone() else { return };
        self.set(field, Type::String);
        let found = self.field(id, operand, &name, true);
        let known = self.bindings.resolve(&found, false);
        self.set(id, known);
        self.references[id as usize] = Reference::Overloads(vec![0]);
    }

    fn field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type {
        self.visit(operand);
        let operand = self.bindings.resolve(&self.types[operand as usize], false);
        let (target, unwrapped) = match &operand {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let found = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Struct(object) => object.field(field).unwrap_or_else(|| {
                self.report(id, format!("undefined field '{field}'"));
                Type::Error
            }),
            Type::Object(name) => {
                self.report(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Variable(_) | Type::Parameter(_) => {
                self.bindings.is_assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                self.report(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if unwrapped || optional { Type::optional(found) } else { found }
    }
}
