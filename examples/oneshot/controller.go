package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"

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
