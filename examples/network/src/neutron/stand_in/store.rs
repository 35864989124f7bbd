//! The state of the stand-in, and the requests.

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    reply::Reply,
    subnet::{
        Addresses, address, check_block, check_gateway, check_gateway_in_pools, pools_value, read_pools,
    },
};
use crate::Cidr;

/// The project of objects that name none.
const DEFAULT_PROJECT: &str = "fake_project_id";

/// The quota of a project that has set none, in a Neutron that is configured for no other.
pub(super) const DEFAULT_QUOTA: i64 = 100;

/// The fields of a network that a request may set.
const NETWORK_FIELDS: &[&str] =
    &["name", "description", "admin_state_up", "shared", "tenant_id", "project_id", "mtu"];

/// The fields of a subnet that a request may set.
const SUBNET_FIELDS: &[&str] = &[
    "name",
    "description",
    "network_id",
    "cidr",
    "gateway_ip",
    "ip_version",
    "allocation_pools",
    "enable_dhcp",
    "dns_nameservers",
    "host_routes",
    "tenant_id",
    "project_id",
];

/// Networks, subnets and quotas.
pub(super) struct Store {
    url: String,
    objects: BTreeMap<&'static str, BTreeMap<String, Map<String, Value>>>,
    quotas: BTreeMap<String, BTreeMap<String, i64>>,
    /// The quota of a project that has set none.
    default_quota: i64,
    /// The number of objects ever made, by plural.
    made: BTreeMap<&'static str, u64>,
}

type Made = Result<Reply, Reply>;

impl Store {
    pub(super) fn new(url: String) -> Self {
        let objects = [("networks", BTreeMap::new()), ("subnets", BTreeMap::new())].into();
        Self { url, objects, quotas: BTreeMap::new(), default_quota: DEFAULT_QUOTA, made: BTreeMap::new() }
    }

    pub(super) fn created(&self, plural: &str) -> u64 {
        self.made.get(plural).copied().unwrap_or(0)
    }

    pub(super) fn set_default_quota(&mut self, limit: i64) {
        self.default_quota = limit;
    }

    pub(super) fn set_limit(&mut self, project: &str, resource: &str, limit: i64) {
        self.quotas.entry(project.to_owned()).or_default().insert(resource.to_owned(), limit);
    }

    /// Answers a request. `project` is the project of a token.
    pub(super) fn handle(
        &mut self,
        method: &Method,
        path: &str,
        query: &[(String, String)],
        body: &Value,
        project: Option<&str>,
        now: Timestamp,
    ) -> Reply {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let made = match (&parts[..], method.as_str()) {
            ([""], "GET") => Ok(self.versions()),
            (["v2.0", "networks"], "POST") => self.create_network(body, project, now),
            (["v2.0", "subnets"], "POST") => self.create_subnet(body, project, now),
            (["v2.0", plural @ ("networks" | "subnets")], "GET") => Ok(self.list(plural, query, project)),
            (["v2.0", plural @ ("networks" | "subnets"), id], "GET") => self.get(plural, id),
            (["v2.0", "networks", id], "PUT") => self.update_network(id, body, now),
            (["v2.0", "subnets", id], "PUT") => self.update_subnet(id, body, now),
            (["v2.0", plural @ ("networks" | "subnets"), id], "DELETE") => self.delete(plural, id),
            (["v2.0", "quotas", project], "PUT") => self.set_quota(project, body),
            _ => Err(Reply::error(404, "HTTPNotFound", "The resource could not be found.")),
        };
        made.unwrap_or_else(|refused| refused)
    }

    fn versions(&self) -> Reply {
        let links = json!([{ "rel": "self", "href": format!("{}/v2.0/", self.url) }]);
        Reply::ok(200, json!({ "versions": [{ "id": "v2.0", "status": "CURRENT", "links": links }] }))
    }

    fn create_network(&mut self, body: &Value, project: Option<&str>, now: Timestamp) -> Made {
        let fields = fields(body, "network", NETWORK_FIELDS)?;
        let project = owner(fields, project);
        self.charge("networks", &project)?;
        let mut network = json!({ "name": "", "description": "", "admin_state_up": true, "shared": false, "mtu": 1450,
            "status": "ACTIVE", "subnets": [] });
        set(&mut network, fields);
        Ok(self.insert("networks", network, project, now))
    }

