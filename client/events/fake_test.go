package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fakeServer stores events and fails on demand.
type fakeServer struct {
	mu      sync.Mutex
	events  map[string]*corev1.Event // by namespace/name
	order   []string                 // names in the order of creation
	patches []string
	calls   int
	// fail is called before each call. applied reports whether the call takes effect before its answer is lost.
	fail func(call int) (applied bool, err error)
}

func newFakeServer() *fakeServer { return &fakeServer{events: map[string]*corev1.Event{}} }

func (s *fakeServer) Events(namespace string) eventClient {
	return &fakeEvents{server: s, namespace: namespace}
}

type fakeEvents struct {
	server    *fakeServer
	namespace string
}

var errConnectionRefused = errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")

func (e *fakeEvents) Create(ctx context.Context, event *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	s := e.server
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, err := s.call(ctx)
	if err != nil && !applied {
		return nil, err
	}
	key := e.namespace + "/" + event.Name
	if s.events[key] != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("events"), event.Name)
	}
	s.events[key] = event.DeepCopy()
	s.order = append(s.order, key)
	return event, err
}

func (e *fakeEvents) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions,
	_ ...string,
) (*corev1.Event, error) {
	s := e.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if applied, err := s.call(ctx); err != nil && !applied {
		return nil, err
	}
	if pt != types.StrategicMergePatchType {
		return nil, fmt.Errorf("patch type %s", pt)
	}
	event := s.events[e.namespace+"/"+name]
	if event == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("events"), name)
	}
	s.patches = append(s.patches, string(data))
	return event, json.Unmarshal(data, event)
}

func (s *fakeServer) call(ctx context.Context) (bool, error) {
	s.calls++
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if s.fail == nil {
		return true, nil
	}
	return s.fail(s.calls)
}

// list returns the stored events in the order of creation.
func (s *fakeServer) list() []*corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*corev1.Event
	for _, key := range s.order {
		if e := s.events[key]; e != nil {
			out = append(out, e.DeepCopy())
		}
	}
	return out
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name + "-uid"),
			ResourceVersion: "7",
		},
	}
}
