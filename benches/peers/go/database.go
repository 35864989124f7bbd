package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var databases = schema.GroupVersion{Group: "db.example.com", Version: "v1"}

// Database is the custom resource, declared as in an operator.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DatabaseSpec   `json:"spec,omitempty"`
	Status            DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is the desired state.
type DatabaseSpec struct {
	Replicas int32           `json:"replicas"`
	Version  string          `json:"version"`
	Image    string          `json:"image"`
	Storage  DatabaseStorage `json:"storage"`
	Backup   DatabaseBackup  `json:"backup"`
}

// DatabaseStorage is the storage of the data.
type DatabaseStorage struct {
	Size  string `json:"size"`
	Class string `json:"class"`
}

// DatabaseBackup is the schedule of backups.
type DatabaseBackup struct {
	Schedule      string `json:"schedule"`
	RetentionDays int32  `json:"retentionDays"`
}

// DatabaseStatus is the observed state.
type DatabaseStatus struct {
	Phase              string             `json:"phase"`
	ObservedGeneration int64              `json:"observedGeneration"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// DatabaseList is a list of databases.
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