    fn create_subnet(&mut self, body: &Value, project: Option<&str>, now: Timestamp) -> Made {
        let fields = fields(body, "subnet", SUBNET_FIELDS)?;
        let project = owner(fields, project);
        let network = fields["network_id"].as_str().unwrap_or_default().to_owned();
        if !is_uuid(&network) {
            let message = format!("Invalid input for network_id. Reason: '{network}' is not a valid UUID.");
            return Err(Reply::bad_request(message));
        }
        let addresses = Addresses::read(fields)?;
        self.find("networks", &network)?;
        self.check_overlap(&network, addresses.cidr)?;
        check_gateway_in_pools(addresses.gateway, &addresses.pools)?;
        self.charge("subnets", &project)?;
        let mut subnet = json!({ "name": "", "description": "", "enable_dhcp": true, "dns_nameservers": [], "host_routes": [],
            "ip_version": 4 });
        set(&mut subnet, fields);
        subnet["cidr"] = json!(addresses.cidr.to_string());
        subnet["gateway_ip"] = json!(addresses.gateway);
        subnet["allocation_pools"] = pools_value(&addresses.pools);
        let reply = self.insert("subnets", subnet, project, now);
        let id = reply.body["subnet"]["id"].clone();
        if let Some(subnets) =
            self.find("networks", &network)?.get_mut("subnets").and_then(Value::as_array_mut)
        {
            subnets.push(id);
        }
        Ok(reply)
    }

    fn check_overlap(&self, network: &str, cidr: Cidr) -> Result<(), Reply> {
        let others = self.objects["subnets"].values().filter(|subnet| subnet["network_id"] == network);
        let mut blocks = others.filter_map(|subnet| Cidr::of_network(subnet["cidr"].as_str()?));
        if blocks.any(|other| other.contains(cidr.network()) || cidr.contains(other.network())) {
            return Err(Reply::invalid(format!(
                "Requested subnet with cidr: {cidr} for network: {network} overlaps with another subnet"
            )));
        }
        Ok(())
    }

    fn update_network(&mut self, id: &str, body: &Value, now: Timestamp) -> Made {
        let fields = fields(body, "network", NETWORK_FIELDS)?.clone();
        let network = self.find("networks", id)?;
        Ok(change("network", network, &fields, now))
    }

    fn update_subnet(&mut self, id: &str, body: &Value, now: Timestamp) -> Made {
        let fields = fields(body, "subnet", SUBNET_FIELDS)?.clone();
        let subnet = self.find("subnets", id)?;
        for name in ["cidr", "network_id", "ip_version", "tenant_id", "project_id"] {
            if fields.get(name).is_some() {
                return Err(Reply::bad_request(format!("Cannot update read-only attribute {name}")));
            }
        }
        let field = |name: &str| fields.get(name).or_else(|| subnet.get(name)).cloned().unwrap_or_default();
        let cidr = field("cidr").as_str().and_then(Cidr::of_network);
        let cidr = cidr.ok_or_else(|| Reply::fault(500))?;
        if subnet.get("enable_dhcp") == Some(&Value::Bool(false)) {
            check_block(cidr, field("enable_dhcp") == true)?;
        }
        let pools = read_pools(field("allocation_pools").as_array().map_or(&[], Vec::as_slice), cidr)?;
        let gateway = Some(field("gateway_ip")).filter(|ip| !ip.is_null());
        let gateway = gateway.as_ref().map(address).transpose()?;
        check_gateway(gateway, cidr)?;
        check_gateway_in_pools(gateway, &pools)?;
        Ok(change("subnet", subnet, &fields, now))
    }

    fn get(&mut self, plural: &str, id: &str) -> Made {
        let object = self.find(plural, id)?;
        Ok(Reply::ok(200, json!({ plural.trim_end_matches('s'): object })))
    }

    fn delete(&mut self, plural: &str, id: &str) -> Made {
        self.find(plural, id)?;
        let removed = self.objects.get_mut(plural).and_then(|objects| objects.remove(id)).unwrap_or_default();
        if plural == "networks" {
            if let Some(subnets) = self.objects.get_mut("subnets") {
                subnets.retain(|_, subnet| subnet["network_id"] != id);
            }
        } else if let Some(network) = removed.get("network_id").and_then(Value::as_str)
            && let Ok(network) = self.find("networks", network)
            && let Some(subnets) = network.get_mut("subnets").and_then(Value::as_array_mut)
        {
            subnets.retain(|subnet| subnet != id);
        }
        Ok(Reply::ok(204, Value::Null))
    }

