package controllerruntime

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	peer "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// GetEventRecorderFor returns a recorder for a component. It records through Options.EventBroadcaster, or else through
// Flyball's sender.
func (m *Manager) GetEventRecorderFor(name string) record.EventRecorder {
	//lint:ignore SA1019 It may be set.
	if b := m.o.EventBroadcaster; b != nil {
		m.series.sinkOf(b)
		return b.NewRecorder(m.o.Cache.Scheme, corev1.EventSource{Component: name})
	}
	return m.core.GetEventRecorderFor(name)
}

// GetEventRecorder returns a recorder of the newer events API, in which client-go combines repetitions into series.
func (m *Manager) GetEventRecorder(name string) recorder.EventRecorder {
	return &seriesRecorder{series: m.series, name: name}
}

// series sends the events of the newer API through client-go's broadcaster. The broadcaster starts goroutines, so it is
// made for the first event.
type series struct {
	client kubernetes.Interface
	scheme *runtime.Scheme
	sunk   sync.Once

	mu          sync.Mutex
	broadcaster peer.EventBroadcaster // nil before the first event
	stop        context.CancelFunc    // of its requests
	// ended means that nothing is recorded any more; closed, that nothing is sent any more.
	ended, closed bool
	// sending counts the requests on their way. Invariant: none is added once closed is set.
	sending sync.WaitGroup
}

func newSeries(config *rest.Config, scheme *runtime.Scheme) (*series, error) {
	client, err := kubernetes.NewForConfig(config)
	return &series{client: client, scheme: scheme}, err
}

// sinkOf makes a broadcaster of the caller's send its events. The caller stops it.
func (s *series) sinkOf(b record.EventBroadcaster) {
	s.sunk.Do(func() {
		b.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	})
}

// running returns the broadcaster, or nil after the end.
func (s *series) running() peer.EventBroadcaster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broadcaster == nil && !s.ended {
		s.broadcaster = peer.NewBroadcaster(&sink{&peer.EventSinkImpl{Interface: s.client.EventsV1()}, s})
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		if err := s.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			klog.Background().Error(err, "Events are not recorded")
		}
	}
	if s.ended {
		return nil
	}
	return s.broadcaster
}

const (
	// settles is how long the broadcaster may take to pass an event on. It offers no way to ask whether it has.
	settles = 100 * time.Millisecond
	// eventsTimeout is how long end waits for requests on their way.
	eventsTimeout = 5 * time.Second
)

// end sends the recorded events and stops the broadcaster. Nothing is recorded after it.
func (s *series) end() {
	s.mu.Lock()
	s.ended = true
	b := s.broadcaster
	s.mu.Unlock()
	if b == nil {
		return
	}
	time.Sleep(settles)
	b.Shutdown()
	time.Sleep(settles)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	enough := time.AfterFunc(eventsTimeout, s.stop)
	s.sending.Wait()
	enough.Stop()
	s.stop()
}

// begin counts a request. It returns false after the end.
func (s *series) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sending.Add(1)
	}
	return !s.closed
}

// sink counts the requests on their way.
type sink struct {
	*peer.EventSinkImpl
	of *series
}

func (s *sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if !s.of.begin() {
		return e, nil
	}
	defer s.of.sending.Done()
	return s.EventSinkImpl.Create(ctx, e)
}

func (s *sink) Patch(ctx context.Context, e *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	if !s.of.begin() {
		return e, nil
	}
	defer s.of.sending.Done()
	return s.EventSinkImpl.Patch(ctx, e, patch)
}

// seriesRecorder is the recorder of one component.
type seriesRecorder struct {
	series *series
	name   string
}

var _ recorder.EventRecorder = (*seriesRecorder)(nil)

func (r *seriesRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string,
	args ...any,
) {
	if b := r.series.running(); b != nil {
		b.NewRecorder(r.series.scheme, r.name).Eventf(regarding, related, eventType, reason, action, note, args...)
	}
}

func (r *seriesRecorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string,
	eventType, reason, action, note string, args ...any,
) {
	if b := r.series.running(); b != nil {
		b.NewRecorder(r.series.scheme, r.name).(peer.AnnotatedEventRecorder).AnnotatedEventf(regarding, related,
			annotations, eventType, reason, action, note, args...) //nolint:forcetypeassert // client-go's has it.
	}
}
