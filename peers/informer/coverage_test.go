package informer

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/clientgo"
)

// healthy is what informers of ours have beyond client-go's interface.
type healthy interface {
	Health() informer.Health
	Stats() informer.Stats
}

var _ = clientgo.NewStore // Its interfaces are the ones below.

// TestSuiteTouchesEveryMethod of the interfaces that it is about.
func TestSuiteTouchesEveryMethod(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	var suite strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		suite.Write(text)
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[cache.SharedIndexInformer](),
		reflect.TypeFor[cache.Indexer](),
		reflect.TypeFor[cache.TransactionStore](),
		reflect.TypeFor[cache.Controller](),
		reflect.TypeFor[cache.ResourceEventHandlerRegistration](),
		reflect.TypeFor[cache.DoneChecker](),
		reflect.TypeFor[cache.TypedSharedIndexInformer[*corev1.Pod]](),
	} {
		for i := range of.NumMethod() {
			if name := of.Method(i).Name; !strings.Contains(suite.String(), "."+name+"(") {
				t.Errorf("%s.%s is not touched", of, name)
			}
		}
	}
}
