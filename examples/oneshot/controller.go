package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Reconciler computes digests of folders.
type Reconciler struct{ client.Client }

// SetupWithManager builds the controller.
func (r *Reconciler) SetupWithManager(mgr *ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Folder{}).Complete(r)
}

// Reconcile does the next step of a round. Its write is an event that triggers the step after it. A process that is
// killed between two steps resumes there the next time.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var folder Folder
	if err := r.Get(ctx, request.NamespacedName, &folder); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if folder.Status.Step == Compared && folder.Status.Round == folder.Spec.Round {
		return ctrl.Result{}, nil
	}
	next, err := step(folder)
	if err != nil {
		return ctrl.Result{}, err
	}
	folder.Status = next
	return ctrl.Result{}, r.Status().Update(ctx, &folder)
}

// step returns the status after the next step.
func step(f Folder) (FolderStatus, error) {
	s := f.Status
	switch {
	case s.Round != f.Spec.Round || s.Step == "":
		files, err := list(f.Spec.Path)
		return FolderStatus{Step: Listed, Round: f.Spec.Round, Files: len(files), Previous: s.Digest}, err
	case s.Step == Listed:
		digest, err := hash(f.Spec.Path)
		s.Step, s.Digest = Hashed, digest
		return s, err
	default:
		s.Step, s.Changed = Compared, s.Previous != "" && s.Previous != s.Digest
		return s, nil
	}
}

// list returns the regular files below path, sorted.
func list(path string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(path), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

// hash returns a digest of the names and contents of files.
func hash(path string) (string, error) {
	files, err := list(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range files {
		content, err := fs.ReadFile(os.DirFS(path), name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %x\n", name, sha256.Sum256(content))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:16], nil
}

// groupVersion is the group and version of Folder.
var groupVersion = schema.GroupVersion{Group: "examples.flyball.dev", Version: "v1"}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Path,type=string,JSONPath=.spec.path
// +kubebuilder:printcolumn:name=Files,type=integer,JSONPath=.status.files
// +kubebuilder:printcolumn:name=Step,type=string,JSONPath=.status.step

// Folder is a folder of this machine.
type Folder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FolderSpec   `json:"spec"`
	Status            FolderStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:generate=true

// FolderSpec names a folder, and counts how often its digest was asked for.
type FolderSpec struct {
	// Path is the absolute path of the folder.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
	// Round is how often a digest was asked for.
	Round int `json:"round,omitempty"`
}

// The steps of a round.
const (
	Listed   = "Listed"
	Hashed   = "Hashed"
	Compared = "Compared"
)

// +kubebuilder:object:generate=true

// FolderStatus records how far the round is, and its result.
type FolderStatus struct {
	// Step is the last step that was done.
	// +kubebuilder:validation:Enum=Listed;Hashed;Compared
	Step string `json:"step,omitempty"`
	// Round is the round that Step belongs to.
	Round int `json:"round,omitempty"`
	// Files is the number of files in the folder.
	Files int `json:"files,omitempty"`
	// Digest is the digest of this round, and Previous that of the round before.
	Digest   string `json:"digest,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Changed reports whether the two differ.
	Changed bool `json:"changed,omitempty"`
}

// +kubebuilder:object:root=true

// FolderList is a list of Folders.
type FolderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Folder `json:"items"`
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Folder{}, &FolderList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
