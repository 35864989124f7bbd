//! Evaluates the expressions of a group on a request.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;

use serde_json::Value as Json;
use windlass_text::go_quote;

use super::{Expression, Variables};
use crate::error::Error;
use crate::evaluate::Activation;
use crate::meter::{Consumption, Limits};
use crate::rules::CALL_LIMIT;
use crate::value::Value;

/// The values of the variables of a request. Null stands for an absent object.
#[derive(Clone)]
pub struct Input<'a> {
    /// The value of `object`: null for a deletion.
    pub object: &'a Json,
    /// The value of `oldObject`: null for a new object.
    pub old_object: &'a Json,
    /// The value of `namespaceObject`: null for a cluster-scoped object.
    pub namespace: &'a Json,
    /// The value of `request`.
    pub request: &'a Json,
    /// The value of `params`.
    pub params: &'a Json,
    /// The values of `authorizer` and `authorizer.requestResource`. Without values, uses of both variables fail.
    pub authorizer: Option<(Value<'a>, Value<'a>)>,
}

/// The expressions of a group cost more than the group may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBudget;

impl fmt::Display for OutOfBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "validation failed due to running out of cost budget, no further validation rules will be run",
        )
    }
}

impl std::error::Error for OutOfBudget {}

/// An evaluation of a group of expressions on a request. The value of a variable is computed at the first use, and then kept.
///
/// ```
/// use serde_json::{Value, json};
/// use windlass_cel::admission::{Compiler, Declarations, Evaluation, Input, Output, POLICY_BUDGET};
///
/// let with = Declarations::default();
/// let mut compiler = Compiler::with_variables();
/// compiler.add_variable("size", "object.spec.size", with).unwrap();
/// let expression = compiler.compile("variables.size < 3", Output::Bool, with);
///
/// let object = json!({"spec": {"size": 3}});
/// let (null, variables) = (Value::Null, compiler.into_variables());
/// let input = Input {
///     object: &object, old_object: &null, namespace: &null, request: &null, params: &null, authorizer: None,
/// };
/// let mut evaluation = Evaluation::new(&input, &variables, POLICY_BUDGET, None);
/// let result = evaluation.evaluate(&expression).unwrap();
/// assert_eq!(result.map(|value| value.as_bool()), Ok(Some(false)));
/// ```
pub struct Evaluation<'e, 'a> {
    input: &'e Input<'a>,
    variables: &'e Variables,
    /// The rest of the cost that the group may have.
    budget: i64,
    values: RefCell<HashMap<&'e str, Result<Value<'a>, Error>>>,
    /// The cost of the variables since the last expression.
    cost: Cell<u64>,
    consumption: Consumption,
    /// The memory of the values of variables.
    retained: Cell<usize>,
    interrupt: Option<&'e dyn Fn() -> bool>,
}

impl<'e, 'a> Evaluation<'e, 'a> {
    /// Begins the evaluation of a group of expressions. The function `interrupt` is called before each expression and from
    /// time to time, and ends the evaluation of an expression when the function returns true.
    pub fn new(
        input: &'e Input<'a>,
        variables: &'e Variables,
        budget: i64,
        interrupt: Option<&'e dyn Fn() -> bool>,
    ) -> Self {
        Self {
            input,
            variables,
            budget,
            values: RefCell::default(),
            cost: Cell::new(0),
            consumption: Consumption::default(),
            retained: Cell::new(0),
            interrupt,
        }
    }

    /// Returns the rest of the cost that the group may have.
    pub fn budget(&self) -> i64 {
        self.budget
    }

    /// Evaluates an expression. An error of the evaluation is a text.
    ///
    /// # Errors
    /// The expression and earlier expressions of the group cost more than the group may.
    pub fn evaluate(&mut self, expression: &Expression) -> Result<Result<Value<'a>, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Ok(Err(format!("compilation error: {error}"))),
        };
        let failed = |error: Error| format!("expression '{}' resulted in error: {error}", expression.source);
        // Short expressions have no iterations that call the interrupt.
        if self.interrupt.is_some_and(|interrupt| interrupt()) {
            return Ok(Err(failed(Error::interrupted())));
        }
        self.consumption.restart(self.retained.get());
        let (result, cost) = program.evaluate(self, &self.limits());
        self.spend(self.cost.replace(0))?;
        self.spend(cost)?;
        Ok(result.map_err(failed))
    }

    fn spend(&mut self, cost: u64) -> Result<(), OutOfBudget> {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                Ok(())
            }
            _ => Err(OutOfBudget),
        }
    }

    fn limits(&self) -> Limits<'_> {
        Limits { cost: CALL_LIMIT, interrupt: self.interrupt, shared: Some(&self.consumption) }
    }

    /// Computes the value of a variable.
    fn compute(&self, name: &str) -> Result<(&'e str, Result<Value<'a>, Error>), Error> {
        let Some((name, variable)) = self.variables.0.get_key_value(name) else {
            return Err(Error::new(format!("no such key: {name}")));
        };
        let quoted = || go_quote(name);
        let program = match &variable.program {
            Ok(program) => program,
            Err(error) => {
                let text = format!("composited variable {} fails to compile: {error}", quoted());
                return Ok((name, Err(Error::new(text))));
            }
        };
        let (memory, retained) = (self.consumption.memory(), self.retained.get());
        let (result, cost) = program.evaluate(self, &self.limits());
        self.cost.set(self.cost.get().saturating_add(cost));
        // The values of the variables that this variable uses are counted already.
        let by_others = self.retained.get() - retained;
        let own = self.consumption.memory().saturating_sub(memory).saturating_sub(by_others);
        self.retained.set(self.retained.get() + own);
        let result = result.map_err(|error| {
            Error::new(format!("composited variable {} fails to evaluate: {error}", quoted()))
        });
        Ok((name, result))
    }
}

/// The places of the variables, in the order of the environment.
pub(super) mod slot {
    pub(super) const OBJECT: usize = 0;
    pub(super) const OLD_OBJECT: usize = 1;
    pub(super) const NAMESPACE: usize = 2;
    pub(super) const REQUEST: usize = 3;
    pub(super) const PARAMS: usize = 4;
    pub(super) const AUTHORIZER: usize = 5;
    pub(super) const REQUEST_RESOURCE: usize = 6;
}

impl<'a> Activation<'a> for Evaluation<'_, 'a> {
    fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        let json = match index {
            slot::OBJECT => self.input.object,
            slot::OLD_OBJECT => self.input.old_object,
            slot::NAMESPACE => self.input.namespace,
            slot::REQUEST => self.input.request,
            slot::PARAMS => self.input.params,
            slot::AUTHORIZER => return self.input.authorizer.as_ref().map(|found| Ok(found.0.clone())),
            slot::REQUEST_RESOURCE => return self.input.authorizer.as_ref().map(|found| Ok(found.1.clone())),
            _ => return None,
        };
        Some(Ok(Value::from_json(json)))
    }

    fn composed(&self, name: &str) -> Result<Value<'a>, Error> {
        if let Some(known) = self.values.borrow().get(name) {
            return known.clone();
        }
        let (name, value) = self.compute(name)?;
        self.values.borrow_mut().insert(name, value.clone());
        value
    }
}
