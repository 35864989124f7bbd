//! Validation of what depends on the operating system of a pod.

use crate::field::{Errors, Field};

/// The lists of containers, in the order in which kube-apiserver visits them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

fn containers<'a>(spec: &Field<'a>) -> impl Iterator<Item = Field<'a>> {
    let spec = spec.clone();
    LISTS.into_iter().flat_map(move |list| spec.at(list).items())
}

/// Validates that the fields of a pod exist on its operating system.
pub(crate) fn validate(spec: &Field<'_>, errors: &mut Errors) {
    let os = spec.at("os");
    if !os.is_set() {
        return;
    }
    match os.at("name").text() {
        "" => errors.push(os.at("name").required("")),
        "linux" => validate_linux(spec, errors),
        "windows" => validate_windows(spec, errors),
        other => errors.push(os.unsupported_as(other, &["linux", "windows"])),
    }
}

fn validate_linux(spec: &Field<'_>, errors: &mut Errors) {
    let contexts = std::iter::once(spec.at("securityContext"))
        .chain(containers(spec).map(|container| container.at("securityContext")));
    for options in contexts.map(|context| context.at("windowsOptions")) {
        if options.is_set() {
            errors.push(options.forbidden("windows options cannot be set for a linux pod"));
        }
    }
}

fn validate_windows(spec: &Field<'_>, errors: &mut Errors) {
    let mut refuse = |field: Field<'_>, is_given: bool| {
        if is_given {
            errors.push(field.forbidden(NOT_ON_WINDOWS));
        }
    };
    for name in ["hostUsers", "shareProcessNamespace"] {
        refuse(spec.at(name), spec.at(name).is_set());
    }
    for name in ["hostPID", "hostIPC"] {
        refuse(spec.at(name), spec.at(name).flag());
    }
    let context = spec.at("securityContext");
    let names = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    for name in names {
        refuse(context.at(name), context.at(name).is_set());
    }
    refuse(context.at("sysctls"), !context.at("sysctls").is_empty());
    let names = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    for context in containers(spec).map(|container| container.at("securityContext")) {
        for name in names {
            refuse(context.at(name), context.at(name).is_set());
        }
    }
}

/// Validates Windows pods with containers on the host: all containers must run on the host, in the host's
/// network.
pub(crate) fn validate_host_process(spec: &Field<'_>, errors: &mut Errors) {
    let option = |place: &Field<'_>| {
        let field = place.at_path("securityContext/windowsOptions/hostProcess");
        (field.is_set(), field.flag())
    };
    let (is_set, of_pod) = option(spec);
    let (mut total, mut on_host) = (0, 0);
    for container in containers(spec) {
        total += 1;
        let (is_own, own) = option(&container);
        if is_set && is_own && of_pod != own {
            let field = container.at_path("securityContext/windowsOptions/hostProcess");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.push(field.invalid(detail));
        }
        if (is_own && own) || (!is_own && of_pod) {
            on_host += 1;
        }
    }
    if on_host == 0 {
        return;
    }
    if on_host != total {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(spec.invalid_as("", detail));
    }
    let network = spec.at("hostNetwork");
    if !network.flag() {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(network.invalid_as(false, detail));
    }
}

/// Validates a pod with its own user namespace.
pub(crate) fn validate_users(spec: &Field<'_>, errors: &mut Errors) {
    let users = spec.at("hostUsers");
    if !users.is_set() || users.flag() {
        return;
    }
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.at(name).flag() {
            errors.push(spec.at(shown).forbidden("when `hostUsers` is false"));
        }
    }
    for devices in containers(spec).map(|container| container.at("volumeDevices")) {
        if !devices.is_empty() {
            errors.push(devices.forbidden("when `hostUsers` is false"));
        }
    }
}
