//! The state machine of a real container: image, start, probes, end, restart.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, ContainerStateTerminated};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use windlass_node::{ContainerId, Exit, Image, PullError};
use windlass_runtime::events::EventType;

use super::action::{Action, FoundImage, StartError};
use super::running::Running;
use crate::kubelet::container::earlier;
use crate::kubelet::pod_event::{self, PodEvent};
use crate::kubelet::restart::Restart;

/// The first and the longest pause before an image is pulled again, or a container is restarted.
const BACK_OFF: Duration = Duration::from_secs(10);
const MAX_BACK_OFF: Duration = Duration::from_mins(5);
/// A container that has run this long is restarted without a pause.
const RESET_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// The pause before a container that could not be created is created again.
const CREATE_AGAIN: Duration = Duration::from_secs(10);
/// How long the reason `ErrImagePull` is shown before `ImagePullBackOff`, and `RunContainerError` before `CrashLoopBackOff`.
pub(super) const ERROR_SHOWN: Duration = Duration::from_secs(2);
/// The exit code of a container that did not start.
const START_ERROR: i32 = 128;
const START_ERROR_REASON: &str = "StartError";

/// Collects the actions and events of a step.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub actions: Vec<Action>,
    pub events: Vec<PodEvent>,
    pub wake_at: Option<Timestamp>,
}

impl Output {
    pub(crate) fn event(&mut self, kind: EventType, reason: &'static str, message: String) {
        self.events.push(PodEvent::new(kind, reason, message));
    }

    pub(crate) fn wake(&mut self, at: Timestamp) {
        self.wake_at = earlier(self.wake_at, Some(at));
    }
}

/// The surroundings of a container in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    pub spec: &'a ContainerSpec,
    /// The pod in messages of the kubelet: `NAME_NAMESPACE(UID)`.
    pub pod: &'a str,
    pub restart: Restart<'a>,
    /// The grace period of the pod.
    pub grace: Duration,
    /// True if the pod ends: no container starts any more.
    pub is_ending: bool,
    pub now: Timestamp,
}

/// The state of a container.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerMemory {
    pub state: State,
    /// How often the container has been restarted.
    pub restarts: u32,
    /// The end before the last start.
    pub last: Option<Ended>,
    pub image: Option<Image>,
    /// The reference of the image that was looked for last: that of the attempt under way, or of the last failure.
    reference: Option<String>,
    pull_failures: u32,
    /// How many restarts followed each other without a long run.
    crashes: u32,
    restarted_at: Option<Timestamp>,
    backed_off: bool,
}

/// Where a container is.
#[derive(Clone, Debug, Default)]
pub(crate) enum State {
    /// The container has not begun.
    #[default]
    New,
    /// An error is shown until the next attempt.
    Waiting(Waiting),
    /// The image is looked for or pulled.
    GettingImage,
    Starting,
    Running(Box<Running>),
    Ended(Ended),
}

/// A pause after an error.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub reason: &'static str,
    pub message: String,
    since: Timestamp,
    retry_at: Timestamp,
}

/// A container that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// `None`: the container never started.
    pub id: Option<ContainerId>,
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub reason: &'static str,
    pub message: Option<String>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    restart: bool,
}

impl ContainerMemory {
    /// Continues a container of an earlier kubelet: the process is gone.
    pub(crate) fn left_behind(restarts: u32, exit: Ended) -> Self {
        Self { state: State::Ended(exit), restarts, ..Self::default() }
    }

