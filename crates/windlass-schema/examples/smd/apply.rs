//! Updates and applies. The tests convert objects: the server asks for each conversion while a request is answered.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use windlass_schema::fields::{ApplyError, Convert, ConvertError, FieldFilter, Managed, Managers, Updater};
use windlass_schema::{NodeRef, Schema};

use crate::Server;
use crate::wire::{Reply, element_to, fields_of, fields_to, filter_of};

/// The versions of the object of a request.
struct Versions(BTreeMap<String, Schema>);

impl Convert for Versions {
    fn schema(&self, api_version: &str) -> Option<NodeRef<'_>> {
        self.0.get(api_version).map(Schema::root)
    }

    async fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        let failed = |error: io::Error| ConvertError::Failed(error.to_string());
        let request = json!({"convert": {"object": object, "from": from, "to": to}});
        let mut out = io::stdout().lock();
        writeln!(out, "{request}").and_then(|()| out.flush()).map_err(failed)?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(failed)?;
        let reply: Value =
            serde_json::from_str(&line).map_err(|error| ConvertError::Failed(error.to_string()))?;
        match (reply.get("missing"), reply.get("failed")) {
            (Some(why), _) => Err(ConvertError::MissingVersion(why.as_str().unwrap_or_default().to_owned())),
            (_, Some(why)) => Err(ConvertError::Failed(why.as_str().unwrap_or_default().to_owned())),
            _ => Ok(reply["object"].clone()),
        }
    }
}

pub(crate) fn reply(server: &Server, request: &Value) -> Reply {
    let text = |name: &str| request[name].as_str().unwrap_or_default();
    let versions = members(&request["schemas"]).map(|(version, named)| Ok((version, server.schema(named)?)));
    let versions = Versions(versions.collect::<Result<_, String>>()?);
    let filters = members(&request["filters"]).map(|(version, filter)| Ok((version, filter_of(filter)?)));
    let filters = filters.collect::<Result<BTreeMap<String, FieldFilter>, String>>()?;
    let managers = members(&request["managers"]).map(|(name, managed)| Ok((name, managed_of(managed)?)));
    let managers = Managers(managers.collect::<Result<_, String>>()?);
    let updater = Updater::new(&versions).with_filters(&filters);
    let (live, new, version, manager) = (&request["live"], &request["new"], text("version"), text("manager"));
    let result = if text("op") == "update" {
        let updated = ready(updater.update(live, new, version, managers, manager))?;
        updated.map(|managers| json!({"managers": managers_to(&managers)}))
    } else {
        let force = request["force"] == true;
        let applied = ready(updater.apply(live, new, version, managers, manager, force))?;
        applied.map(|(object, managers)| {
            json!({"same": object.is_none(), "object": object, "managers": managers_to(&managers)})
        })
    };
    match result {
        Ok(reply) => Ok(reply),
        Err(ApplyError::Failed(why)) => Err(why),
        Err(ApplyError::Conflicts(conflicts)) => {
            let conflicts = conflicts.0.iter().map(|conflict| {
                let path: Value = conflict.path.iter().map(element_to).collect();
                json!({"manager": conflict.manager, "path": path})
            });
            Ok(json!({"conflicts": conflicts.collect::<Value>()}))
        }
    }
}

fn members(object: &Value) -> impl Iterator<Item = (String, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value))
}

fn managed_of(wire: &Value) -> Result<Managed, String> {
    Ok(Managed {
        fields: fields_of(&wire["fields"])?,
        api_version: wire["version"].as_str().unwrap_or_default().to_owned(),
        applied: wire["applied"] == true,
    })
}

fn managers_to(managers: &Managers) -> Value {
    let managers = managers.0.iter().map(|(name, managed)| {
        let fields = fields_to(&managed.fields);
        (name.clone(), json!({"fields": fields, "version": managed.api_version, "applied": managed.applied}))
    });
    Value::Object(managers.collect())
}

/// Runs a future that never waits: conversions block.
fn ready<T>(future: impl Future<Output = T>) -> Result<T, String> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("a conversion waits".to_owned()),
    }
}
