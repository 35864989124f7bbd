//! Validation of the sources of volumes, which pods and persistent volumes share.

use windlass_wire::names;

use crate::field::{Errors, Field};

/// Validates the fields of a source.
type Check = fn(&Field<'_>, &mut Errors);

/// A source of a volume: the name of the field, and the check of the source.
pub(crate) type Source = (&'static str, Check);

const SEVERAL: &str = "may not specify more than 1 volume type";

/// Validates the sources of a volume. There must be exactly one source: only the first source is validated,
/// and sources in `allowed_beside` even after another source.
pub(crate) fn validate_sources(
    volume: &Field<'_>,
    sources: &[Source],
    allowed_beside: &[&str],
    errors: &mut Errors,
) {
    let mut is_found = false;
    for (name, check) in sources {
        let source = volume.at(name);
        if !source.is_set() {
            continue;
        }
        if is_found && !allowed_beside.contains(name) {
            errors.push(volume.at(refused_name(name)).forbidden(SEVERAL));
        } else {
            check(&source.at_path_of(&volume.report_at(shown_name(name))), errors);
        }
        is_found = true;
    }
    if !is_found {
        errors.push(volume.required("must specify a volume type"));
    }
}

/// Returns the name in errors about the fields of a source.
fn shown_name(name: &'static str) -> &'static str {
    if name == "gcePersistentDisk" { "persistentDisk" } else { name }
}

/// Returns the name in the error about a second source.
fn refused_name(name: &'static str) -> &'static str {
    match name {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        other => other,
    }
}

/// Reports texts and lists that are required and empty.
fn require(source: &Field<'_>, names: &[&str], errors: &mut Errors) {
    for name in names {
        let field = source.at(name);
        if field.is_empty() {
            errors.push(field.required(""));
        }
    }
}

/// Reports a path with the element `..`.
pub(crate) fn no_backsteps(path: &Field<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

/// Reports a path that is absolute or has the element `..`.
pub(crate) fn descending(path: &Field<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    no_backsteps(path, errors);
}

/// Reports a path that is absolute, has the element `..`, or starts with two dots.
pub(crate) fn descending_unreserved(path: &Field<'_>, errors: &mut Errors) {
    descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
}

/// Reports a mode of files outside of 0 to 0777.
pub(crate) fn file_mode(mode: &Field<'_>, errors: &mut Errors) {
    if mode.is_set() && !(0..=0o777).contains(&mode.int()) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

pub(crate) fn host_path(source: &Field<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = source.at("path");
    if !path.require(errors) {
        no_backsteps(&path, errors);
        source.at("type").one_of(&KNOWN, errors);
    }
}

pub(crate) fn git_repo(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["repository"], errors);
    descending(&source.at("directory"), errors);
}

pub(crate) fn disk(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["pdName"], errors);
    partition(source, errors);
}

pub(crate) fn elastic_block_store(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["volumeID"], errors);
    partition(source, errors);
}

fn partition(source: &Field<'_>, errors: &mut Errors) {
    let partition = source.at("partition");
    if !(0..=255).contains(&partition.int()) {
        errors.push(partition.invalid("must be between 1 and 255, inclusive"));
    }
}

pub(crate) fn secret(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["secretName"], errors);
    files(source, errors);
}

pub(crate) fn config_map(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["name"], errors);
    files(source, errors);
}

fn files(source: &Field<'_>, errors: &mut Errors) {
    file_mode(&source.at("defaultMode"), errors);
    for item in source.at("items").items() {
        key_to_path(&item, errors);
    }
}

/// Validates a key and the file that shows it.
pub(crate) fn key_to_path(item: &Field<'_>, errors: &mut Errors) {
    require(item, &["key", "path"], errors);
    descending_unreserved(&item.at("path"), errors);
    file_mode(&item.at("mode"), errors);
}

pub(crate) fn nfs(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["server", "path"], errors);
    let path = source.at("path");
    if !path.text().starts_with('/') {
        errors.push(path.invalid_as(path.text(), "must be an absolute path"));
    }
}

pub(crate) fn iscsi(source: &Field<'_>, errors: &mut Errors) {
    iscsi_target(source, "must be valid format starting with iqn, eui, or naa", errors);
}

pub(crate) fn persistent_iscsi(source: &Field<'_>, errors: &mut Errors) {
    iscsi_target(source, "must be valid format", errors);
    let secret = source.at("secretRef");
    if secret.is_set() {
        require(&secret, &["name"], errors);
    }
}

