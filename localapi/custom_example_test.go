package localapi_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
)

// Backup is a custom resource, as a project has them under api/v1.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BackupSpec   `json:"spec,omitempty"`
	Status            BackupStatus `json:"status,omitempty"`
}

// BackupSpec is what is asked for.
type BackupSpec struct {
	Schedule string `json:"schedule,omitempty"`
	Keep     int    `json:"keep,omitempty"`
}

// BackupStatus is how it is.
type BackupStatus struct {
	Kept int `json:"kept,omitempty"`
}

// DeepCopyObject implements runtime.Object; controller-gen writes it.
func (b *Backup) DeepCopyObject() runtime.Object {
	c := *b
	b.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// backups is the group of the type, and addBackups adds it to a scheme.
var backups = schema.GroupVersion{Group: "example.com", Version: "v1"}

func addBackups(scheme *runtime.Scheme) { scheme.AddKnownTypes(backups, &Backup{}) }

// A test of a custom resource in its own Go type: with the definition that a cluster is given, and an object that is
// there before the controller is.
func ExampleNewTestWith_customResource() {
	t := &failer{} // in a test: its t
	ctx := context.Background()

	scheme := runtime.NewScheme()
	addBackups(scheme)
	definitions, err := manifest.ReadFiles([]string{"testdata/backups.yaml"}, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	nightly := &Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"},
		Spec:       BackupSpec{Schedule: "@daily"},
	}
	server := localapi.NewTestWith(t, localapi.Options{Scheme: scheme}, nightly, definitions[0])

	c, err := client.New(server.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("%v", err)
	}
	var got Backup
	err = c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "nightly"}, &got)
	fmt.Println(got.Spec.Schedule, got.Spec.Keep, err)
	got.Spec.Schedule = "weekly"
	fmt.Println(c.Update(ctx, &got))
	for _, c := range t.cleanups {
		c()
	}
	// Output:
	// @daily 3 <nil>
	// Backup.example.com "nightly" is invalid: spec.schedule: Invalid value: "weekly": spec.schedule in body should match '^@(hourly|daily)$'
}
