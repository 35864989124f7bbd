//! Checks of `'…'.format([…])` with a literal text and a literal list.

use super::Checked;
use crate::ast::{Id, Kind, Literal};
use crate::issue::Issues;
use crate::library::format::{Clause, clauses};
use crate::types::Type;

pub(super) fn check(source: &str, checked: &Checked, issues: &mut Issues) {
    for (index, kind) in checked.ast.kinds.iter().enumerate() {
        if let Kind::Call { function, target: Some(target), arguments } = kind
            && &**function == "format"
            && let (Kind::Literal(Literal::String(text)), [list]) =
                (checked.ast.kind(*target), arguments.as_slice())
            && let Kind::List { elements, .. } = checked.ast.kind(*list)
            && let Err((at, message)) = check_call(checked, index as Id, text, elements)
        {
            issues.add(source, checked.ast.offset(at), message);
        }
    }
}

/// Checks the arguments of a call. An error has the node that it is about.
fn check_call(checked: &Checked, call: Id, text: &str, elements: &[Id]) -> Result<(), (Id, String)> {
    let mut used = 0;
    for clause in clauses(text) {
        // The argument of a clause is looked up before the clause is read.
        let argument = match &clause {
            Ok(Clause::Text(_)) => continue,
            _ => *elements.get(used).ok_or_else(|| (call, format!("index {used} out of range")))?,
        };
        used += 1;
        let clause = clause.map_err(|message| (call, message))?;
        check_argument(checked, argument, &clause)
            .map_err(|(at, message)| (at, format!("error during formatting: {message}")))?;
    }
    if elements.len() > used {
        let message =
            format!("too many arguments supplied to string.format (expected {used}, got {})", elements.len());
        return Err((call, message));
    }
    Ok(())
}

fn check_argument(checked: &Checked, id: Id, clause: &Clause<'_>) -> Result<(), (Id, String)> {
    let known = checked.type_of(id);
    let fits = match clause {
        Clause::Text(_) => true,
        Clause::String => return check_string(checked, id),
        Clause::Decimal | Clause::Octal => matches!(known, Type::Int | Type::Uint),
        Clause::Fixed(_) | Clause::Scientific(_) => matches!(known, Type::Double | Type::String),
        Clause::Binary => matches!(known, Type::Int | Type::Uint | Type::Bool),
        Clause::Hex { .. } => matches!(known, Type::Int | Type::Uint | Type::String | Type::Bytes),
    };
    if fits || known.is_dyn() { Ok(()) } else { Err((id, clause.mismatch(&known.name()))) }
}

fn check_string(checked: &Checked, id: Id) -> Result<(), (Id, String)> {
    let known = checked.type_of(id);
    let fits = !matches!(known, Type::Opaque(_) | Type::Object(_) | Type::Struct(_) | Type::Optional(_));
    if !fits {
        return Err((id, Clause::String.mismatch(&known.name())));
    }
    match checked.ast.kind(id) {
        Kind::List { elements, .. } => {
            elements.iter().try_for_each(|element| check_string(checked, *element))
        }
        Kind::Map(entries) => entries
            .iter()
            .flat_map(|entry| [entry.key, entry.value])
            .try_for_each(|child| check_string(checked, child)),
        _ => Ok(()),
    }
}
