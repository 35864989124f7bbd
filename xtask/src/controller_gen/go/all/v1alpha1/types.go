// Package v1alpha1 has an older version of the kind.
//
// +groupName=all.example.com
// +versionName=v1alpha1
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Everything is a kind with all markers.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=everythings,singular=everything,shortName=ev,categories=all,scope=Cluster
// +kubebuilder:unservedversion
type Everything struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EverythingSpec `json:"spec"`
}

// The desired state.
type EverythingSpec struct {
	Number int32 `json:"number"`
}
