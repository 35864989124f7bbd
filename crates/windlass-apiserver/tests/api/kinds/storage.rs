//! Attachments of volumes, nodes and capacities of CSI drivers, and classes of attributes.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::{Api, MERGE_PATCH};

#[tokio::test]
async fn the_spec_of_an_attachment_does_not_change() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/storage.k8s.io/v1/volumeattachments");
    let name = format!("attachment-{}", api.id);
    let spec =
        |source: Value| json!({"spec": {"attacher": "csi.example.com", "nodeName": "n", "source": source}});
    seen.create("no spec", named(&name, json!({}))).await;
    seen.create("no source", named(&name, spec(json!({})))).await;
    seen.create("empty volume", named(&name, spec(json!({"persistentVolumeName": ""})))).await;
    seen.create("odd volume", named(&name, spec(json!({"persistentVolumeName": "a_b"})))).await;
    let both = json!({"persistentVolumeName": "a", "inlineVolumeSpec": {"csi": {"driver": "d", "volumeHandle": "h"}}});
    seen.create("both", named(&name, spec(both))).await;
    seen.create("empty inline", named(&name, spec(json!({"inlineVolumeSpec": {}})))).await;
    let inline = json!({
        "capacity": {"storage": "1Gi"}, "accessModes": ["Many"], "storageClassName": "c", "volumeMode": "Block",
        "persistentVolumeReclaimPolicy": "Delete", "nodeAffinity": {}, "claimRef": {"name": "a"},
        "csi": {"driver": "d", "volumeHandle": "h"}
    });
    seen.create("odd inline", named(&name, spec(json!({"inlineVolumeSpec": inline})))).await;
    let long = "a".repeat(64);
    let odd = json!({"spec": {"attacher": long, "nodeName": "A", "source": {"persistentVolumeName": "a"}}});
    seen.create("long driver", named(&name, odd)).await;
    let odd = json!({"spec": {"attacher": "a_b", "nodeName": "", "source": {"persistentVolumeName": "a"}}});
    seen.create("odd driver", named(&name, odd)).await;
    let mut good = spec(json!({"persistentVolumeName": "a"}));
    good["status"] = json!({"attached": true});
    seen.create("good", named(&name, good)).await;
    seen.change("other node", &name, json!({"spec": {"nodeName": "m"}})).await;
    seen.change("other node and bad driver", &name, json!({"spec": {"nodeName": "m", "attacher": ""}})).await;
    let status = format!("{name}/status");
    seen.change("spec by status", &status, json!({"spec": {"nodeName": "m"}})).await;
    let attached = json!({"status": {"attached": true, "attachmentMetadata": {"a": "b"}}});
    seen.change("attached", &status, attached).await;
    let long = "m".repeat(1025);
    let failed = json!({"status": {"attachError": {"message": long, "errorCode": -1}, "detachError": {"message": "m"}}});
    seen.change("failed", &status, failed).await;
    let large = json!({"status": {"attachmentMetadata": {"a": "b".repeat(256 << 10)}}});
    seen.change("much metadata", &status, large).await;
    seen.row(&name).await;
    seen.are(expect![[r#"
        no spec: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueRequired spec.attacher: Required value
        - FieldValueRequired spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName
        no source: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueRequired spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName
        empty volume: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec.source.persistentVolumeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueRequired spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName
        odd volume: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: spec.source.persistentVolumeName: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec.source.persistentVolumeName: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        both: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueForbidden spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName
        empty inline: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueRequired spec.source.inlineVolumeSpec.accessModes: Required value
        - FieldValueRequired spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes
        - FieldValueRequired spec.source.inlineVolumeSpec: Required value: must specify a volume type
        odd inline: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueForbidden spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes
        - FieldValueForbidden spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline volumes
        - FieldValueForbidden spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes
        - FieldValueForbidden spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes
        - FieldValueForbidden spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes
        - FieldValueForbidden spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes
        - FieldValueNotSupported spec.source.inlineVolumeSpec.accessModes: Unsupported value: "Many": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
        long driver: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueTooLong spec.attacher: Too long: may not be more than 63 characters
        odd driver: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec.attacher: Invalid value: "a_b": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        good: 201 {"spec":{"attacher":"csi.example.com","nodeName":"n","source":{"persistentVolumeName":"a"}},"status":{"attached":false}}
        other node: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: spec: Invalid value: null: field is immutable
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec: Invalid value: null: field is immutable
        other node and bad driver: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid spec: Invalid value: null: field is immutable
        - FieldValueRequired spec.attacher: Required value
        spec by status: 200 {"spec":{"attacher":"csi.example.com","nodeName":"n","source":{"persistentVolumeName":"a"}},"status":{"attached":false}}
        attached: 200 {"spec":{"attacher":"csi.example.com","nodeName":"n","source":{"persistentVolumeName":"a"}},"status":{"attached":true,"attachmentMetadata":{"a":"b"}}}
        failed: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueInvalid status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive
        - FieldValueTooLong status.attachError.message: Too long: may not be more than 1024 bytes
        much metadata: 422 Invalid: VolumeAttachment.storage.k8s.io "attachment-ID" is invalid: status.attachmentMetadata: Too long: may not be more than 262144 bytes
        group="storage.k8s.io" kind="VolumeAttachment" name="attachment-ID"
        - FieldValueTooLong status.attachmentMetadata: Too long: may not be more than 262144 bytes
        row: Name="attachment-ID" Attacher="csi.example.com" PV="a" Node="n" Attached=true
    "#]]);
}

#[tokio::test]
async fn a_driver_of_a_node_does_not_change() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/storage.k8s.io/v1/csinodes");
    let name = format!("node-{}", api.id);
    let drivers = |drivers: Value| json!({"spec": {"drivers": drivers}});
    seen.create("no drivers", named(&name, json!({"spec": {}}))).await;
    let odd = json!([
        {"name": "", "nodeID": "", "topologyKeys": ["", "a b", "c", "c"]},
        {"name": "D", "nodeID": "i".repeat(257), "allocatable": {"count": -1}},
        {"name": "D", "nodeID": "i"}
    ]);
    seen.create("odd", named(&name, drivers(odd))).await;
    let good = json!([{"name": "a.example.com", "nodeID": "i", "topologyKeys": ["zone"], "allocatable": {"count": 5}}]);
    seen.create("good", named(&name, drivers(good))).await;
    let driver = |id: &str, count: i32| json!({"name": "a.example.com", "nodeID": id, "topologyKeys": ["zone"], "allocatable": {"count": count}});
    seen.change("other count", &name, drivers(json!([driver("i", 6)]))).await;
    seen.change("other node", &name, drivers(json!([driver("j", 6)]))).await;
    let more = json!([driver("i", 6), {"name": "b.example.com", "nodeID": "i"}]);
    seen.change("another driver", &name, drivers(more)).await;
    seen.change("no driver", &name, drivers(json!([]))).await;
    seen.row(&name).await;
    seen.are(expect![[r#"
        no drivers: 201 {"spec":{"drivers":null},"status":{}}
        odd: 422 Invalid: CSINode.storage.k8s.io "node-ID" is invalid: [as below]
        group="storage.k8s.io" kind="CSINode" name="node-ID"
        - FieldValueDuplicate spec.drivers[0]: Duplicate value: "c"
        - FieldValueDuplicate spec.drivers[2].name: Duplicate value: "D"
        - FieldValueInvalid spec.drivers[0]: Invalid value: "": name part must be non-empty
        - FieldValueInvalid spec.drivers[0]: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.drivers[0]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0
        - FieldValueInvalid spec.drivers[1].nodeID: Invalid value: "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii": must be 256 characters or less
        - FieldValueRequired spec.drivers[0].name: Required value
        - FieldValueRequired spec.drivers[0].nodeID: Required value
        - FieldValueRequired spec.drivers[0]: Required value
        good: 409 AlreadyExists: csinodes.storage.k8s.io "node-ID" already exists
        group="storage.k8s.io" kind="csinodes" name="node-ID"
        other count: 200 {"spec":{"drivers":[{"allocatable":{"count":6},"name":"a.example.com","nodeID":"i","topologyKeys":["zone"]}]},"status":{}}
        other node: 422 Invalid: CSINode.storage.k8s.io "node-ID" is invalid: spec.drivers: Invalid value: (the object): field is immutable
        group="storage.k8s.io" kind="CSINode" name="node-ID"
        - FieldValueInvalid spec.drivers: Invalid value: (the object): field is immutable
        another driver: 200 {"spec":{"drivers":[{"allocatable":{"count":6},"name":"a.example.com","nodeID":"i","topologyKeys":["zone"]},{"name":"b.example.com","nodeID":"i","topologyKeys":null}]},"status":{}}
        no driver: 200 {"spec":{"drivers":null},"status":{}}
        row: Name="node-ID" Drivers=0
    "#]]);
}

#[tokio::test]
async fn a_capacity_stays_with_the_topology() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut seen =
        Objects::new(&api, format!("/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities"));
    seen.create("no class", named("a", json!({}))).await;
    let odd = json!({"matchLabels": {"a b": "c d"}, "matchExpressions": [{"key": "a", "operator": "Is"}]});
    seen.create("odd", named("a", json!({"storageClassName": "A", "nodeTopology": odd, "capacity": "-1Gi"})))
        .await;
    let topology = json!({"matchLabels": {"zone": "a"}});
    let good = json!({"storageClassName": "c", "nodeTopology": topology, "capacity": "1Gi", "maximumVolumeSize": "-1"});
    seen.create("good", named("a", good)).await;
    seen.change("other capacity", "a", json!({"capacity": "1Mi"})).await;
    seen.change("other class", "a", json!({"storageClassName": "d"})).await;
    seen.change("other topology", "a", json!({"nodeTopology": {"matchLabels": {"zone": "b"}}})).await;
    seen.change("no topology", "a", json!({"nodeTopology": null})).await;
    seen.row("a").await;
    seen.are(expect![[r#"
        no class: 422 Invalid: CSIStorageCapacity.storage.k8s.io "a" is invalid: storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        group="storage.k8s.io" kind="CSIStorageCapacity" name="a"
        - FieldValueInvalid storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        odd: 422 Invalid: CSIStorageCapacity.storage.k8s.io "a" is invalid: [as below]
        group="storage.k8s.io" kind="CSIStorageCapacity" name="a"
        - FieldValueInvalid capacity: Invalid value: "-1Gi": must be greater than or equal to 0
        - FieldValueInvalid nodeTopology.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator
        - FieldValueInvalid nodeTopology.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid nodeTopology.matchLabels: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        - FieldValueInvalid storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        good: 201 {"capacity":"1Gi","maximumVolumeSize":"-1","nodeTopology":{"matchLabels":{"zone":"a"}},"storageClassName":"c"}
        other capacity: 200 {"capacity":"1Mi","maximumVolumeSize":"-1","nodeTopology":{"matchLabels":{"zone":"a"}},"storageClassName":"c"}
        other class: 422 Invalid: CSIStorageCapacity.storage.k8s.io "a" is invalid: storageClassName: Invalid value: "d": field is immutable
        group="storage.k8s.io" kind="CSIStorageCapacity" name="a"
        - FieldValueInvalid storageClassName: Invalid value: "d": field is immutable
        other topology: 422 Invalid: CSIStorageCapacity.storage.k8s.io "a" is invalid: nodeTopology: Invalid value: (the object): field is immutable
        group="storage.k8s.io" kind="CSIStorageCapacity" name="a"
        - FieldValueInvalid nodeTopology: Invalid value: (the object): field is immutable
        no topology: 422 Invalid: CSIStorageCapacity.storage.k8s.io "a" is invalid: nodeTopology: Invalid value: null: field is immutable
        group="storage.k8s.io" kind="CSIStorageCapacity" name="a"
        - FieldValueInvalid nodeTopology: Invalid value: null: field is immutable
        row: Name="a" Created At="TIME"
    "#]]);
}

#[tokio::test]
async fn a_class_of_attributes_does_not_change() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/storage.k8s.io/v1/volumeattributesclasses");
    let name = format!("class-{}", api.id);
    seen.create("empty", named(&name, json!({}))).await;
    seen.create("odd", named(&name, json!({"driverName": "a b", "parameters": {"": "x"}}))).await;
    let large = json!({"driverName": "d", "parameters": {"a": "b".repeat(256 << 10)}});
    seen.create("large", named(&name, large)).await;
    seen.create("good", named(&name, json!({"driverName": "D.example.com", "parameters": {"a": "b"}}))).await;
    seen.change("other driver", &name, json!({"driverName": "e"})).await;
    seen.change("other parameters", &name, json!({"parameters": {"a": "c"}})).await;
    seen.change("no parameters", &name, json!({"parameters": null})).await;
    seen.row(&name).await;
    seen.are(expect![[r#"
        empty: 422 Invalid: VolumeAttributesClass.storage.k8s.io "class-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttributesClass" name="class-ID"
        - FieldValueRequired driverName: Required value
        - FieldValueRequired parameters: Required value: must contain at least one key/value pair
        odd: 422 Invalid: VolumeAttributesClass.storage.k8s.io "class-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttributesClass" name="class-ID"
        - FieldValueInvalid driverName: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid parameters: Invalid value: "": field can not be empty.
        large: 422 Invalid: VolumeAttributesClass.storage.k8s.io "class-ID" is invalid: parameters: Too long: may not be more than 262144 bytes
        group="storage.k8s.io" kind="VolumeAttributesClass" name="class-ID"
        - FieldValueTooLong parameters: Too long: may not be more than 262144 bytes
        good: 201 {"driverName":"D.example.com","parameters":{"a":"b"}}
        other driver: 422 Invalid: VolumeAttributesClass.storage.k8s.io "class-ID" is invalid: driverName: Forbidden: updates to driverName are forbidden.
        group="storage.k8s.io" kind="VolumeAttributesClass" name="class-ID"
        - FieldValueForbidden driverName: Forbidden: updates to driverName are forbidden.
        other parameters: 422 Invalid: VolumeAttributesClass.storage.k8s.io "class-ID" is invalid: parameters: Forbidden: updates to parameters are forbidden.
        group="storage.k8s.io" kind="VolumeAttributesClass" name="class-ID"
        - FieldValueForbidden parameters: Forbidden: updates to parameters are forbidden.
        no parameters: 422 Invalid: VolumeAttributesClass.storage.k8s.io "class-ID" is invalid: [as below]
        group="storage.k8s.io" kind="VolumeAttributesClass" name="class-ID"
        - FieldValueForbidden parameters: Forbidden: updates to parameters are forbidden.
        - FieldValueRequired parameters: Required value: must contain at least one key/value pair
        row: Name="class-ID" DriverName="D.example.com"
    "#]]);
}

#[tokio::test]
async fn the_health_of_a_claim_is_dropped() {
    let api = Api::start();
    let namespace = api.namespace().await;
    let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""});
    api.post(&claims, named("a", json!({"spec": spec}))).await.is(201);
    let status = json!({"status": {"phase": "Pending", "healthStatus": {}}});
    let changed = api.patch(&format!("{claims}/a/status"), MERGE_PATCH, status).await.is(200).json();
    assert_eq!(changed["status"], json!({"phase": "Pending"}));
}
