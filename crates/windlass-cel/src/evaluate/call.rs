//! Evaluates calls of functions.

use smallvec::SmallVec;

use super::{Evaluator, costs};
use crate::error::Error;
use crate::library::regex::run as run_regex;
use crate::meter::Meter;
use crate::plan::{Call, Dispatch};
use crate::types::Type;
use crate::value::Value;

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn call(&mut self, call: &Call) -> Result<Value<'a>, Error> {
        let mut arguments: SmallVec<[Value<'a>; 3]> = SmallVec::new();
        let mut failure = None;
        for (index, argument) in call.arguments.iter().enumerate() {
            match self.eval(argument) {
                Ok(value) => arguments.push(value),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => {
                    let last = index + 1 == call.arguments.len();
                    if call.stops_early && !last {
                        return Err(error);
                    }
                    failure.get_or_insert(error);
                    // A failed argument counts as a value of size 1.
                    arguments.push(Value::Null);
                }
            }
        }
        let result = match failure {
            Some(error) => Err(error),
            None => dispatch(&mut self.meter, call, &arguments),
        };
        if result.as_ref().is_err_and(Error::is_fatal) {
            return result;
        }
        let cost = match call.cost {
            Some(cost) => cost(&mut self.meter, &arguments, result.as_ref().ok()),
            None => costs::CALL,
        };
        self.meter.charge(cost)?;
        result.map_err(|error| if error.is_mismatch() { no_overload(call, &arguments) } else { error })
    }
}

fn dispatch<'a>(meter: &mut Meter, call: &Call, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &call.dispatch {
        Dispatch::One(run) => run(meter, arguments),
        Dispatch::Regex { kind, regex } => run_regex(meter, *kind, regex, arguments),
        Dispatch::Many(overloads) => {
            let fits = |parameters: &[Type]| {
                parameters.iter().zip(arguments).all(|(parameter, argument)| accepts(parameter, argument))
            };
            match overloads.iter().find(|(parameters, _)| fits(parameters)) {
                Some((_, run)) => run(meter, arguments),
                None => Err(Error::mismatch()),
            }
        }
    }
}

/// Returns whether a parameter takes a value. Of lists and maps, the first element counts.
fn accepts(parameter: &Type, value: &Value<'_>) -> bool {
    match (parameter, value) {
        (Type::Dyn | Type::Any | Type::Parameter(_), _) => true,
        (Type::List(element), Value::List(list)) => {
            list.get(0).is_none_or(|first| first.is_ok_and(|first| accepts(element, &first)))
        }
        (Type::Map(_), Value::Map(_)) | (Type::Optional(_), Value::Optional(_)) => true,
        (parameter, value) => parameter.name() == value.type_name(),
    }
}

fn no_overload(call: &Call, arguments: &[Value<'_>]) -> Error {
    if call.singleton {
        return Error::new(format!("no such overload: {}", call.name));
    }
    let names: Vec<&str> = arguments.iter().map(Value::type_name).collect();
    Error::new(format!("no such overload: {}({})", call.name, names.join(", ")))
}