fn iscsi_target(source: &Field<'_>, bad_start: &str, errors: &mut Errors) {
    require(source, &["targetPortal"], errors);
    let name = source.at("iqn");
    if !name.require(errors) {
        qualified_initiator(&name, bad_start, errors);
    }
    source.at("lun").within(0, 255, errors);
    let authenticates = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|name| source.at(name).flag());
    let secret = source.at("secretRef");
    if authenticates && !secret.is_set() {
        errors.push(secret.required(""));
    }
    let initiator = source.at("initiatorName");
    if initiator.is_set() {
        qualified_initiator(&initiator.at_path_of(&source.report_at("initiatorname")), bad_start, errors);
    }
}

fn qualified_initiator(name: &Field<'_>, bad_start: &str, errors: &mut Errors) {
    let text = name.text();
    let is_wide = |rest: &str, length: usize| {
        rest.chars().count() == length + 1
            && rest.chars().skip(1).all(|letter| letter.is_ascii_alphanumeric())
    };
    let fits = if text.starts_with("iqn") {
        is_iqn(text)
    } else if let Some(rest) = text.strip_prefix("eui") {
        is_wide(rest, 16)
    } else if let Some(rest) = text.strip_prefix("naa") {
        is_wide(rest, 32)
    } else {
        errors.push(name.invalid_as(text, bad_start));
        return;
    };
    if !fits {
        errors.push(name.invalid_as(text, "must be valid format"));
    }
}

/// Returns whether a name has the form `iqn.2001-04.com.example:storage`.
fn is_iqn(text: &str) -> bool {
    let Some((head, tail)) = text.split_once(':') else { return false };
    let Some(rest) = head.strip_prefix("iqn.") else { return false };
    let date = rest.as_bytes();
    let is_date = date.len() > 8
        && date[4] == b'-'
        && date[7] == b'.'
        && [0, 1, 2, 3, 5, 6].iter().all(|index| date[*index].is_ascii_digit());
    let is_domain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    is_date
        && rest.get(8..).is_some_and(is_domain)
        && !tail.is_empty()
        && !tail.contains([',', ';', '*', '&', '$', '|'])
        && !tail.contains(char::is_whitespace)
}

pub(crate) fn glusterfs(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["endpoints", "path"], errors);
}

pub(crate) fn persistent_glusterfs(source: &Field<'_>, errors: &mut Errors) {
    glusterfs(source, errors);
    let namespace = source.at("endpointsNamespace");
    if !namespace.is_set() {
        return;
    }
    if namespace.text().is_empty() {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        errors.push(namespace.invalid(detail));
    } else {
        namespace.check(names::dns_1123_label, errors);
    }
}

pub(crate) fn flocker(source: &Field<'_>, errors: &mut Errors) {
    let (name, uuid) = (source.at("datasetName"), source.at("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => errors.push(source.required("one of datasetName and datasetUUID is required")),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(source.invalid_as("resource", detail));
        }
        _ => {}
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

pub(crate) fn claim(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["claimName"], errors);
}

pub(crate) fn rbd(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["monitors", "image"], errors);
}

pub(crate) fn cinder(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["volumeID"], errors);
    secret_reference(source, &["name"], errors);
}

pub(crate) fn persistent_cinder(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["volumeID"], errors);
    secret_reference(source, &["name", "namespace"], errors);
}

fn secret_reference(source: &Field<'_>, names: &[&str], errors: &mut Errors) {
    let secret = source.at("secretRef");
    if secret.is_set() {
        require(&secret, names, errors);
    }
}

pub(crate) fn ceph(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["monitors"], errors);
}

