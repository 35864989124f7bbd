//! Operations on sets, paths and values.

use std::cmp::Ordering;

use serde_json::{Value, json};
use windlass_schema::fields::{Conflict, Conflicts, FieldSet, PathElement};

use crate::wire::{Reply, element_of, element_to, fields_of, fields_to, filter_of, path_of};

pub(crate) fn reply(request: &Value) -> Reply {
    let one = |name: &str| fields_of(&request[name]);
    let fields = |fields: &FieldSet| json!({"fields": fields_to(fields)});
    Ok(match request["op"].as_str().unwrap_or_default() {
        "union" => fields(&one("left")?.union(&one("right")?)),
        "intersection" => fields(&one("left")?.intersection(&one("right")?)),
        "difference" => fields(&one("left")?.difference(&one("right")?)),
        "recursive_difference" => fields(&one("left")?.recursive_difference(&one("right")?)),
        "leaves" => fields(&one("left")?.leaves()),
        "filter" => fields(&filter_of(&request["filter"])?.apply(&one("left")?)),
        "contains" => json!({"result": one("left")?.contains(&path_of(&request["path"])?)}),
        "equal" => json!({"result": one("left")? == one("right")?}),
        "len" => json!({"result": one("left")?.len()}),
        "empty" => json!({"result": one("left")?.is_empty()}),
        "text" => json!({"result": one("left")?.to_string()}),
        "write" => {
            let mut text = String::new();
            one("left")?.write_v1(&mut text);
            json!({"result": text})
        }
        "read" => {
            let text = request["text"].as_str().ok_or("no text")?;
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            fields(&FieldSet::from_v1(&value).map_err(|error| error.to_string())?)
        }
        "path_text" => json!({"result": path_of(&request["path"])?.to_string()}),
        "element_order" => {
            json!({"result": order(element_of(&request["left"])?.cmp(&element_of(&request["right"])?))})
        }
        "element_write" => {
            let set: FieldSet = [&[element_of(&request["element"])?][..]].into_iter().collect();
            let written = set.to_v1();
            json!({"result": written.as_object().and_then(|set| set.keys().next())})
        }
        "element_read" => read_element(request["text"].as_str().ok_or("no text")?)?,
        "value_order" => {
            let value = |name: &str| PathElement::value(request[name].clone());
            json!({"result": order(value("left").cmp(&value("right")))})
        }
        "conflicts_text" => {
            let conflicts = request["conflicts"].as_array().ok_or("no conflicts")?.iter().map(|conflict| {
                let manager = conflict["manager"].as_str().unwrap_or_default().to_owned();
                Ok(Conflict { manager, path: path_of(&conflict["path"])? })
            });
            let mut conflicts = conflicts.collect::<Result<Vec<_>, String>>()?;
            conflicts.sort_by(|left, right| left.manager.cmp(&right.manager));
            json!({"result": Conflicts(conflicts).to_string()})
        }
        other => return Err(format!("unknown operation {other:?}")),
    })
}

fn order(order: Ordering) -> i8 {
    order as i8
}

/// Reads an element in the syntax of `fieldsV1`; elements of an unknown type are `null`.
fn read_element(text: &str) -> Reply {
    let set = FieldSet::from_v1(&json!({text: {}})).map_err(|error| error.to_string())?;
    let path = set.iter().next();
    Ok(json!({"element": path.and_then(|path| path.first().map(element_to))}))
}
