// Package ippool has the kind of an article, written anew: pools of addresses.
//
// +groupName=tsi.tiduyun.com
// +versionName=v1
package ippool

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IPPool is a pool of addresses.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
type IPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec IPPoolSpec `json:"spec"`
	// +optional
	Status *IPPoolStatus `json:"status,omitempty"`
}

// The desired state.
type IPPoolSpec struct {
	// The addresses.
	Cidr string `json:"cidr"`
	// Addresses that are never handed out.
	//
	// +optional
	Reserved []string `json:"reserved,omitempty"`
}

// The observed state.
type IPPoolStatus struct {
	// The allocated addresses, with the owner of each address.
	//
	// +optional
	Allocated map[string]string `json:"allocated,omitempty"`
}
