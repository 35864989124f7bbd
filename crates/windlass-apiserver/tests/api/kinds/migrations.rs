//! StorageVersionMigrations, as objects. No controller works on a migration of a resource that does not exist.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

fn migration(group: &str, resource: &str) -> Value {
    json!({"spec": {"resource": {"group": group, "resource": resource}}})
}

#[tokio::test]
async fn the_spec_of_a_migration_does_not_change() {
    let api = Api::start();
    let mut seen = Objects::new(&api, MIGRATIONS);
    let name = format!("migration-{}", api.id);
    seen.create("no spec", named(&name, json!({}))).await;
    seen.create("no resource", named(&name, migration("example.com", ""))).await;
    seen.create("odd", named(&name, migration("Example", "Foo.bar"))).await;
    let dry = format!("{MIGRATIONS}?dryRun=All");
    let mut good = migration(&format!("{}.example.com", api.id), "foos");
    good["status"] = json!({"resourceVersion": "1"});
    let reply = api.post(&dry, named(&name, good)).await;
    seen.note("good", &reply);
    seen.are(expect![[r#"
        no spec: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: spec.resource.resource: Required value: resource is required to be set
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueRequired spec.resource.resource: Required value: resource is required to be set
        no resource: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: spec.resource.resource: Required value: resource is required to be set
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueRequired spec.resource.resource: Required value: resource is required to be set
        odd: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: [as below]
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid spec.resource.group: Invalid value: "Example": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.resource.resource: Invalid value: "Foo.bar": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        good: 201 {"spec":{"resource":{"group":"ID.example.com","resource":"foos"}},"status":{}}
    "#]]);
}

#[tokio::test]
async fn the_status_of_a_migration_ends_once() {
    let api = Api::start();
    let mut seen = Objects::new(&api, MIGRATIONS);
    // A controller of a real cluster leaves a migration alone that has ended.
    let name = format!("migration-{}", api.id);
    let object = named(&name, migration(&format!("{}.example.com", api.id), "foos"));
    api.discard(format!("{MIGRATIONS}/{name}"));
    api.post(MIGRATIONS, object).await.is(201);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = |list: Value| json!({"status": {"conditions": list}});
    let status = format!("{name}/status");
    seen.change("odd version", &status, json!({"status": {"resourceVersion": "01"}})).await;
    seen.change("no number", &status, json!({"status": {"resourceVersion": "x"}})).await;
    let both = json!([condition("Succeeded", "True"), condition("Failed", "True")]);
    seen.change("both ends", &status, conditions(both)).await;
    let odd = json!([{"type": "a b", "status": "Maybe", "reason": "", "message": ""}]);
    seen.change("odd condition", &status, conditions(odd)).await;
    let failed = json!({"status": {"resourceVersion": "7", "conditions": [condition("Failed", "True")]}});
    seen.change("failed", &status, failed).await;
    seen.row(&name).await;
    seen.change("other version", &status, json!({"status": {"resourceVersion": "8"}})).await;
    seen.change("no longer failed", &status, conditions(json!([condition("Failed", "False")]))).await;
    seen.change("other resource", &name, json!({"spec": {"resource": {"resource": "bars"}}})).await;
    seen.change("spec by status", &status, json!({"spec": {"resource": {"resource": "bars"}}})).await;
    seen.are(expect![[r#"
        odd version: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: status.resourceVersion: Invalid value: "01": resource version is not well formed: 01
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid status.resourceVersion: Invalid value: "01": resource version is not well formed: 01
        no number: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: status.resourceVersion: Invalid value: "x": resource version is not well formed: x
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid status.resourceVersion: Invalid value: "x": resource version is not well formed: x
        both ends: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: status.conditions: Invalid value: (the object): Both success and failed conditions cannot be true at the same time
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid status.conditions: Invalid value: (the object): Both success and failed conditions cannot be true at the same time
        odd condition: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: [as below]
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid status.conditions[0].type: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueNotSupported status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"
        - FieldValueRequired status.conditions[0].lastTransitionTime: Required value
        - FieldValueRequired status.conditions[0].reason: Required value
        failed: 200 {"spec":{"resource":{"group":"ID.example.com","resource":"foos"}},"status":{"conditions":[{"lastTransitionTime":"TIME","message":"","reason":"Test","status":"True","type":"Failed"}],"resourceVersion":"7"}}
        row: Name="migration-ID" Resource="foos.ID.example.com" Status="Failed"
        other version: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: status.resourceVersion: Invalid value: "8": field is immutable
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid status.resourceVersion: Invalid value: "8": field is immutable
        no longer failed: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: status.conditions: Invalid value: (the object): Failed condition cannot be set to false once it is true
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid status.conditions: Invalid value: (the object): Failed condition cannot be set to false once it is true
        other resource: 422 Invalid: StorageVersionMigration.storagemigration.k8s.io "migration-ID" is invalid: spec: Invalid value: (the object): field is immutable
        group="storagemigration.k8s.io" kind="StorageVersionMigration" name="migration-ID"
        - FieldValueInvalid spec: Invalid value: (the object): field is immutable
        spec by status: 200 {"spec":{"resource":{"group":"ID.example.com","resource":"foos"}},"status":{"conditions":[{"lastTransitionTime":"TIME","message":"","reason":"Test","status":"True","type":"Failed"}],"resourceVersion":"7"}}
    "#]]);
}
