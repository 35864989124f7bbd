//! Tables of volumes and storage classes.

use serde_json::Value;

use super::BuiltIn;
use super::column::{AGE, Column};
use super::row::{Row, join, text};

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "",
        resource: "persistentvolumes",
        columns: &[
            Column::name(),
            Column::text("Capacity"),
            Column::text("Access Modes"),
            Column::text("Reclaim Policy"),
            Column::text("Status"),
            Column::text("Claim"),
            Column::text("StorageClass"),
            Column::text("VolumeAttributesClass"),
            Column::text("Reason"),
            AGE,
            Column::wide("VolumeMode"),
        ],
        cells: volume,
    },
    BuiltIn {
        group: "",
        resource: "persistentvolumeclaims",
        columns: &[
            Column::name(),
            Column::text("Status"),
            Column::text("Volume"),
            Column::text("Capacity"),
            Column::text("Access Modes"),
            Column::text("StorageClass"),
            Column::text("VolumeAttributesClass"),
            AGE,
            Column::wide("VolumeMode"),
        ],
        cells: claim,
    },
    BuiltIn {
        group: "storage.k8s.io",
        resource: "storageclasses",
        columns: &[
            Column::name(),
            Column::text("Provisioner"),
            Column::text("ReclaimPolicy"),
            Column::text("VolumeBindingMode"),
            Column::text("AllowVolumeExpansion"),
            AGE,
        ],
        cells: storage_class,
    },
    BuiltIn {
        group: "storage.k8s.io",
        resource: "volumeattachments",
        columns: &[
            Column::name(),
            Column::text("Attacher").named(),
            Column::text("PV"),
            Column::text("Node"),
            Column::boolean("Attached"),
            AGE,
        ],
        cells: |row| {
            vec![
                row.name(),
                row.text("/spec/attacher"),
                row.text("/spec/source/persistentVolumeName"),
                row.text("/spec/nodeName"),
                row.bool("/status/attached").into(),
                row.age(),
            ]
        },
    },
    BuiltIn {
        group: "storage.k8s.io",
        resource: "volumeattributesclasses",
        columns: &[Column::name(), Column::text("DriverName"), AGE],
        cells: |row| vec![row.name(), row.text("/driverName"), row.age()],
    },
    BuiltIn {
        group: "storage.k8s.io",
        resource: "csinodes",
        columns: &[Column::name(), Column::integer("Drivers"), AGE],
        cells: |row| vec![row.name(), row.list("/spec/drivers").len().into(), row.age()],
    },
    BuiltIn {
        group: "storage.k8s.io",
        resource: "csidrivers",
        columns: &[
            Column::name(),
            Column::boolean("AttachRequired"),
            Column::boolean("PodInfoOnMount"),
            Column::boolean("StorageCapacity"),
            Column::text("TokenRequests"),
            Column::boolean("RequiresRepublish"),
            Column::text("Modes"),
            AGE,
        ],
        cells: csi_driver,
    },
];

fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_deleted() { "Terminating" } else { row.str("/status/phase") }
}

/// Returns the class named by the old annotation, or by the field.
fn class(row: &Row<'_>) -> Value {
    let annotated = row.str("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    if annotated.is_empty() { row.text("/spec/storageClassName") } else { annotated.into() }
}

fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    join(known.iter().filter(|(mode, _)| modes.iter().any(|found| found == mode)).map(|(_, short)| *short))
}

fn volume(row: &Row<'_>) -> Vec<Value> {
    let claim = row
        .value("/spec/claimRef")
        .map_or_else(String::new, |claim| format!("{}/{}", text(claim, "namespace"), text(claim, "name")));
    vec![
        row.name(),
        row.scalar_or("/spec/capacity/storage", "0"),
        access_modes(row.list("/spec/accessModes")).into(),
        row.text("/spec/persistentVolumeReclaimPolicy"),
        phase(row).into(),
        claim.into(),
        class(row),
        row.text_or("/spec/volumeAttributesClassName", "<unset>"),
        row.text("/status/reason"),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>"),
    ]
}

fn claim(row: &Row<'_>) -> Vec<Value> {
    let bound = !row.str("/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (row.scalar_or("/status/capacity/storage", "0"), access_modes(row.list("/status/accessModes")))
    } else {
        ("".into(), String::new())
    };
    vec![
        row.name(),
        phase(row).into(),
        row.text("/spec/volumeName"),
        capacity,
        modes.into(),
        class(row),
        row.text_or("/spec/volumeAttributesClassName", "<unset>"),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>"),
    ]
}

fn storage_class(row: &Row<'_>) -> Vec<Value> {
    let is_default = ["", "beta."].iter().any(|beta| {
        row.str(&format!("/metadata/annotations/storageclass.{beta}kubernetes.io~1is-default-class"))
            == "true"
    });
    let mut name = row.str("/metadata/name").to_owned();
    if is_default {
        name += " (default)";
    }
    vec![
        name.into(),
        row.text("/provisioner"),
        row.text_or("/reclaimPolicy", "Delete"),
        row.text_or("/volumeBindingMode", "Immediate"),
        row.bool("/allowVolumeExpansion").into(),
        row.age(),
    ]
}

fn csi_driver(row: &Row<'_>) -> Vec<Value> {
    let modes = join(row.list("/spec/volumeLifecycleModes").iter().filter_map(Value::as_str));
    let tokens = row.value("/spec/tokenRequests").map_or_else(
        || "<unset>".to_owned(),
        |_| join(row.list("/spec/tokenRequests").iter().map(|token| text(token, "audience"))),
    );
    let attach = row.value("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true);
    vec![
        row.name(),
        attach.into(),
        row.bool("/spec/podInfoOnMount").into(),
        row.bool("/spec/storageCapacity").into(),
        tokens.into(),
        row.bool("/spec/requiresRepublish").into(),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        row.age(),
    ]
}
