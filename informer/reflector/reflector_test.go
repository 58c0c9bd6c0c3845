package reflector

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// TestListedNil: a nil object in a list is rejected, too.
func TestListedNil(t *testing.T) {
	type object = *metav1.PartialObjectMetadata
	lw := struct {
		listwatch.ListerWatcher[object]
	}{}
	r := New[object](lw, deltafifo.New[object](), Options[object]{})
	if _, err := r.keep(0, nil); !errors.Is(err, connection.ErrNil) {
		t.Errorf("in a list: %v", err)
	}
}
