package cel_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// world is a server that evaluates expressions, and a client of it.
type world struct {
	*localapi.Test
	dynamic.Interface
	t        *testing.T
	warnings *warnings
}

// warnings collects the warnings that a client gets.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.list
	w.list = nil
	return taken
}

func newWorld(t *testing.T, o localapi.Options) *world {
	t.Helper()
	w := &world{Test: localapi.NewTestWith(t, o), t: t, warnings: &warnings{}}
	config := rest.CopyConfig(w.RESTConfig())
	config.WarningHandler = w.warnings
	var err error
	if w.Interface, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) read(text string) *unstructured.Unstructured {
	w.t.Helper()
	u, err := read(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// define creates a definition of the type example.com/v1 Room with the given schema of its spec.
func (w *world) define(spec string) error {
	w.t.Helper()
	before, _, _ := strings.Cut(roomsYAML, "          spec:\n")
	definition := w.read(before + "          spec: " + spec)
	_, err := w.Resource(definitions).Create(w.t.Context(), definition, metav1.CreateOptions{})
	return err
}

func (w *world) create(name, spec string) error {
	w.t.Helper()
	room := w.read(fmt.Sprintf("{apiVersion: example.com/v1, kind: Room, metadata: {name: %s}, spec: %s}", name, spec))
	_, err := w.Resource(rooms).Create(w.t.Context(), room, metav1.CreateOptions{})
	return err
}

func (w *world) patch(name, patch string) error {
	w.t.Helper()
	_, err := w.Resource(rooms).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// TestBubble: neither the libraries nor the package start goroutines, and rules follow the bubble's clock.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, localapi.Options{CEL: cel.New()})
		if err := w.define("{type: object, x-kubernetes-validations: [{rule: self.a > 1}], " +
			"properties: {a: {type: integer}}}"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := w.create("one", "{a: 1}"); !apierrors.IsInvalid(err) {
			t.Errorf("create: %v, want that it is invalid", err)
		}
		if err := w.create("two", "{a: 2}"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("rules waited %s", took)
		}
		synctest.Wait()
	})
}

// TestWithout: a server without the package stores rules, says so, and accepts what they forbid.
func TestWithout(t *testing.T) {
	w := newWorld(t, localapi.Options{})
	if _, err := w.Resource(definitions).Create(t.Context(), w.read(roomsYAML), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.warnings.take(); len(got) != 1 || !strings.Contains(got[0], "(2) are not enforced") {
		t.Errorf("warnings: %q", got)
	}
	if err := w.create("blue", "{guests: 3}"); err != nil {
		t.Error(err)
	}
}

// TestTolerated: what violates a new rule and does not change is tolerated, with a warning.
func TestTolerated(t *testing.T) {
	w := newWorld(t, localapi.Options{CEL: cel.New()})
	if err := w.define("{type: object, properties: {a: {type: integer}, b: {type: integer}}}"); err != nil {
		t.Fatal(err)
	}
	if err := w.create("blue", "{a: 1}"); err != nil {
		t.Fatal(err)
	}
	const rule = `[{"op": "add", "value": [{"rule": "self > 1"}],
		"path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/x-kubernetes-validations"}]`
	if _, err := w.Resource(definitions).Patch(t.Context(), "rooms.example.com", types.JSONPatchType, []byte(rule),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.warnings.take()
	if err := w.patch("blue", `{"spec": {"b": 1}}`); err != nil {
		t.Error(err)
	}
	if got := w.warnings.take(); len(got) != 1 || !strings.Contains(got[0], "spec.a: Invalid value: 1: failed rule") {
		t.Errorf("warnings: %q", got)
	}
	if err := w.patch("blue", `{"spec": {"a": 0}}`); !apierrors.IsInvalid(err) {
		t.Errorf("a change of the field: %v", err)
	}
}

// TestReopened: a server that opens a storage evaluates the rules in it, even such as no new definition may have.
func TestReopened(t *testing.T) {
	store := memory.New()
	defer store.Close()
	const costly = "{type: object, x-kubernetes-validations: [{rule: 'self.l.all(a, self.l.all(b, a == b))'}], " +
		"properties: {l: {type: array, items: {type: string}}}}"
	w := newWorld(t, localapi.Options{Storage: store})
	if err := w.define(costly); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, localapi.Options{Storage: store, CEL: cel.New()})
	if err := w.create("blue", "{l: [a, b]}"); !apierrors.IsInvalid(err) {
		t.Errorf("create: %v", err)
	}
	if err := w.create("blue", "{l: [a, a]}"); err != nil {
		t.Error(err)
	}
	_, err := w.Resource(definitions).Patch(t.Context(), "rooms.example.com", types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "rule cost total") ||
		strings.Contains(err.Error(), "estimated rule cost exceeds") {
		t.Errorf("patch of the definition: %v, want an error about the total cost alone", err)
	}
}

// TestConcurrent: many writers use the compiled rules of one definition, while it is replaced.
func TestConcurrent(t *testing.T) {
	w := newWorld(t, localapi.Options{CEL: cel.New()})
	if err := w.define("{type: object, x-kubernetes-validations: [{rule: self.a > 1, message: low}], " +
		"properties: {a: {type: integer}}}"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 20 {
				err := w.create(fmt.Sprintf("room-%d-%d", i, j), fmt.Sprintf("{a: %d}", 1+j%2))
				if invalid := apierrors.IsInvalid(err); invalid != (j%2 == 0) || err != nil && !invalid {
					t.Errorf("create %d: %v", j, err)
				}
			}
		})
	}
	for i := range 5 {
		patch := fmt.Sprintf(`[{"op": "replace", "value": "low %d",
			"path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/message"}]`, i)
		if _, err := w.Resource(definitions).Patch(context.Background(), "rooms.example.com", types.JSONPatchType,
			[]byte(patch), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}