pub(crate) fn quobyte(source: &Field<'_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (source.at("registry"), source.at("tenant"));
    if registry.is_empty() {
        errors.push(registry.required(PAIRS));
    } else if tenant.text().len() >= 65 {
        errors.push(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        let bad = registry.text().split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(bad.map(|_| registry.invalid(PAIRS)));
    }
    require(source, &["volume"], errors);
}

fn is_host_and_port(pair: &str) -> bool {
    if let Some(rest) = pair.strip_prefix('[') {
        return rest
            .split_once("]:")
            .is_some_and(|(host, port)| !host.contains(['[', ']']) && !port.contains([':', '[', ']']));
    }
    pair.split_once(':').is_some_and(|(host, port)| {
        !port.contains(':') && !host.contains([']', '[']) && !port.contains([']', '['])
    })
}

pub(crate) fn fibre_channel(source: &Field<'_>, errors: &mut Errors) {
    let (names, ids, lun) = (source.at("targetWWNs"), source.at("wwids"), source.at("lun"));
    if names.is_empty() && ids.is_empty() {
        errors.push(names.required("must specify either targetWWNs or wwids, but not both"));
    }
    if !names.is_empty() && !ids.is_empty() {
        errors.push(names.invalid("targetWWNs and wwids can not be specified simultaneously"));
    }
    if names.is_empty() {
        return;
    }
    if lun.is_set() {
        lun.within(0, 255, errors);
    } else {
        errors.push(lun.required("lun is required if targetWWNs is specified"));
    }
}

pub(crate) fn flex_volume(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["driver"], errors);
    for (key, option) in source.at("options").entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let normalized = format!(".{}", namespace.to_lowercase());
        if normalized.ends_with(".kubernetes.io") || normalized.ends_with(".k8s.io") {
            errors.push(option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved"));
        }
    }
}

pub(crate) fn azure_file(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["secretName", "shareName"], errors);
}

pub(crate) fn persistent_azure_file(source: &Field<'_>, errors: &mut Errors) {
    azure_file(source, errors);
    let namespace = source.at("secretNamespace");
    if namespace.is_set() {
        namespace.require(errors);
    }
}

pub(crate) fn azure_disk(source: &Field<'_>, errors: &mut Errors) {
    const MANAGED: [&str; 1] =
        ["/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"];
    const BLOB: [&str; 1] = ["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"];
    require(source, &["diskName", "diskURI"], errors);
    source.at("cachingMode").one_of(&["None", "ReadOnly", "ReadWrite"], errors);
    let (kind, address) = (source.at("kind"), source.at("diskURI"));
    kind.one_of(&["Dedicated", "Managed", "Shared"], errors);
    if kind.text() == "Managed" && !address.text().starts_with("/subscriptions/") {
        errors.push(address.unsupported_text(address.text(), &MANAGED));
    }
    if kind.is_set() && kind.text() != "Managed" && !address.text().starts_with("https://") {
        errors.push(address.unsupported_text(address.text(), &BLOB));
    }
}

pub(crate) fn vsphere(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["volumePath"], errors);
}

pub(crate) fn photon(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["pdID"], errors);
}

pub(crate) fn portworx(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["volumeID"], errors);
}

pub(crate) fn scale_io(source: &Field<'_>, errors: &mut Errors) {
    require(source, &["gateway", "system", "volumeName"], errors);
}

pub(crate) fn storage_os(source: &Field<'_>, errors: &mut Errors) {
    storage_os_names(source, errors);
    secret_reference(source, &["name"], errors);
}

pub(crate) fn persistent_storage_os(source: &Field<'_>, errors: &mut Errors) {
    storage_os_names(source, errors);
    secret_reference(source, &["name", "namespace"], errors);
}

fn storage_os_names(source: &Field<'_>, errors: &mut Errors) {
    source.at("volumeName").require_check(names::dns_1123_label, errors);
    source.at("volumeNamespace").check_if_any(names::dns_1123_label, errors);
}

/// Validates the name of a CSI driver.
pub(crate) fn driver_name(name: &Field<'_>, errors: &mut Errors) {
    if name.require(errors) {
        return;
    }
    if name.text().len() > 63 {
        errors.push(name.too_long(63));
    }
    name.check(|text| names::dns_1123_subdomain(&text.to_lowercase()), errors);
}

pub(crate) fn csi(source: &Field<'_>, errors: &mut Errors) {
    driver_name(&source.at("driver"), errors);
    let secret = source.at("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.at("name");
        if !name.require(errors) {
            name.at_path_of(&source.report_at("name")).check(names::dns_1123_subdomain, errors);
        }
    }
}

pub(crate) fn persistent_csi(source: &Field<'_>, errors: &mut Errors) {
    driver_name(&source.at("driver"), errors);
    require(source, &["volumeHandle"], errors);
    for name in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = source.at(name);
        if secret.is_set() {
            secret.at("name").require_check(names::dns_1123_subdomain, errors);
            secret.at("namespace").require_check(names::dns_1123_label, errors);
        }
    }
}