    pub(crate) fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) => Some(running),
            _ => None,
        }
    }

    pub(crate) fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// Returns whether an action of this container is under way that may start a process.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.state, State::Starting)
    }

    /// Returns whether the container has started: the `startup` probe has succeeded.
    pub(crate) fn has_started(&self, spec: &ContainerSpec) -> bool {
        self.running().is_some_and(|running| running.has_started(spec))
    }

    pub(crate) fn is_ready(&self, spec: &ContainerSpec) -> bool {
        self.running().is_some_and(|running| running.is_ready(spec))
    }

    /// Returns whether the container will not be started again.
    pub(crate) fn is_done(&self, restart: Restart<'_>) -> bool {
        self.ended().is_some_and(|ended| !ended.restart && !restart.applies(ended.exit_code))
    }

    /// Performs the transitions of a container that should run.
    pub(crate) fn advance(&mut self, around: Surroundings<'_>, out: &mut Output) {
        let now = around.now;
        self.forget_failures_of_other_image(around);
        match &mut self.state {
            State::New => self.begin(around, out),
            State::Waiting(waiting) if waiting.retry_at <= now => self.begin(around, out),
            State::Waiting(waiting) => {
                if waiting.reason == "ErrImagePull" {
                    let shown = waiting.since.checked_add(ERROR_SHOWN).unwrap_or(now);
                    if shown <= now {
                        waiting.back_off_pull(around.spec, out);
                    } else {
                        out.wake(shown);
                    }
                }
                out.wake(waiting.retry_at);
            }
            State::GettingImage | State::Starting => {}
            State::Running(running) => {
                if running.stop.is_none() && running.image != image_of(around.spec) {
                    let why = format!("Container {} definition changed, will be restarted", around.spec.name);
                    running.begin_stop(around, around.grace, why, true, out);
                }
                running.advance(around, out);
            }
            State::Ended(_) => self.after_end(around, out),
        }
    }

    /// Stops the container, or continues a stop. `deadline` is the time of SIGKILL.
    pub(crate) fn stop(&mut self, around: Surroundings<'_>, deadline: Timestamp, out: &mut Output) {
        match &mut self.state {
            State::Running(running) => {
                let why = format!("Stopping container {}", around.spec.name);
                let grace = Duration::try_from(deadline.duration_since(around.now)).unwrap_or_default();
                running.begin_stop(around, grace, why, false, out);
                running.advance(around, out);
            }
            State::New | State::Waiting(_) | State::GettingImage | State::Starting | State::Ended(_) => {}
        }
    }

    /// Returns whether the attempt under way, or the last failure, is that of another image than the pod has now.
    fn is_of_other_image(&self, around: Surroundings<'_>) -> bool {
        self.reference.as_ref().is_some_and(|reference| *reference != image_of(around.spec))
    }

    /// Ends the back-off if the image of the failures has been replaced.
    fn forget_failures_of_other_image(&mut self, around: Surroundings<'_>) {
        if !self.is_of_other_image(around) {
            return;
        }
        (self.pull_failures, self.crashes) = (0, 0);
        if let State::Waiting(waiting) = &mut self.state {
            waiting.retry_at = around.now;
        }
    }

    fn begin(&mut self, around: Surroundings<'_>, out: &mut Output) {
        self.reference = Some(image_of(around.spec));
        self.state = State::GettingImage;
        out.actions.push(Action::FindImage { container: around.spec.name.clone() });
    }

    /// Decides, by the pull policy, between the image of this machine and a pull.
    pub(crate) fn found(
        &mut self,
        around: Surroundings<'_>,
        outcome: Result<FoundImage, PullError>,
        out: &mut Output,
    ) {
        if around.is_ending {
            return self.state = State::New;
        }
        if self.is_of_other_image(around) {
            return self.begin(around, out);
        }
        let image = image_of(around.spec);
        let container = around.spec.name.clone();
        let found = match outcome {
            Ok(found) => found,
            Err(error) => return self.pull_failed(around, error, out),
        };
        let policy = around.spec.image_pull_policy.as_deref().unwrap_or("IfNotPresent");
        // An image that cannot be pulled cannot be fresher.
        let use_present = policy != "Always" || !found.may_pull;
        match found.image {
            Some(present) if use_present => {
                out.event(EventType::Normal, "Pulled", pod_event::pulled(&image));
                self.start(around, present, out);
            }
            None if policy == "Never" => {
                let text = format!("Container image {image:?} is not present with pull policy of Never");
                out.event(EventType::Warning, "ErrImageNeverPull", text.clone());
                out.event(EventType::Warning, "Failed", "Error: ErrImageNeverPull".to_owned());
                self.wait("ErrImageNeverPull", text, CREATE_AGAIN, around.now, out);
            }
            _ => {
                out.event(EventType::Normal, "Pulling", format!("Pulling image {image:?}"));
                out.actions.push(Action::Pull { container });
            }
        }
    }

    pub(crate) fn pulled(
        &mut self,
        around: Surroundings<'_>,
        outcome: Result<Image, PullError>,
        took: Duration,
        out: &mut Output,
    ) {
        match outcome {
            // The image stays for the next pod.
            _ if around.is_ending => self.state = State::New,
            _ if self.is_of_other_image(around) => self.begin(around, out),
            Ok(image) => {
                self.pull_failures = 0;
                let took = go_duration(took);
                let text = format!(
                    "Successfully pulled image {:?} in {took} ({took} including waiting). Image size: {} bytes.",
                    image_of(around.spec),
                    image.size,
                );
                out.event(EventType::Normal, "Pulled", text);
                self.start(around, image, out);
            }
            Err(error) => self.pull_failed(around, error, out),
        }
    }

    fn pull_failed(&mut self, around: Surroundings<'_>, error: PullError, out: &mut Output) {
        let image = image_of(around.spec);
        if matches!(error, PullError::InvalidName(_)) {
            let text = format!("Failed to apply default image tag {image:?}: {error}");
            out.event(EventType::Warning, "InspectFailed", text.clone());
            out.event(EventType::Warning, "Failed", "Error: InvalidImageName".to_owned());
            return self.wait("InvalidImageName", text, CREATE_AGAIN, around.now, out);
        }
        out.event(EventType::Warning, "Failed", format!("Failed to pull image {image:?}: {error}"));
        out.event(EventType::Warning, "Failed", "Error: ErrImagePull".to_owned());
        let pause = doubled(self.pull_failures);
        self.pull_failures = self.pull_failures.saturating_add(1);
        self.wait("ErrImagePull", error.to_string(), pause, around.now, out);
        out.wake(around.now.checked_add(ERROR_SHOWN).unwrap_or(around.now));
    }

    fn wait(
        &mut self,
        reason: &'static str,
        message: String,
        pause: Duration,
        now: Timestamp,
        out: &mut Output,
    ) {
        let retry_at = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        out.wake(retry_at);
        self.state = State::Waiting(Waiting { reason, message, since: now, retry_at });
    }

    /// Ends the pause after an error that a ConfigMap or Secret has caused, so that the container is tried again.
    pub(crate) fn objects_changed(&mut self, now: Timestamp) {
        if let State::Waiting(waiting) = &mut self.state
            && waiting.reason == "CreateContainerConfigError"
        {
            waiting.retry_at = now;
        }
    }

    fn start(&mut self, around: Surroundings<'_>, image: Image, out: &mut Output) {
        self.state = State::Starting;
        self.image = Some(image.clone());
        let container = around.spec.name.clone();
        out.actions.push(Action::Start { container, attempt: self.restarts, image });
    }

    pub(crate) fn started(
        &mut self,
        around: Surroundings<'_>,
        outcome: Result<ContainerId, StartError>,
        out: &mut Output,
    ) {
        let name = &around.spec.name;
        let id = match outcome {
            Ok(id) => id,
            Err(error) => return self.start_failed(around, error, out),
        };
        out.event(EventType::Normal, "Created", "Container created".to_owned());
        out.event(EventType::Normal, "Started", "Container started".to_owned());
        let reference = self.reference.clone().unwrap_or_else(|| image_of(around.spec));
        let running = Running::new(id, reference, around);
        if !running.is_post_started() {
            out.actions.push(Action::PostStart { container: name.clone(), id: running.id.clone() });
        }
        self.backed_off = false;
        self.state = State::Running(Box::new(running));
    }

    /// Waits for another sandbox: the container did not start.
    pub(crate) fn wait_for_sandbox(&mut self) {
        if self.is_starting() {
            self.state = State::New;
        }
    }

    /// Begins a container anew, also after a success.
    pub(crate) fn begin_anew(&mut self, out: &mut Output) {
        let State::Ended(ended) = &self.state else { return };
        let ended = ended.clone();
        self.put_away(ended, out);
        self.state = State::New;
    }

    fn start_failed(&mut self, around: Surroundings<'_>, error: StartError, out: &mut Output) {
        let now = around.now;
        let runs = error.reason == "RunContainerError";
        if runs {
            out.event(EventType::Normal, "Created", "Container created".to_owned());
        }
        out.event(EventType::Warning, "Failed", format!("Error: {}", error.message));
        if !runs {
            return self.wait(error.reason, error.message, CREATE_AGAIN, now, out);
        }
        self.state = State::Ended(Ended {
            id: None,
            exit_code: START_ERROR,
            signal: None,
            reason: START_ERROR_REASON,
            message: Some(error.message),
            started_at: None,
            finished_at: now,
            restart: false,
        });
        out.wake(now);
    }

    pub(crate) fn exited(&mut self, exit: &Exit, message: Option<String>, now: Timestamp) {
        let State::Running(running) = &self.state else { return };
        let reason = match exit {
            Exit { out_of_memory: true, .. } => "OOMKilled",
            Exit { code: 0, .. } => "Completed",
            _ => "Error",
        };
        self.state = State::Ended(Ended {
            id: Some(running.id.clone()),
            exit_code: exit.code,
            signal: exit.signal,
            reason,
            message: message.filter(|message| !message.is_empty()),
            started_at: Timestamp::try_from(exit.started_at).ok().or(Some(running.started_at)),
            finished_at: Timestamp::try_from(exit.finished_at).unwrap_or(now),
            restart: running.stop.as_ref().is_some_and(|stop| stop.restart),
        });
    }

    /// Restarts a container that has ended, after the back-off.
    fn after_end(&mut self, around: Surroundings<'_>, out: &mut Output) {
        let (spec, now) = (around.spec, around.now);
        let State::Ended(ended) = &self.state else { return };
        if !ended.restart && !around.restart.applies(ended.exit_code) {
            return;
        }
        let ran_long = |restarted_at| ended.finished_at.duration_since(restarted_at) > RESET_AFTER;
        if self.restarted_at.is_some_and(ran_long) {
            self.crashes = 0;
        }
        let retry_at = ended.finished_at.checked_add(self.crash_back_off()).unwrap_or(Timestamp::MAX);
        if retry_at > now {
            if ended.shows_start_error(now) {
                out.wake(ended.finished_at.checked_add(ERROR_SHOWN).unwrap_or(now));
            }
            if !self.backed_off {
                self.backed_off = true;
                let text =
                    format!("Back-off restarting failed container {} in pod {}", spec.name, around.pod);
                out.event(EventType::Warning, "BackOff", text);
            }
            return out.wake(retry_at);
        }
        let ended = ended.clone();
        self.put_away(ended, out);
        self.crashes = self.crashes.saturating_add(1);
        self.restarted_at = Some(now);
        self.begin(around, out);
    }

    /// Remembers an end as the last end, before the next start.
    fn put_away(&mut self, ended: Ended, out: &mut Output) {
        if let Some(id) = &ended.id {
            out.actions.push(Action::Forget { id: id.clone() });
        }
        self.last = Some(ended);
        self.restarts = self.restarts.saturating_add(1);
    }

    /// Returns the pause before the next restart: none after the first end, then 10 s, doubled up to 5 minutes.
    pub(crate) fn crash_back_off(&self) -> Duration {
        self.crashes.checked_sub(1).map_or(Duration::ZERO, doubled)
    }
}

