//! The program of a container: the specification of the pod, laid over the configuration of the image.

use crate::images::ImageConfig;
use crate::{ContainerSpec, RuntimeError};

/// Returns the program and its arguments.
pub(crate) fn words(spec: &ContainerSpec, image: &ImageConfig) -> Result<Vec<String>, RuntimeError> {
    let (program, defaults) = if spec.command.is_empty() {
        (&image.entry_point, image.arguments.as_slice())
    } else {
        (&spec.command, [].as_slice())
    };
    let arguments = if spec.arguments.is_empty() { defaults } else { &spec.arguments };
    let words: Vec<String> = program.iter().chain(arguments).cloned().collect();
    if words.is_empty() {
        return Err(RuntimeError::Create("no command specified".into()));
    }
    if words.iter().chain(spec.environment.iter().map(|(_, value)| value)).any(|word| word.contains('\0')) {
        return Err(RuntimeError::Config(
            "a word of the command or the environment contains a NUL byte".into(),
        ));
    }
    Ok(words)
}

/// Returns the environment. Later entries replace earlier entries of the same name.
pub(crate) fn environment(
    spec: &ContainerSpec,
    image: &ImageConfig,
    host_name: &str,
) -> Vec<(String, String)> {
    let mut result: Vec<(String, String)> = Vec::new();
    let host = ("HOSTNAME".to_owned(), host_name.to_owned());
    for (name, value) in image.environment.iter().chain([&host]).chain(&spec.environment) {
        if name.is_empty() || name.contains(['=', '\0']) {
            continue;
        }
        match result.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone_from(value),
            None => result.push((name.clone(), value.clone())),
        }
    }
    result
}

/// Checks that the user is not root, if the specification says so. The words are those of the kubelet.
pub(crate) fn check_user(spec: &ContainerSpec, image: &ImageConfig) -> Result<(), RuntimeError> {
    if !spec.user.must_not_be_root {
        return Ok(());
    }
    let refuse = |text: String| Err(RuntimeError::Config(text));
    let name = image.user.split(':').next().unwrap_or_default();
    match (spec.user.user, name.parse::<u32>()) {
        (Some(0), _) => refuse("container's runAsUser breaks non-root policy".into()),
        (Some(_), _) => Ok(()),
        (None, Ok(0)) => refuse("container has runAsNonRoot and image will run as root".into()),
        (None, Ok(_)) => Ok(()),
        (None, Err(_)) if name.is_empty() => {
            refuse("container has runAsNonRoot and image will run as root".into())
        }
        (None, Err(_)) => refuse(format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, User};

    fn spec() -> ContainerSpec {
        ContainerSpec {
            name: "c".into(),
            attempt: 0,
            image: "i".into(),
            command: vec![],
            arguments: vec![],
            working_directory: None,
            environment: vec![],
            mounts: vec![],
            user: User::default(),
            read_only_root: false,
            limits: Limits::default(),
            log: "/log".into(),
            terminal: false,
            stdin: false,
            stdin_once: false,
        }
    }

    fn image() -> ImageConfig {
        let environment = vec![("A".into(), "1".into()), ("HOSTNAME".into(), "image".into())];
        ImageConfig {
            entry_point: vec!["/e".into()],
            arguments: vec!["x".into()],
            environment,
            ..ImageConfig::default()
        }
    }

    #[test]
    fn a_command_replaces_entry_point_and_arguments_and_arguments_only_the_arguments() {
        let command = ContainerSpec { command: vec!["/c".into()], ..spec() };
        let arguments = ContainerSpec { arguments: vec!["y".into()], ..spec() };
        assert_eq!(words(&spec(), &image()).unwrap(), ["/e", "x"]);
        assert_eq!(words(&command, &image()).unwrap(), ["/c"]);
        assert_eq!(words(&arguments, &image()).unwrap(), ["/e", "y"]);
        assert!(words(&spec(), &ImageConfig::default()).is_err());
    }

    #[test]
    fn the_pod_replaces_variables_of_the_image() {
        let spec =
            ContainerSpec { environment: vec![("A".into(), "2".into()), ("A".into(), "3".into())], ..spec() };
        let expected =
            [("A", "3"), ("HOSTNAME", "pod")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(environment(&spec, &image(), "pod"), expected);
    }

    #[test]
    fn root_is_refused_in_the_words_of_the_kubelet() {
        let refused = |user: Option<u32>, image_user: &str| {
            let user = User { user, must_not_be_root: true, ..User::default() };
            let image = ImageConfig { user: image_user.into(), ..image() };
            check_user(&ContainerSpec { user, ..spec() }, &image).err().map(|error| error.to_string())
        };
        let root = "container has runAsNonRoot and image will run as root";
        assert_eq!(refused(None, "").as_deref(), Some(root));
        assert_eq!(refused(None, "0:5").as_deref(), Some(root));
        assert_eq!(
            refused(Some(0), "65532").as_deref(),
            Some("container's runAsUser breaks non-root policy")
        );
        assert!(refused(None, "nonroot").unwrap().contains("non-numeric user (nonroot)"));
        assert_eq!(refused(None, "65532:65532"), None);
        assert_eq!(refused(Some(1000), ""), None);
    }
}
