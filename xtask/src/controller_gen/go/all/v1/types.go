// Package v1 has a kind with all markers. It is the twin of crates/windlass-codegen/examples/markers/everything.rs.
//
// +groupName=all.example.com
// +versionName=v1
package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Everything is a kind with all markers.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=everythings,singular=everything,shortName=ev,categories=all,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.number,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Number,type=integer,JSONPath=.spec.number,description="the number",format=int32,priority=1
// +kubebuilder:selectablefield:JSONPath=.spec.text
// +kubebuilder:storageversion
// +kubebuilder:deprecatedversion:warning="use v2"
// +kubebuilder:metadata:annotations="team=web"
// +kubebuilder:metadata:labels="tier=front"
type Everything struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EverythingSpec `json:"spec"`
	// +optional
	Status *EverythingStatus `json:"status,omitempty"`
}

// EverythingList is a list.
//
// +kubebuilder:object:root=true
type EverythingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Everything `json:"items"`
}

// The desired state.
//
// +kubebuilder:validation:AtLeastOneOf=text;list
// +kubebuilder:validation:AtMostOneOf=first;second
// +kubebuilder:validation:ExactlyOneOf=left;rightSide
// +kubebuilder:validation:XValidation:rule="self.number <= self.wholeNumber",message="number is above wholeNumber",messageExpression="'number is above the whole number'",reason=FieldValueForbidden,fieldPath=".number"
// +kubebuilder:externalDocs:url="https://example.com/spec",description="the spec"
// +kubebuilder:title="Spec"
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=60
type EverythingSpec struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:validation:MultipleOf=5
	// +k8s:immutable
	Number int32 `json:"number"`

	WholeNumber int64 `json:"wholeNumber"`

	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	// +kubebuilder:validation:Format=hostname
	// +kubebuilder:title="Text"
	// +kubebuilder:example="web"
	// +kubebuilder:externalDocs:url="https://example.com/text"
	Text *string `json:"text,omitempty"`

	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=9
	// +kubebuilder:validation:items:Pattern=`^a`
	// +kubebuilder:validation:items:Format=hostname
	// +kubebuilder:validation:items:Enum=a;ab
	// +kubebuilder:validation:items:XValidation:rule="self != 'b'",message="not b"
	List []string `json:"list,omitempty"`

	// +optional
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9
	// +kubebuilder:validation:items:ExclusiveMaximum=true
	// +kubebuilder:validation:items:MultipleOf=3
	Numbers []int32 `json:"numbers,omitempty"`

	// +optional
	// +kubebuilder:validation:items:MinItems=1
	// +kubebuilder:validation:items:MaxItems=2
	Lists [][]string `json:"lists,omitempty"`

	// +optional
	// +kubebuilder:validation:items:MinProperties=1
	// +kubebuilder:validation:items:MaxProperties=2
	Maps []map[string]string `json:"maps,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	Ports []Port `json:"ports,omitempty"`

	// +optional
	// +listType=atomic
	Atoms []string `json:"atoms,omitempty"`

	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=3
	Map map[string]string `json:"map,omitempty"`

	// +optional
	// +structType=atomic
	Port *Port `json:"port,omitempty"`

	// +optional
	// +kubebuilder:validation:Enum=red;green
	Colour *string `json:"colour,omitempty"`

	// +optional
	Mode *Mode `json:"mode,omitempty"`

	// +optional
	// +kubebuilder:default=3
	Defaulted int32 `json:"defaulted"`

	// +optional
	// +kubebuilder:default={{name: "web", port: 80}}
	DefaultPorts []Port `json:"defaultPorts,omitempty"`

	// +optional
	// +nullable
	Nothing *string `json:"nothing,omitempty"`

	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Open *Port `json:"open,omitempty"`

	// +optional
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Template *runtime.RawExtension `json:"template,omitempty"`

	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Anything *Port `json:"anything,omitempty"`

	// +optional
	// +kubebuilder:validation:XIntOrString
	Either *intstr.IntOrString `json:"either,omitempty"`

	// +optional
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`

	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// +optional
	Typed *Stamp `json:"typed,omitempty"`

	// +optional
	Silent *string `json:"silent,omitempty"`

	// +optional
	// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || self >= oldSelf.value()",optionalOldSelf=true
	Ruled *int32 `json:"ruled,omitempty"`

	// +optional
	First *string `json:"first,omitempty"`

	// +optional
	Second *string `json:"second,omitempty"`

	// +optional
	Left *string `json:"left,omitempty"`

	// +optional
	RightSide *string `json:"rightSide,omitempty"`
}

// A stamp.
//
// +kubebuilder:validation:Type=string
type Stamp struct{}

// A port.
type Port struct {
	Name string `json:"name"`
	Port int32  `json:"port"`
}

// A mode.
//
// +kubebuilder:validation:Enum=Fast;Slow
type Mode string

// The observed state.
type EverythingStatus struct {
	Replicas int32 `json:"replicas"`
	// +optional
	Selector *string `json:"selector,omitempty"`
}
