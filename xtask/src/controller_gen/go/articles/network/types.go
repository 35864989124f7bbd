// Package network has the kind of an article, written anew: networks.
//
// +groupName=samplecrd.k8s.io
// +versionName=v1
package network

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Network is a network.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved"
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NetworkSpec `json:"spec"`
}

// The desired state.
type NetworkSpec struct {
	// The addresses.
	Cidr string `json:"cidr"`
	// The address of the gateway.
	Gateway string `json:"gateway"`
}
