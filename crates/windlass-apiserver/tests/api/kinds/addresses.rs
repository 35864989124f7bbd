//! Addresses and ranges of addresses.

use expect_test::expect;
use serde_json::json;

use super::{Objects, named};
use crate::harness::Api;

#[tokio::test]
async fn the_parent_of_an_address_does_not_change() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/networking.k8s.io/v1/ipaddresses");
    // A test of another run may have the address: the last two groups are from the id of the test.
    let digits: String =
        api.id.bytes().filter_map(|byte| char::from_digit(u32::from(byte) % 16, 16)).collect();
    let address = format!("2001:db8::1{}:1{}", &digits[..3], &digits[3..6]);
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    seen.create("no spec", named(&address, json!({}))).await;
    seen.create("empty parent", named(&address, json!({"spec": {"parentRef": {}}}))).await;
    let odd = json!({"group": "A_", "resource": "a/b", "namespace": "..", "name": "a%"});
    seen.create("odd parent", named(&address, json!({"spec": {"parentRef": odd}}))).await;
    seen.create("no address", named("a", json!({"spec": {"parentRef": parent}}))).await;
    seen.create("not canonical", named("2001:db8::01", json!({"spec": {"parentRef": parent}}))).await;
    seen.create("good", named(&address, json!({"spec": {"parentRef": parent}}))).await;
    seen.change("other parent", &address, json!({"spec": {"parentRef": {"name": "b"}}})).await;
    seen.change("no parent", &address, json!({"spec": null})).await;
    seen.change("same", &address, json!({"spec": {"parentRef": parent}})).await;
    seen.row(&address).await;
    seen.seen = seen.seen.replace(&address, "ADDRESS");
    seen.are(expect![[r#"
        no spec: 422 Invalid: IPAddress.networking.k8s.io "ADDRESS" is invalid: spec.parentRef: Required value
        group="networking.k8s.io" kind="IPAddress" name="ADDRESS"
        - FieldValueRequired spec.parentRef: Required value
        empty parent: 422 Invalid: IPAddress.networking.k8s.io "ADDRESS" is invalid: [as below]
        group="networking.k8s.io" kind="IPAddress" name="ADDRESS"
        - FieldValueRequired spec.parentRef.name: Required value
        - FieldValueRequired spec.parentRef.resource: Required value
        odd parent: 422 Invalid: IPAddress.networking.k8s.io "ADDRESS" is invalid: [as below]
        group="networking.k8s.io" kind="IPAddress" name="ADDRESS"
        - FieldValueInvalid spec.parentRef.group: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.parentRef.name: Invalid value: "a%": may not contain '%'
        - FieldValueInvalid spec.parentRef.namespace: Invalid value: "..": may not be '..'
        - FieldValueInvalid spec.parentRef.resource: Invalid value: "a/b": may not contain '/'
        no address: 422 Invalid: IPAddress.networking.k8s.io "a" is invalid: metadata.name: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        group="networking.k8s.io" kind="IPAddress" name="a"
        - FieldValueInvalid metadata.name: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        not canonical: 422 Invalid: IPAddress.networking.k8s.io "2001:db8::01" is invalid: metadata.name: Invalid value: "2001:db8::01": must be in canonical form ("2001:db8::1")
        group="networking.k8s.io" kind="IPAddress" name="2001:db8::01"
        - FieldValueInvalid metadata.name: Invalid value: "2001:db8::01": must be in canonical form ("2001:db8::1")
        good: 201 {"spec":{"parentRef":{"name":"a","namespace":"default","resource":"services"}}}
        other parent: 422 Invalid: IPAddress.networking.k8s.io "ADDRESS" is invalid: spec.parentRef: Invalid value: null: field is immutable
        group="networking.k8s.io" kind="IPAddress" name="ADDRESS"
        - FieldValueInvalid spec.parentRef: Invalid value: null: field is immutable
        no parent: 422 Invalid: IPAddress.networking.k8s.io "ADDRESS" is invalid: [as below]
        group="networking.k8s.io" kind="IPAddress" name="ADDRESS"
        - FieldValueInvalid spec.parentRef: Invalid value: null: field is immutable
        - FieldValueRequired spec.parentRef: Required value
        same: 200 {"spec":{"parentRef":{"name":"a","namespace":"default","resource":"services"}}}
        row: Name="ADDRESS" ParentRef="services/default/a"
    "#]]);
}

#[tokio::test]
async fn a_range_of_services_can_get_a_second_family() {
    let api = Api::start();
    // Dry runs: services of other tests must not get addresses of the ranges.
    let mut seen = Objects::new(&api, "/apis/networking.k8s.io/v1/servicecidrs");
    let ranges = |ranges: &[&str]| json!({"spec": {"cidrs": ranges}});
    for (what, list) in [
        ("none", &[][..]),
        ("three", &["10.1.0.0/24", "10.2.0.0/24", "fd00::/112"]),
        ("one family", &["10.1.0.0/24", "10.2.0.0/24"]),
        ("odd", &["10.1.0.1/24", "x"]),
        ("not canonical", &["fd00:0::/112"]),
        ("leading zero", &["010.1.0.0/24"]),
        ("mapped", &["::ffff:10.1.0.0/112"]),
        ("good", &["10.77.0.0/24"]),
    ] {
        seen.try_create(what, named("a", ranges(list))).await;
    }
    for (what, list) in [
        ("another", &["10.78.0.0/24"][..]),
        ("fewer", &[]),
        ("second of the family", &["10.0.0.0/24", "10.78.0.0/24"]),
        ("second, and another first", &["10.78.0.0/24", "fd00::/112"]),
    ] {
        seen.change(what, "kubernetes?dryRun=All", ranges(list)).await;
    }
    seen.are(expect![[r#"
        none: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: spec.cidrs: Required value: at least one CIDR required
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueRequired spec.cidrs: Required value: at least one CIDR required
        three: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: spec.cidrs: Invalid value: (the object): may only hold up to 2 values
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueInvalid spec.cidrs: Invalid value: (the object): may only hold up to 2 values
        one family: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: spec.cidrs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueInvalid spec.cidrs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64
        odd: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: [as below]
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueInvalid spec.cidrs[0]: Invalid value: "10.1.0.1/24": must not have bits set beyond the prefix length
        - FieldValueInvalid spec.cidrs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
        not canonical: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: spec.cidrs[0]: Invalid value: "fd00:0::/112": must be in canonical form ("fd00::/112")
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueInvalid spec.cidrs[0]: Invalid value: "fd00:0::/112": must be in canonical form ("fd00::/112")
        leading zero: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: spec.cidrs[0]: Invalid value: "010.1.0.0/24": must not have leading 0s in IP or prefix length
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueInvalid spec.cidrs[0]: Invalid value: "010.1.0.0/24": must not have leading 0s in IP or prefix length
        mapped: 422 Invalid: ServiceCIDR.networking.k8s.io "a" is invalid: spec.cidrs[0]: Invalid value: "::ffff:10.1.0.0/112": must not have an IPv4-mapped IPv6 address
        group="networking.k8s.io" kind="ServiceCIDR" name="a"
        - FieldValueInvalid spec.cidrs[0]: Invalid value: "::ffff:10.1.0.0/112": must not have an IPv4-mapped IPv6 address
        good: 201 {"spec":{"cidrs":["10.77.0.0/24"]},"status":{}}
        another: 422 Invalid: ServiceCIDR.networking.k8s.io "kubernetes" is invalid: spec.cidrs[0]: Invalid value: "10.78.0.0/24": field is immutable
        group="networking.k8s.io" kind="ServiceCIDR" name="kubernetes"
        - FieldValueInvalid spec.cidrs[0]: Invalid value: "10.78.0.0/24": field is immutable
        fewer: 422 Invalid: ServiceCIDR.networking.k8s.io "kubernetes" is invalid: spec.cidrs: Invalid value: []: field is immutable
        group="networking.k8s.io" kind="ServiceCIDR" name="kubernetes"
        - FieldValueInvalid spec.cidrs: Invalid value: []: field is immutable
        second of the family: 422 Invalid: ServiceCIDR.networking.k8s.io "kubernetes" is invalid: spec.cidrs: Invalid value: ["10.0.0.0/24","10.78.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64
        group="networking.k8s.io" kind="ServiceCIDR" name="kubernetes"
        - FieldValueInvalid spec.cidrs: Invalid value: ["10.0.0.0/24","10.78.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64
        second, and another first: 422 Invalid: ServiceCIDR.networking.k8s.io "kubernetes" is invalid: spec.cidrs[0]: Invalid value: "10.78.0.0/24": field is immutable
        group="networking.k8s.io" kind="ServiceCIDR" name="kubernetes"
        - FieldValueInvalid spec.cidrs[0]: Invalid value: "10.78.0.0/24": field is immutable
    "#]]);
}
