//! The run time and the exit code of a command, known without running the command.
//!
//! Read are the programs `sleep`, `true`, `false`, `echo`, `printf`, `date` and `hostname`, and a shell (`sh -c`) with a list of these programs and
//! of `exit`, joined by `;`, `&&`, `||` and line ends. Anything else makes the whole command unknown.

use std::time::Duration;

/// The effect of a command: a run time, then an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PredictedRun {
    /// The time until the command ends; [`Duration::MAX`]: never.
    pub run_for: Duration,
    /// The exit code.
    pub exit_code: i32,
}

const AT_ONCE: PredictedRun = PredictedRun { run_for: Duration::ZERO, exit_code: 0 };

/// Returns the effect of a container with this `command` and `args`; `None` if the effect is unknown.
///
/// Arguments without a command are the arguments of the image's entry point. The arguments are read as a command if the first word is a program
/// that no entry point takes as an argument: `kubectl run NAME --image=busybox -- sleep 5` writes arguments alone.
pub(super) fn predict(command: &[String], args: &[String]) -> Option<PredictedRun> {
    let words: Vec<&str> = command.iter().chain(args).map(String::as_str).collect();
    match words.as_slice() {
        [shell, "-c", text] if is_shell(shell) => run_list(&read_list(text)?),
        // Other words are the parameters of the text.
        [shell, "-c", text, ..] if is_shell(shell) && !text.contains('$') => run_list(&read_list(text)?),
        // Keywords and builtins of the shell.
        ["exit" | "exec" | ":", ..] | [] => None,
        [program, rest @ ..] => run(program, rest).map(|outcome| outcome.predicted),
    }
}

fn is_shell(program: &str) -> bool {
    matches!(program_name(program), "sh" | "bash" | "ash" | "dash")
}

/// Returns the name of a program in a usual folder.
fn program_name(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("/bin" | "/usr/bin" | "/usr/local/bin", name)) => name,
        _ => path,
    }
}

/// When a command of a list runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Always,
    AfterSuccess,
    AfterFailure,
}

/// A command of a list, as words.
type Step = (Condition, Vec<String>);

/// Splits the text of a shell into commands; `None` if the text has more than words, quotes and the joints of commands.
fn read_list(text: &str) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = vec![(Condition::Always, Vec::new())];
    let mut word: Option<String> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let joint = match character {
            ' ' | '\t' => None,
            ';' | '\n' => Some(Condition::Always),
            '&' => Some(characters.next_if_eq(&'&').map(|_| Condition::AfterSuccess)?),
            '|' => Some(characters.next_if_eq(&'|').map(|_| Condition::AfterFailure)?),
            '\'' | '"' => {
                let quoted = read_quoted(&mut characters, character)?;
                word.get_or_insert_default().push_str(&quoted);
                continue;
            }
            '`' | '\\' | '(' | ')' | '{' | '}' | '<' | '>' | '#' | '*' | '?' | '[' => return None,
            other => {
                word.get_or_insert_default().push(other);
                continue;
            }
        };
        let (_, words) = steps.last_mut()?;
        words.extend(word.take());
        if let Some(condition) = joint {
            // A line may be empty; the other joints come after a command.
            if character != '\n' && words.is_empty() {
                return None;
            }
            steps.push((condition, Vec::new()));
        }
    }
    steps.last_mut()?.1.extend(word);
    let is_blank = |step: &Step| step.1.is_empty();
    let is_broken = steps.iter().any(|step| step.0 != Condition::Always && is_blank(step));
    steps.retain(|step| !is_blank(step));
    (!is_broken).then_some(steps)
}

fn read_quoted(rest: &mut impl Iterator<Item = char>, quote: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()? {
            end if end == quote => return Some(text),
            // Escapes and substitutions of programs.
            '\\' | '`' if quote == '"' => return None,
            other => text.push(other),
        }
    }
}

