package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var databases = schema.GroupVersion{Group: "db.example.com", Version: "v1"}

// Database is the custom resource as an operator would declare it.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DatabaseSpec   `json:"spec,omitempty"`
	Status            DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is what is wanted.
type DatabaseSpec struct {
	Replicas int32           `json:"replicas"`
	Version  string          `json:"version"`
	Image    string          `json:"image"`
	Storage  DatabaseStorage `json:"storage"`
	Backup   DatabaseBackup  `json:"backup"`
}

// DatabaseStorage is where the data lie.
type DatabaseStorage struct {
	Size  string `json:"size"`
	Class string `json:"class"`
}

// DatabaseBackup is when they are copied.
type DatabaseBackup struct {
	Schedule      string `json:"schedule"`
	RetentionDays int32  `json:"retentionDays"`
}

// DatabaseStatus is what is there.
type DatabaseStatus struct {
	Phase              string             `json:"phase"`
	ObservedGeneration int64              `json:"observedGeneration"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// DatabaseList is a list of them.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}

// DeepCopyObject copies a database.
func (in *Database) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), in.Status.Conditions...)
	return &out
}

// DeepCopyObject copies a list.
func (in *DatabaseList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = append([]Database(nil), in.Items...)
	return &out
}
