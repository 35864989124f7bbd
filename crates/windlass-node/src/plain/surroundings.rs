//! The addresses of Services and the paths of mounts, as a plain process finds them on the machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::Mount;

/// The mount with the token of a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The variable that goes before the mounted token in clients of Kubernetes.
const KUBECONFIG: &str = "KUBECONFIG";

type Variables = Vec<(String, String)>;

/// Replaces the address and port in `NAME_SERVICE_HOST` and `NAME_SERVICE_PORT` by where this machine answers for the address.
pub(super) fn replace_services(variables: &mut Variables, answers: &BTreeMap<SocketAddr, SocketAddr>) {
    let local: Vec<(String, SocketAddr)> = variables
        .iter()
        .filter_map(|(name, host)| {
            let service = name.strip_suffix("_SERVICE_HOST")?;
            let port = value(variables, &format!("{service}_SERVICE_PORT"))?;
            let address = SocketAddr::new(host.parse().ok()?, port.parse().ok()?);
            Some((service.to_owned(), *answers.get(&address)?))
        })
        .collect();
    for (service, answer) in local {
        for (name, value) in variables.iter_mut() {
            match name.strip_prefix(&service) {
                Some("_SERVICE_HOST") => *value = answer.ip().to_string(),
                Some("_SERVICE_PORT" | "_SERVICE_PORT_HTTPS") => *value = answer.port().to_string(),
                _ => {}
            }
        }
    }
}

/// Adds `WINDLASS_MOUNT_0` and following, as `TARGET=SOURCE`.
pub(super) fn add_mounts(variables: &mut Variables, mounts: &[Mount]) {
    for (number, mount) in mounts.iter().enumerate() {
        let value = format!("{}={}", mount.target.display(), mount.source.display());
        variables.push((format!("WINDLASS_MOUNT_{number}"), value));
    }
}

/// Replaces the target of a mount in `/path/file` and in `--flag=/path/file` by its source.
pub(super) fn local_path(word: &str, mounts: &[Mount]) -> String {
    let (flag, path) = match word.split_once('=') {
        Some((flag, path)) if flag.starts_with('-') => (Some(flag), path),
        _ => (None, word),
    };
    let inside = |mount: &Mount| Some((mount.target.clone(), join(mount, path)?));
    // The innermost mount hides the outer mounts.
    let found = mounts.iter().filter_map(inside).max_by_key(|(target, _)| target.components().count());
    let Some((_, local)) = found else { return word.to_owned() };
    match flag {
        Some(flag) => format!("{flag}={}", local.display()),
        None => local.display().to_string(),
    }
}

fn join(mount: &Mount, path: &str) -> Option<PathBuf> {
    let rest = Path::new(path).strip_prefix(&mount.target).ok()?;
    Some(if rest.as_os_str().is_empty() { mount.source.clone() } else { mount.source.join(rest) })
}

/// Writes a kubeconfig with the token of the pod to `file`, and names the file in `KUBECONFIG`.
///
/// Without a mounted token, or with a pod that sets `KUBECONFIG`, nothing is added.
pub(super) fn add_kubeconfig(
    variables: &mut Variables,
    mounts: &[Mount],
    file: &Path,
) -> std::io::Result<()> {
    let account = mounts.iter().find(|mount| mount.target == Path::new(SERVICE_ACCOUNT));
    let host = value(variables, "KUBERNETES_SERVICE_HOST");
    let port = value(variables, "KUBERNETES_SERVICE_PORT");
    let (Some(account), Some(host), Some(port), None) = (account, host, port, value(variables, KUBECONFIG))
    else {
        return Ok(());
    };
    let namespace = std::fs::read_to_string(account.source.join("namespace"))?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "pod", "cluster": {
            "server": format!("https://{host}:{port}"),
            "certificate-authority": account.source.join("ca.crt"),
        }}],
        "users": [{"name": "pod", "user": {"tokenFile": account.source.join("token")}}],
        "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod", "namespace": namespace}}],
        "current-context": "pod",
    });
    std::fs::write(file, kubeconfig.to_string())?;
    variables.push((KUBECONFIG.to_owned(), file.display().to_string()));
    Ok(())
}

fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(source: &Path, target: &str) -> Mount {
        Mount { source: source.to_owned(), target: PathBuf::from(target), read_only: true }
    }

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_service_is_found_where_the_machine_answers_for_its_address() {
        let answers = BTreeMap::from([("10.0.0.1:443".parse().unwrap(), "127.0.0.1:40001".parse().unwrap())]);
        let mut found = variables(&[
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("KUBERNETES_SERVICE_PORT", "443"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
            ("OTHER_SERVICE_HOST", "10.0.0.2"),
            ("OTHER_SERVICE_PORT", "443"),
        ]);
        replace_services(&mut found, &answers);
        let expected = variables(&[
            ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
            ("KUBERNETES_SERVICE_PORT", "40001"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "40001"),
            ("OTHER_SERVICE_HOST", "10.0.0.2"),
            ("OTHER_SERVICE_PORT", "443"),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_in_a_mount_is_a_path_of_the_machine() {
        let mounts = [mount(Path::new("/m/outer"), "/certs"), mount(Path::new("/m/inner"), "/certs/inner")];
        for (word, expected) in [
            ("/certs", "/m/outer"),
            ("/certs/tls.crt", "/m/outer/tls.crt"),
            ("/certs/inner/tls.crt", "/m/inner/tls.crt"),
            ("--path=/certs/tls.crt", "--path=/m/outer/tls.crt"),
            ("/certs2", "/certs2"),
            ("a=/certs", "a=/certs"),
            ("--path", "--path"),
        ] {
            assert_eq!(local_path(word, &mounts), expected);
        }
    }

    #[test]
    fn the_kubeconfig_has_the_token_of_the_pod() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("namespace"), "ns").unwrap();
        let mounts = [mount(folder.path(), SERVICE_ACCOUNT)];
        let api_server = [("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", "40001")];
        let file = folder.path().join("kubeconfig");
        let mut found = variables(&api_server);
        add_kubeconfig(&mut found, &mounts, &file).unwrap();
        assert_eq!(value(&found, KUBECONFIG), file.to_str());
        let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(written["clusters"][0]["cluster"]["server"], "https://127.0.0.1:40001");
        assert_eq!(written["contexts"][0]["context"]["namespace"], "ns");
        let token = folder.path().join("token");
        assert_eq!(written["users"][0]["user"]["tokenFile"], token.to_str().unwrap());

        let mut own = variables(&[("KUBECONFIG", "/own"), api_server[0], api_server[1]]);
        let expected = own.clone();
        add_kubeconfig(&mut own, &mounts, &file).unwrap();
        assert_eq!(own, expected);
    }
}