fn run_list(steps: &[Step]) -> Option<PredictedRun> {
    let mut so_far = AT_ONCE;
    for (condition, words) in steps {
        let runs = match condition {
            Condition::Always => true,
            Condition::AfterSuccess => so_far.exit_code == 0,
            Condition::AfterFailure => so_far.exit_code != 0,
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (program, rest) = words.split_first()?;
        // A command that does not run has to be known too: the command could be the word of a loop.
        let step = run(program, rest)?;
        if !runs {
            continue;
        }
        let PredictedRun { run_for, exit_code } = step.predicted;
        so_far.run_for = so_far.run_for.saturating_add(run_for);
        so_far.exit_code = if step.keeps_code { so_far.exit_code } else { exit_code };
        if step.is_last || so_far.run_for == Duration::MAX {
            break;
        }
    }
    Some(so_far)
}

/// The effect of a command of a list.
struct Outcome {
    predicted: PredictedRun,
    /// No later command runs.
    is_last: bool,
    /// The exit code is the exit code of the command before.
    keeps_code: bool,
}

fn run(program: &str, args: &[&str]) -> Option<Outcome> {
    let ends = |predicted| Some(Outcome { predicted, is_last: false, keeps_code: false });
    match (program_name(program), args) {
        ("true" | ":" | "echo" | "printf" | "date" | "hostname", _) => {
            let is_plain = args.iter().all(|arg| !arg.contains("$("));
            is_plain.then_some(AT_ONCE).and_then(ends)
        }
        ("false", _) => ends(PredictedRun { exit_code: 1, ..AT_ONCE }),
        ("sleep", [_, ..]) => ends(PredictedRun { run_for: sleep_time(args)?, exit_code: 0 }),
        ("exec", [program, rest @ ..]) => Some(Outcome { is_last: true, ..run(program, rest)? }),
        ("exit", []) => Some(Outcome { predicted: AT_ONCE, is_last: true, keeps_code: true }),
        ("exit", [code]) => {
            let exit_code = i32::from(code.parse::<u8>().ok()?);
            Some(Outcome {
                predicted: PredictedRun { exit_code, ..AT_ONCE },
                is_last: true,
                keeps_code: false,
            })
        }
        _ => None,
    }
}

/// Returns the sum of the times, in the syntax of `sleep`: a number of seconds, or a number with a unit.
fn sleep_time(args: &[&str]) -> Option<Duration> {
    let mut total = Duration::ZERO;
    for arg in args {
        if matches!(*arg, "inf" | "infinity") {
            return Some(Duration::MAX);
        }
        let number = arg.trim_end_matches(|last: char| last.is_ascii_alphabetic());
        let seconds = match &arg[number.len()..] {
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let time = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(time)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREVER: u64 = u64::MAX;

    fn of(command: &[&str], args: &[&str]) -> Option<(u64, i32)> {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let predicted = predict(&own(command), &own(args))?;
        Some((predicted.run_for.as_secs(), predicted.exit_code))
    }

    #[test]
    fn programs_are_read_with_their_arguments() {
        assert_eq!(of(&["sleep", "30"], &[]), Some((30, 0)));
        assert_eq!(of(&["sleep"], &["1m", "2"]), Some((62, 0)));
        assert_eq!(of(&[], &["/bin/sleep", "1.5d"]), Some((129_600, 0)));
        assert_eq!(of(&["sleep", "infinity"], &[]), Some((FOREVER, 0)));
        assert_eq!(of(&["/bin/true"], &[]), Some((0, 0)));
        assert_eq!(of(&["false"], &[]), Some((0, 1)));
    }

    #[test]
    fn a_shell_runs_its_commands_in_order() {
        let shell = |text| of(&["sh", "-c", text], &[]);
        assert_eq!(shell("echo 'a; b' && sleep 2; sleep 3"), Some((5, 0)));
        assert_eq!(shell("exit 42"), Some((0, 42)));
        assert_eq!(shell("echo start\nsleep 4\n\nexit 1\nsleep 9"), Some((4, 1)));
        assert_eq!(shell("false || exit 3; sleep 5"), Some((0, 3)));
        assert_eq!(shell("false && sleep 5"), Some((0, 1)));
        assert_eq!(shell("true || sleep 5; exit"), Some((0, 0)));
        assert_eq!(shell("false; exit"), Some((0, 1)));
        assert_eq!(shell("sleep inf; exit 1"), Some((FOREVER, 0)));
        assert_eq!(shell("echo hello $NAME; exec sleep 7; exit 1"), Some((7, 0)));
        assert_eq!(of(&["/bin/sh"], &["-c", "sleep 1"]), Some((1, 0)));
        assert_eq!(shell(""), Some((0, 0)));
    }

    #[test]
    fn what_cannot_be_foreseen_is_unknown() {
        for text in [
            "while true; do sleep 1; done",
            "echo a > file",
            "echo `sleep 9`",
            "echo $(sleep 9)",
            "sleep 1 & wait",
            "sleep 1 | cat",
            "trap 'exit 1' TERM; sleep 5",
            "if true; then exit 1; fi",
            "sleep $TIME",
            "exit 256",
            "exit -1",
            "&& sleep 1",
            "echo 'open",
            "sleep 1 &&",
            "sleep 1;; exit 1",
            "; exit 1",
        ] {
            assert_eq!(of(&["sh", "-c", text], &[]), None, "{text}");
        }
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&["sleep"], &[]), None);
        assert_eq!(of(&["sleep", "soon"], &[]), None);
        assert_eq!(of(&["sleep", "5ms"], &[]), None);
        assert_eq!(of(&["sleep", "1h30m"], &[]), None);
        assert_eq!(of(&["/app/sleep", "5"], &[]), None);
        assert_eq!(of(&["exit", "1"], &[]), None);
        assert_eq!(of(&["nginx"], &["-g", "daemon off;"]), None);
        assert_eq!(of(&[], &["--leader-elect"]), None);
    }
}
