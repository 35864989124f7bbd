//! The streams of a simulated pod: a script in an annotation answers `exec` and `attach`, and a port may be a port of the machine.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::sleep;
use windlass_node::{Command, Exit, RuntimeError, Session};

use super::script::{PREFIX, parse_duration};

/// The bytes that wait between a client and a script.
const PIPE: usize = 64 << 10;
/// The exit code of a script with a step that does not exist; a shell's code for a program that does not exist.
const NOT_FOUND: i32 = 127;

/// The annotations of a simulated pod: keys of the metadata.
pub type Annotations = BTreeMap<String, String>;

/// Runs the script of a simulated container, in place of `command` or of the container's own program.
///
/// The annotation `kubelet.windlass.dev/exec` holds the script, or `kubelet.windlass.dev/exec.NAME` that of the container NAME. The steps
/// are separated by line ends or semicolons:
///
/// | step | meaning |
/// |---|---|
/// | `echo TEXT` | writes the text and a line end; with `>&2` at the end to the standard error |
/// | `cat` | writes the standard input to the standard output |
/// | `sleep 1s` | waits |
/// | `exit 3` | ends with this code. A script without `exit` ends with 0 |
///
/// # Errors
/// The container has no such annotation.
pub fn run_script(
    annotations: &Annotations,
    container: &str,
    command: &Command,
) -> Result<Session, RuntimeError> {
    let own = annotations.get(&format!("{PREFIX}exec.{container}"));
    let script = own.or_else(|| annotations.get(&format!("{PREFIX}exec"))).ok_or_else(|| {
        RuntimeError::Unsupported(format!(
            "the container \"{container}\" is simulated, and no program runs in it: the annotation {PREFIX}exec sets what a command \
             answers, for example \"echo hello; exit 0\""
        ))
    })?;
    let steps = parse(script);
    let (stdin, input) = duplex(PIPE);
    let (output, stdout) = duplex(PIPE);
    let (errors, stderr) = duplex(PIPE);
    let has_terminal = command.terminal.is_some();
    let streams = Streams { input, output, errors: (!has_terminal).then_some(errors) };
    Ok(Session {
        stdin: command.stdin.then(|| Box::pin(stdin) as _),
        stdout: Some(Box::pin(stdout)),
        stderr: (!has_terminal).then(|| Box::pin(stderr) as _),
        resize: None,
        exit: Box::pin(exit(steps, streams)),
    })
}

/// Returns the address that stands for a port of a simulated pod: the annotation `kubelet.windlass.dev/port.80: 127.0.0.1:8080`.
///
/// # Errors
/// The pod has no such annotation.
pub fn port_address(annotations: &Annotations, port: u16) -> Result<&str, RuntimeError> {
    let key = format!("{PREFIX}port.{port}");
    annotations.get(&key).map(String::as_str).ok_or_else(|| {
        RuntimeError::Unsupported(format!(
            "the pod is simulated, and nothing listens on its port {port}: the annotation {key} sets an address of this machine, for \
             example \"127.0.0.1:8080\""
        ))
    })
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Echo { text: String, is_error: bool },
    Cat,
    Sleep(Duration),
    Exit(i32),
    Unknown(String),
}

fn parse(script: &str) -> Vec<Step> {
    let steps = script.split(['\n', ';']).map(str::trim).filter(|step| !step.is_empty());
    steps
        .map(|step| {
            let (word, rest) = step.split_once(char::is_whitespace).unwrap_or((step, ""));
            let rest = rest.trim();
            let known = match word {
                "echo" => Some(match rest.strip_suffix(">&2") {
                    Some(text) => Step::Echo { text: text.trim().to_owned(), is_error: true },
                    None => Step::Echo { text: rest.to_owned(), is_error: false },
                }),
                "cat" if rest.is_empty() => Some(Step::Cat),
                "sleep" => parse_duration(rest)
                    .or_else(|| rest.parse().ok().map(Duration::from_secs))
                    .map(Step::Sleep),
                "exit" => rest.parse().ok().map(Step::Exit),
                _ => None,
            };
            known.unwrap_or_else(|| Step::Unknown(step.to_owned()))
        })
        .collect()
}

/// The script's ends of the streams.
struct Streams {
    input: DuplexStream,
    output: DuplexStream,
    /// `None` with a terminal.
    errors: Option<DuplexStream>,
}

