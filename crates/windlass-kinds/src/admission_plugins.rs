//! The admission plugins that can be switched on and off.

/// An admission plugin of kube-apiserver that can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionPlugin {
    /// Ingresses without a class get the default class.
    DefaultIngressClass,
    /// Claims without a storage class get the default class.
    DefaultStorageClass,
    /// Pods tolerate nodes that are not ready for five minutes.
    DefaultTolerationSeconds,
    /// Pods and claims follow the LimitRanges of their namespace.
    LimitRanger,
    /// Bound claims grow only if the storage class allows growth.
    PersistentVolumeClaimResize,
    /// Pods get the zone and the region of their node as labels.
    PodTopologyLabels,
    /// Pods get the priority of their PriorityClass.
    Priority,
    /// Writes fit into the ResourceQuotas of their namespace.
    ResourceQuota,
    /// Pods get the overhead, the node selector and the tolerations of their RuntimeClass.
    RuntimeClass,
    /// Pods have a service account, and the token is mounted. A pod without a service account is refused.
    ServiceAccount,
    /// Volumes, claims and volume attributes classes get a finalizer.
    StorageObjectInUseProtection,
    /// New nodes are not ready: no pod is scheduled to a new node.
    TaintNodesByCondition,
}

impl AdmissionPlugin {
    const ALL: [(Self, &str); 12] = [
        (Self::DefaultIngressClass, "DefaultIngressClass"),
        (Self::DefaultStorageClass, "DefaultStorageClass"),
        (Self::DefaultTolerationSeconds, "DefaultTolerationSeconds"),
        (Self::LimitRanger, "LimitRanger"),
        (Self::PersistentVolumeClaimResize, "PersistentVolumeClaimResize"),
        (Self::PodTopologyLabels, "PodTopologyLabels"),
        (Self::Priority, "Priority"),
        (Self::ResourceQuota, "ResourceQuota"),
        (Self::RuntimeClass, "RuntimeClass"),
        (Self::ServiceAccount, "ServiceAccount"),
        (Self::StorageObjectInUseProtection, "StorageObjectInUseProtection"),
        (Self::TaintNodesByCondition, "TaintNodesByCondition"),
    ];

    /// Returns the plugin that kube-apiserver's flags call `name`; `None` if it cannot be switched here.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(plugin, _)| *plugin)
    }

    fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// The plugins of a server.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionPlugins(u16);

impl Default for AdmissionPlugins {
    /// Returns all plugins except `ServiceAccount`: without a controller that creates service accounts, no
    /// pod would be admitted.
    fn default() -> Self {
        Self(u16::MAX).with(AdmissionPlugin::ServiceAccount, false)
    }
}

impl AdmissionPlugins {
    /// Switches a plugin on or off.
    pub fn with(self, plugin: AdmissionPlugin, enabled: bool) -> Self {
        Self(if enabled { self.0 | plugin.bit() } else { self.0 & !plugin.bit() })
    }

    /// Returns whether a plugin runs.
    pub fn has(self, plugin: AdmissionPlugin) -> bool {
        self.0 & plugin.bit() != 0
    }
}
