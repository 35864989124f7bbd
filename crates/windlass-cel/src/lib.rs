//! The Common Expression Language of Kubernetes: libraries, types from schemas, limits and costs.
//!
//! [`Env`] has the functions and variables, and compiles an expression to a [`Program`]. A program evaluates JSON without
//! conversion: [`Value::with_schema`] borrows an object, and [`Schema`] tells the types of its fields.
//!
//! ```
//! use serde_json::json;
//! use windlass_cel::{Env, Limits, Schema, Type, Value};
//!
//! let schema = json!({"type": "object", "properties": {
//!     "min": {"type": "integer"}, "max": {"type": "integer"},
//! }});
//! let schema = Schema::compile(&schema, false);
//! let env = Env::kubernetes().with_variable("self", Type::of_schema(&schema, "selfType"));
//! let program = env.compile("self.min <= self.max").unwrap();
//! let object = json!({"min": 3, "max": 2});
//! let value = Value::with_schema(&object, &schema).unwrap();
//! let (result, cost) = program.evaluate(&[value], &Limits::of_cost(1000));
//! assert_eq!(result.unwrap().as_bool(), Some(false));
//! assert_eq!(cost, 5);
//! ```
#![forbid(unsafe_code)]

pub mod admission;
pub mod devices;

mod ast;
mod check;
mod cost;
mod declare;
mod env;
mod error;
mod escape;
mod evaluate;
mod issue;
mod library;
mod meter;
mod parse;
mod patch;
mod plan;
mod program;
mod regex;
mod rules;
mod schema;
mod types;
mod value;

pub use cost::{Range, SizeHints};
pub use env::Env;
pub use error::{Error, ErrorKind};
pub use escape::{escape, is_reserved, unescape};
pub use evaluate::Activation;
pub use issue::{Issue, Issues};
pub use library::authorizer::{AccessRequest, Authorize, Check, Decision};
pub use library::named_format::NamedFormat;
pub use library::network::Cidr;
pub use library::quantities::Amount;
pub use library::semver::Version;
pub use library::url::Url;
pub use meter::{Consumption, Limits};
pub use program::Program;
pub use rules::{
    CALL_LIMIT, DefinitionIssue, DefinitionProblem, FieldPath, RuleCosts, RuleIssue, RuleProblem, Rules,
    Violation, ViolationKind, Violations, check as check_rule, check_definition, estimate_definition,
    normalize_field_path, resolve_field_path,
};
pub use schema::{MAX_REQUEST, Schema};
pub use types::{StructType, Type};
pub use value::{
    Encoder, Entries, Key, Library, List, Map, Message, NameCheck, Numbers, Text, Timestamp, TypeName, Value,
    duration_from_text,
};