/// Runs a script to the end. The streams are closed before.
async fn exit(steps: Vec<Step>, mut streams: Streams) -> Result<Exit, RuntimeError> {
    let started_at = SystemTime::now();
    let code = run(steps, &mut streams).await;
    drop(streams);
    Ok(Exit { code, signal: None, out_of_memory: false, started_at, finished_at: SystemTime::now() })
}

async fn run(steps: Vec<Step>, streams: &mut Streams) -> i32 {
    for step in steps {
        match step {
            Step::Echo { text, is_error } => write(streams, is_error, &text).await,
            Step::Cat => copy(&mut streams.input, &mut streams.output).await,
            Step::Sleep(time) => sleep(time).await,
            Step::Exit(code) => return code,
            Step::Unknown(step) => {
                write(streams, true, &format!("windlass: {PREFIX}exec: no such step: {step}")).await;
                return NOT_FOUND;
            }
        }
    }
    0
}

/// Writes a line. A client that has left does not end the script.
async fn write(streams: &mut Streams, is_error: bool, text: &str) {
    let has_terminal = streams.errors.is_none();
    let stream = streams.errors.as_mut().filter(|_| is_error).unwrap_or(&mut streams.output);
    let end = if has_terminal { "\r\n" } else { "\n" };
    let _ = stream.write_all(format!("{text}{end}").as_bytes()).await;
}

async fn copy(input: &mut (impl AsyncRead + Unpin), output: &mut (impl AsyncWrite + Unpin)) {
    let _ = tokio::io::copy(input, output).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn annotated(key: &str, value: &str) -> Annotations {
        BTreeMap::from([(format!("{PREFIX}{key}"), value.to_owned())])
    }

    fn command() -> Command {
        Command { words: vec!["sh".to_owned()], terminal: None, stdin: true }
    }

    /// Runs a script with an input. Returns output, errors and exit code.
    async fn run_with(script: &str, input: &str) -> (String, String, i32) {
        let session = run_script(&annotated("exec", script), "web", &command()).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        let Session { stdin, stdout, stderr, exit, .. } = session;
        let (mut stdin, mut stdout, mut stderr) = (stdin.unwrap(), stdout.unwrap(), stderr.unwrap());
        let feed = async {
            stdin.write_all(input.as_bytes()).await.unwrap();
            drop(stdin);
        };
        let ((), read, erred, exit) =
            tokio::join!(feed, stdout.read_to_string(&mut out), stderr.read_to_string(&mut err), exit);
        read.unwrap();
        erred.unwrap();
        (out, err, exit.unwrap().code)
    }

    #[tokio::test]
    async fn a_script_answers_a_command() {
        let script = "echo one; echo two >&2\ncat\nsleep 1ms; exit 3; echo never";
        let expected = ("one\nhello".to_owned(), "two\n".to_owned(), 3);
        assert_eq!(run_with(script, "hello").await, expected);
        assert_eq!(run_with("", "").await, (String::new(), String::new(), 0));
    }

    #[tokio::test]
    async fn an_unknown_step_is_named() {
        let (out, err, code) = run_with("echo a; ls -l; echo b", "").await;
        assert_eq!((out.as_str(), code), ("a\n", 127));
        assert!(err.contains("no such step: ls -l"), "{err}");
    }

    #[test]
    fn without_an_annotation_the_error_says_which() {
        let error = run_script(&Annotations::new(), "web", &command()).unwrap_err().to_string();
        assert!(error.contains("kubelet.windlass.dev/exec"), "{error}");
        let error = port_address(&Annotations::new(), 80).unwrap_err().to_string();
        assert!(error.contains("kubelet.windlass.dev/port.80"), "{error}");
    }

    #[test]
    fn the_script_of_one_container_goes_before_that_of_all() {
        let mut annotations = annotated("exec.web", "exit 1");
        assert!(run_script(&annotations, "other", &command()).is_err());
        annotations.extend(annotated("exec", "exit 2"));
        assert!(run_script(&annotations, "other", &command()).is_ok());
        assert_eq!(port_address(&annotated("port.80", "127.0.0.1:8080"), 80).unwrap(), "127.0.0.1:8080");
    }
}
