//! The names of the built-in kinds that the server refers to.

/// APIService.
pub const API_SERVICE: &str = "APIService";
/// Binding.
pub const BINDING: &str = "Binding";
/// ComponentStatus.
pub const COMPONENT_STATUS: &str = "ComponentStatus";
/// Event.
pub const EVENT: &str = "Event";
/// Eviction.
pub const EVICTION: &str = "Eviction";
/// FlowSchema.
pub const FLOW_SCHEMA: &str = "FlowSchema";
/// IPAddress.
pub const IP_ADDRESS: &str = "IPAddress";
/// LocalSubjectAccessReview.
pub const LOCAL_SUBJECT_ACCESS_REVIEW: &str = "LocalSubjectAccessReview";
/// MutatingAdmissionPolicy.
pub const MUTATING_ADMISSION_POLICY: &str = "MutatingAdmissionPolicy";
/// Namespace.
pub const NAMESPACE: &str = "Namespace";
/// Node.
pub const NODE: &str = "Node";
/// PersistentVolumeClaim.
pub const PERSISTENT_VOLUME_CLAIM: &str = "PersistentVolumeClaim";
/// Pod.
pub const POD: &str = "Pod";
/// Scale.
pub const SCALE: &str = "Scale";
/// Secret.
pub const SECRET: &str = "Secret";
/// SelfSubjectAccessReview.
pub const SELF_SUBJECT_ACCESS_REVIEW: &str = "SelfSubjectAccessReview";
/// SelfSubjectReview.
pub const SELF_SUBJECT_REVIEW: &str = "SelfSubjectReview";
/// SelfSubjectRulesReview.
pub const SELF_SUBJECT_RULES_REVIEW: &str = "SelfSubjectRulesReview";
/// ServiceAccount.
pub const SERVICE_ACCOUNT: &str = "ServiceAccount";
/// SubjectAccessReview.
pub const SUBJECT_ACCESS_REVIEW: &str = "SubjectAccessReview";
/// TokenRequest.
pub const TOKEN_REQUEST: &str = "TokenRequest";
/// TokenReview.
pub const TOKEN_REVIEW: &str = "TokenReview";
/// ValidatingAdmissionPolicy.
pub const VALIDATING_ADMISSION_POLICY: &str = "ValidatingAdmissionPolicy";
