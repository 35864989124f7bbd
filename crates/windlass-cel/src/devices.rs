//! Expressions that select devices of dynamic resource allocation.

use std::sync::{Arc, LazyLock};

use crate::cost::SizeHints;
use crate::env::Env;
use crate::types::{DeclaredFields, Type};

/// The cost that the evaluation of a selector may have.
pub const COST_LIMIT: u64 = 1_000_000;

/// The longest name of a driver, or domain of an attribute, in bytes.
const LONGEST_DOMAIN: u64 = 63;
/// The longest name of an attribute without the domain, in bytes.
const LONGEST_NAME: u64 = 32;
/// The longest value of an attribute, in bytes.
const LONGEST_VALUE: u64 = 64;
/// The largest number of attributes and capacities of a device.
const MOST_ATTRIBUTES: u64 = 32;

static ENV: LazyLock<Env> = LazyLock::new(|| Env::kubernetes().with_bind().with_variable("device", device()));

/// The reason why an expression cannot select devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The expression does not compile, or has a result of the wrong type.
    Invalid(String),
    /// A constant part of the expression cannot be computed.
    Constant(String),
    /// An evaluation may cost more than [`COST_LIMIT`].
    TooComplex,
}

/// Compiles a selector of devices: the attributes of the variable `device` decide whether the result is true.
///
/// ```
/// use windlass_cel::devices::{Problem, check};
///
/// assert_eq!(check("device.attributes['example.com'].healthy && device.driver == 'example.com'"), Ok(()));
/// let problem = "must evaluate to bool or the unknown type, not string".to_owned();
/// assert_eq!(check("device.driver"), Err(Problem::Invalid(problem)));
/// ```
///
/// # Errors
/// The expression cannot select devices.
pub fn check(source: &str) -> Result<(), Problem> {
    let compiled = ENV.compile(source);
    let program = compiled.map_err(|issues| Problem::Invalid(format!("compilation failed: {issues}")))?;
    let output = program.output();
    if !matches!(output, Type::Bool | Type::Any) {
        let found = output.go_name();
        let text = format!("must evaluate to bool or the unknown type, not {found}");
        return Err(Problem::Invalid(text));
    }
    if let Some(error) = program.constant_error() {
        return Err(Problem::Constant(format!("program instantiation failed: {error}")));
    }
    if program.estimate(&Sizes).max > COST_LIMIT {
        return Err(Problem::TooComplex);
    }
    Ok(())
}

/// Returns the type of the variable `device`.
fn device() -> Type {
    let by_domain = |value| Type::map(Type::String, Type::map(Type::String, value));
    let fields = DeclaredFields::default();
    fields.insert("driver", Type::String);
    fields.insert("allowMultipleAllocations", Type::Bool);
    fields.insert("attributes", by_domain(Type::Any));
    fields.insert("capacity", by_domain(Type::Object("kubernetes.Quantity")));
    Type::declared("kubernetes.DRADevice", &fields)
}

/// The largest sizes of the parts of a device.
struct Sizes;

impl SizeHints for Sizes {
    fn max_size(&self, path: &[Arc<str>], _: &Type) -> Option<u64> {
        let part = |name| if name == "@items" { "@values" } else { name };
        let path: Vec<&str> = path.iter().map(|name| part(&**name)).collect();
        let (&field, parts) = path.strip_prefix(&["device"])?.split_first()?;
        let is_attribute = |name: &str| name == "@values" || !name.starts_with('@');
        match (field, parts) {
            ("driver", []) => Some(LONGEST_DOMAIN),
            ("allowMultipleAllocations", []) => Some(1),
            ("attributes" | "capacity", [] | ["@values"]) => Some(MOST_ATTRIBUTES),
            ("attributes" | "capacity", ["@keys"]) => Some(LONGEST_DOMAIN),
            ("attributes" | "capacity", ["@values", "@keys"]) => Some(LONGEST_NAME),
            ("attributes", ["@values", name]) if is_attribute(name) => Some(LONGEST_VALUE),
            ("capacity", ["@values", "@values"]) => Some(0),
            _ => None,
        }
    }
}
