// Package bar has the kind of an article, written anew: what kubebuilder scaffolds.
//
// +groupName=foo.abc.com
// +versionName=v1
package bar

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bar is the schema of an API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Bar struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec BarSpec `json:"spec"`
	// +optional
	Status *BarStatus `json:"status,omitempty"`
}

// The desired state.
type BarSpec struct {
	// An example field.
	//
	// +optional
	Foo *string `json:"foo,omitempty"`
}

// The observed state.
type BarStatus struct{}
