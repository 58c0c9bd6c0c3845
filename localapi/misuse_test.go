package localapi_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/localapi"
)

// failed is a test that remembers why it failed.
type failed struct {
	*testing.T
	why error
}

func (f *failed) Fatalf(format string, args ...any) { f.why = fmt.Errorf(format, args...) }

func TestMisuse(t *testing.T) {
	with := func(objects ...runtime.Object) func() error {
		return func() error {
			f := &failed{T: t}
			localapi.NewTest(f, objects...)
			return f.why
		}
	}
	var nobody *corev1.Pod
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("NewTest without a test",
			misusetest.Constructs(func() *localapi.Test { return localapi.NewTest(nil) }),
			"outside of tests, New makes a server"),
		misusetest.Of("NewTest without a name", with(&corev1.Pod{}),
			"seed API server: seed pods: an object has no name"),
		misusetest.Of("NewTest with nil", with(nil), "seed API server: object 1 of 1 is nil"),
		misusetest.Of("NewTest with a typed nil", with(nobody), "object 1 of 1 is a nil *v1.Pod"),
		misusetest.Of("NewTest with a list", with(&corev1.PodList{}), "PodList"),
	})
}
