//! `#[schema]` beside the attributes of kube's derive macro `KubeSchema`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_derive::schema;

#[schema(exactly_one_of(host, ip_address))]
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = "self.weight > 0")]
struct Backend {
    #[schema(maximum = 10, immutable)]
    #[x_kube(validation = "self != 5")]
    weight: i32,
    #[schema(max_length = 9)]
    host: Option<String>,
    ip_address: Option<String>,
}

#[schema(at_most_one_of(namespace, type_name, r#in, since))]
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug)]
#[serde(rename_all = "kebab-case")]
struct Filter {
    namespace: Option<String>,
    type_name: Option<String>,
    r#in: Option<String>,
    #[serde(rename = "sinceWhen", with = "text")]
    #[schemars(with = "String")]
    #[schema(max_length = 4_294_967_296)]
    since: String,
}

mod text {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &str, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        String::deserialize(from)
    }
}

#[test]
fn a_rule_names_each_field_as_the_server_does() {
    let schema = serde_json::to_value(schemars::schema_for!(Filter)).expect("JSON");
    let one_of = "(has(self.__namespace__)?1:0)+(has(self.type__dash__name)?1:0)+(has(self.__in__)?1:0)\
                  +(has(self.sinceWhen)?1:0) <= 1";
    assert_eq!(rules(&schema), [one_of]);
    assert_eq!(schema["properties"]["sinceWhen"]["maxLength"], json!(4_294_967_296_i64));
}

fn rules(schema: &Value) -> Vec<&str> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["rule"].as_str()).collect()
}

#[test]
fn both_add_their_rules() {
    let schema = serde_json::to_value(schemars::schema_for!(Backend)).expect("JSON");
    let weight = &schema["properties"]["weight"];
    assert_eq!((&weight["maximum"], &schema["properties"]["host"]["maxLength"]), (&json!(10), &json!(9)));
    assert_eq!(rules(weight), ["self == oldSelf", "self != 5"]);
    let one_of = "(has(self.host)?1:0)+(has(self.ipAddress)?1:0) == 1";
    assert_eq!(rules(&schema), [one_of, "self.weight > 0"]);
}
