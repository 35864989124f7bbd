//! Scripts of manifests, scalings, failures and deletions, played on the embedded cluster and compared with recordings of
//! kube-controller-manager: object for object and event for event.
//!
//! Each script plays the kubelet, by writing the status of pods. With `WINDLASS_TEST_KUBECONFIG`, a script
//! runs on that server and the server's controller manager instead; with `WINDLASS_TEST_RECORD` as well, the
//! recording is written anew.

mod autoscalers;
mod budgets;
mod certificate;
mod certificates;
mod cron_jobs;
mod daemon_sets;
mod deployments;
mod endpoints;
mod jobs;
mod metrics_server;
mod mirrors;
mod normal;
mod pod_gc;
mod recording;
mod replicas;
mod scheduling;
mod stage;
mod stateful_sets;
