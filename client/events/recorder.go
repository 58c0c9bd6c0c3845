package events

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// Recorder records events about objects, for people to read. It has the methods of client-go's record.EventRecorder and
// can take its place.
//
// Concurrency: the methods may be called from any goroutine. They hold no lock while they format, and do not wait for
// the network.
type Recorder interface {
	// Event records an event about obj. eventType is "Normal" or "Warning". reason is a short CamelCase word for
	// programs, and message a sentence for people. obj is not used after Event returns.
	Event(obj runtime.Object, eventType, reason, message string)
	// Eventf is Event with a formatted message.
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
	// AnnotatedEventf is Eventf for an event with annotations. A repetition is added to the first event, which keeps
	// its annotations. An event that combines similar ones has no annotations.
	AnnotatedEventf(
		obj runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any,
	)
}

// componentRecorder is the Recorder of one component.
type componentRecorder struct {
	broadcaster *Broadcaster
	component   string
}

// occurrence has the arguments of a recorder's methods. Only an [EventRecorder] sets related and action.
type occurrence struct {
	regarding, related                 runtime.Object
	annotations                        map[string]string
	eventType, reason, action, message string
}

// Event implements [Recorder].
func (r *componentRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	r.record(occurrence{regarding: obj, eventType: eventType, reason: reason, message: message})
}

// Eventf implements [Recorder].
func (r *componentRecorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.AnnotatedEventf(obj, nil, eventType, reason, format, args...)
}

// AnnotatedEventf implements [Recorder].
func (r *componentRecorder) AnnotatedEventf(
	obj runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any,
) {
	r.record(occurrence{
		regarding: obj, annotations: annotations, eventType: eventType, reason: reason,
		message: fmt.Sprintf(format, args...),
	})
}

func (r *componentRecorder) record(o occurrence) {
	event, err := r.newEvent(o)
	r.broadcaster.offer(event, err)
}

// offer queues an event. If err is not nil, the caller has made a mistake, which offer logs: a recorder has neither a
// result nor a context with a logger.
func (b *Broadcaster) offer(event *corev1.Event, err error) {
	if err != nil {
		b.queue.countInvalid()
		klog.Background().Error(err, "Event not recorded")
		return
	}
	b.queue.offer(event)
}

// newEvent returns the event as the server would get it if it is not a repetition.
func (r *componentRecorder) newEvent(o occurrence) (*corev1.Event, error) {
	fail := func(err error) (*corev1.Event, error) {
		return nil, fmt.Errorf("event %q of %s: %w", o.reason, r.component, err)
	}
	if o.eventType != corev1.EventTypeNormal && o.eventType != corev1.EventTypeWarning {
		return fail(fmt.Errorf("the type %q is neither %q nor %q", o.eventType, corev1.EventTypeNormal,
			corev1.EventTypeWarning))
	}
	if misuse.IsNil(o.regarding) {
		return fail(errors.New("the object is nil"))
	}
	ref, err := reference.GetReference(r.broadcaster.options.Scheme, o.regarding)
	if err != nil {
		return fail(fmt.Errorf("reference to %T: %w", o.regarding, err))
	}
	now := time.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			// An event has a namespace even if its object has none.
			Namespace:   cmp.Or(ref.Namespace, metav1.NamespaceDefault),
			Name:        r.broadcaster.names.next(ref.Name, now),
			Annotations: maps.Clone(o.annotations),
		},
		InvolvedObject:      *ref,
		Reason:              o.reason,
		Message:             o.message,
		Type:                o.eventType,
		Count:               1,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: r.component},
		ReportingController: r.component,
	}, nil
}

// nameSource generates event names: the object's name, a dot, and the time in hexadecimal nanoseconds.
//
// Invariant: a source uses no number twice. Otherwise two events about one object in one tick of the clock, which may
// be coarse or stand still in a testing/synctest bubble, would have the same name, and the second would be lost.
//
// Source: client-go v0.37.2 tools/record/util.GenerateEventName.
type nameSource struct {
	mu   sync.Mutex
	last int64 // guarded by mu
}

func (s *nameSource) next(object string, now time.Time) string {
	s.mu.Lock()
	s.last = max(s.last+1, now.UnixNano())
	stamp := s.last
	s.mu.Unlock()

	name := fmt.Sprintf("%s.%x", object, stamp)
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return string(uuid.NewUUID())
	}
	return name
}
