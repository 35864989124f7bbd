//! The values that `enum` allows.

use std::collections::HashSet;
use std::sync::OnceLock;

use serde_json::Value;

/// The number of values from which values are looked up in sets.
const INDEXED: usize = 16;

/// The values that `enum` allows. Empty if the schema has no `enum`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Enumeration {
    values: Vec<Value>,
    index: OnceLock<Box<Index>>,
}

/// The values by kind.
#[derive(Clone, Debug, Default)]
struct Index {
    integers: HashSet<i64>,
    /// The bits of floats.
    floats: HashSet<u64>,
    /// The JSON of other values.
    others: HashSet<String>,
}

impl Enumeration {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self { values, index: OnceLock::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns whether the value is allowed. A number is converted to the type of the allowed value first.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        if value.is_null() {
            return false;
        }
        if self.values.len() < INDEXED {
            return self.values.iter().any(|allowed| is_same(value, allowed));
        }
        let index = self.index.get_or_init(|| Box::new(Index::of(&self.values)));
        match value {
            Value::Number(number) => {
                let float = number.as_f64().unwrap_or(f64::NAN);
                let integer = number.as_i64().unwrap_or(float as i64);
                index.integers.contains(&integer) || index.floats.contains(&bits(float))
            }
            other => index.others.contains(&other.to_string()),
        }
    }
}

impl Index {
    fn of(values: &[Value]) -> Self {
        let mut index = Self::default();
        for value in values {
            match value {
                Value::Number(number) => match number.as_i64() {
                    Some(integer) => _ = index.integers.insert(integer),
                    None => _ = index.floats.insert(bits(number.as_f64().unwrap_or(f64::NAN))),
                },
                other => _ = index.others.insert(other.to_string()),
            }
        }
        index
    }
}

/// Returns the bits of a float. Zeros of both signs are equal.
fn bits(float: f64) -> u64 {
    if float == 0.0 { 0 } else { float.to_bits() }
}

fn is_same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Number(value), Value::Number(allowed)) => match (allowed.as_i64(), value.as_i64()) {
            (Some(allowed), Some(value)) => allowed == value,
            (Some(allowed), None) => value.as_f64().is_some_and(|value| value as i64 == allowed),
            (None, _) => value.as_f64() == allowed.as_f64(),
        },
        _ => value == allowed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Enumeration, INDEXED, is_same};

    #[test]
    fn many_values_allow_what_few_do() {
        let few = [json!("a"), json!(1), json!(2.5), json!(true), json!({"a": [1]}), json!(0), json!(-7.0)];
        let filler = (0..INDEXED).map(|n| Value::from(format!("filler{n}")));
        let many = Enumeration::new(few.iter().cloned().chain(filler).collect());
        let tried = [
            json!("a"),
            json!("b"),
            json!(1),
            json!(1.9),
            json!(2.5),
            json!(2),
            json!(false),
            json!(true),
            json!({"a": [1]}),
            json!({}),
            json!(0.0),
            json!(-0.0),
            json!(-7),
            json!(-7.0),
            json!(null),
        ];
        for value in tried {
            let expected = !value.is_null() && few.iter().any(|allowed| is_same(&value, allowed));
            assert_eq!(many.allows(&value), expected, "{value}");
        }
    }
}