    /// Lists objects with the field values of the query, by pages.
    fn list(&self, plural: &str, query: &[(String, String)], project: Option<&str>) -> Reply {
        let value = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let limit: usize = value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(0);
        let filters =
            || query.iter().filter(|(key, _)| !matches!(key.as_str(), "limit" | "marker" | "fields"));
        let fits = |object: &&Map<String, Value>| {
            let is_own = project.is_none_or(|project| object["project_id"] == project);
            is_own && filters().all(|(key, value)| object.get(key).is_none_or(|own| text(own) == *value))
        };
        let after = value("marker").unwrap_or_default();
        let found: Vec<_> = self.objects[plural]
            .iter()
            .filter(|(id, _)| id.as_str() > after)
            .map(|(_, object)| object)
            .filter(fits)
            .collect();
        let end = if limit == 0 { found.len() } else { limit.min(found.len()) };
        let mut body = json!({ plural: found[..end] });
        if end < found.len() {
            let mut next = form_urlencoded::Serializer::new(String::new());
            next.extend_pairs(query.iter().filter(|(key, _)| key != "marker"));
            next.append_pair("marker", &text(&found[end - 1]["id"]));
            let href = format!("{}/v2.0/{plural}?{}", self.url, next.finish());
            body[format!("{plural}_links")] = json!([{ "rel": "next", "href": href }]);
        }
        Reply::ok(200, body)
    }

    fn set_quota(&mut self, project: &str, body: &Value) -> Made {
        let quota = self.quotas.entry(project.to_owned()).or_default();
        for (name, value) in body["quota"].as_object().into_iter().flatten() {
            let value = value.as_i64().ok_or_else(|| Reply::bad_request("Body contains invalid data"))?;
            quota.insert(name.clone(), value);
        }
        let limit = |name: &str| quota.get(name).copied().unwrap_or(self.default_quota);
        Ok(Reply::ok(200, json!({ "quota": { "network": limit("network"), "subnet": limit("subnet") } })))
    }

    /// Refuses an object beyond the project's quota.
    fn charge(&self, plural: &str, project: &str) -> Result<(), Reply> {
        let singular = plural.trim_end_matches('s');
        let limit = self
            .quotas
            .get(project)
            .and_then(|quota| quota.get(singular))
            .copied()
            .unwrap_or(self.default_quota);
        let used = self.objects[plural].values().filter(|object| object["project_id"] == project).count();
        if limit >= 0 && used as i64 >= limit {
            let message = format!("Quota exceeded for resources: ['{singular}'].");
            return Err(Reply::error(409, "OverQuota", message));
        }
        Ok(())
    }

    fn insert(&mut self, plural: &'static str, mut object: Value, project: String, now: Timestamp) -> Reply {
        let made = self.made.entry(plural).or_default();
        *made += 1;
        // A UUID that sorts by age.
        let id = format!("{made:08x}-0000-4000-8000-{made:012x}");
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let common = json!({ "id": id, "tenant_id": project, "project_id": project, "created_at": time, "updated_at": time,
            "revision_number": 1, "tags": [] });
        set(&mut object, &common);
        let body = json!({ plural.trim_end_matches('s'): object });
        if let (Value::Object(object), Some(objects)) = (object, self.objects.get_mut(plural)) {
            objects.insert(id, object);
        }
        Reply::ok(201, body)
    }

    fn find(&mut self, plural: &str, id: &str) -> Result<&mut Map<String, Value>, Reply> {
        let name = if plural == "networks" { "Network" } else { "Subnet" };
        let found = self.objects.get_mut(plural).and_then(|objects| objects.get_mut(id));
        found.ok_or_else(|| {
            Reply::error(404, &format!("{name}NotFound"), format!("{name} {id} could not be found."))
        })
    }
}

/// Returns the fields of a request. Unknown fields are refused.
fn fields<'b>(body: &'b Value, singular: &str, known: &[&str]) -> Result<&'b Value, Reply> {
    let fields = &body[singular];
    let Some(map) = fields.as_object() else {
        return Err(Reply::bad_request(format!("Unable to find '{singular}' in request body")));
    };
    if let Some(unknown) = map.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Reply::bad_request(format!("Unrecognized attribute(s) '{unknown}'")));
    }
    match map.get("name") {
        Some(name) if !name.is_string() => Err(Reply::bad_request(format!(
            "Invalid input for name. Reason: '{name}' is not a valid string."
        ))),
        _ => Ok(fields),
    }
}

fn set(object: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
}

/// Writes the fields of a request into an object, and returns the reply.
fn change(singular: &str, object: &mut Map<String, Value>, fields: &Value, now: Timestamp) -> Reply {
    for (name, value) in fields.as_object().into_iter().flatten() {
        object.insert(name.clone(), value.clone());
    }
    let revision = object.get("revision_number").and_then(Value::as_u64).unwrap_or(0);
    object.insert("revision_number".to_owned(), json!(revision + 1));
    object.insert("updated_at".to_owned(), json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    Reply::ok(200, json!({ singular: object }))
}

/// Returns the project of a new object: that of the token, else that of the request.
fn owner(fields: &Value, project: Option<&str>) -> String {
    let named = fields["tenant_id"].as_str().or_else(|| fields["project_id"].as_str());
    project.or(named).unwrap_or(DEFAULT_PROJECT).to_owned()
}

/// Returns a value in the form of a query.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
