// Package custompod has the kind of an article, written anew: an operator that keeps pods.
//
// +groupName=zhhnzw.mock.com
// +versionName=v1
package custompod

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CustomPod keeps pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type CustomPod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CustomPodSpec `json:"spec"`
	// +optional
	Status *CustomPodStatus `json:"status,omitempty"`
}

// The desired state.
type CustomPodSpec struct {
	// How many pods to keep.
	Replicas int `json:"replicas"`
}

// The observed state.
type CustomPodStatus struct {
	// How many pods there are.
	Replicas int `json:"replicas"`
	// Their names.
	PodNames []string `json:"podNames"`
}