impl Waiting {
    fn back_off_pull(&mut self, spec: &ContainerSpec, out: &mut Output) {
        let image = image_of(spec);
        out.event(EventType::Normal, "BackOff", format!("Back-off pulling image {image:?}"));
        out.event(EventType::Warning, "Failed", "Error: ImagePullBackOff".to_owned());
        self.reason = "ImagePullBackOff";
        self.message = format!("Back-off pulling image {image:?}: ErrImagePull: {}", self.message);
    }
}

impl Ended {
    /// Returns whether the failure to start is shown, before the back-off is shown.
    pub(super) fn shows_start_error(&self, now: Timestamp) -> bool {
        let until = self.finished_at.checked_add(ERROR_SHOWN).unwrap_or(now);
        self.reason == START_ERROR_REASON && now < until
    }

    /// Returns the end of a container that an earlier kubelet has left. A process that was running cannot be
    /// found.
    pub(crate) fn adopted(terminated: Option<&ContainerStateTerminated>, now: Timestamp) -> Self {
        if let Some(known) = terminated {
            return Self {
                id: None,
                exit_code: known.exit_code,
                signal: known.signal,
                reason: if known.exit_code == 0 { "Completed" } else { "Error" },
                message: known.message.clone(),
                started_at: known.started_at.as_ref().map(|time| time.0),
                finished_at: known.finished_at.as_ref().map_or(now, |time| time.0),
                restart: false,
            };
        }
        Self {
            id: None,
            exit_code: 137,
            signal: None,
            reason: "ContainerStatusUnknown",
            message: Some("The container could not be located when the pod was terminated".to_owned()),
            started_at: None,
            finished_at: now,
            restart: true,
        }
    }
}

/// Returns the reference of a container's image.
pub(crate) fn image_of(spec: &ContainerSpec) -> String {
    spec.image.clone().unwrap_or_default()
}

/// Returns 10 s, doubled `times` times, at most 5 minutes.
fn doubled(times: u32) -> Duration {
    BACK_OFF.saturating_mul(1_u32 << times.min(10)).min(MAX_BACK_OFF)
}

/// Writes a duration as Go does, in milliseconds or seconds.
fn go_duration(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1000 { format!("{millis}ms") } else { format!("{}s", millis as f64 / 1000.0) }
}
