package events

import (
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
)

// Recorder records what happened to an object, for people to read. It has the methods of client-go's
// record.EventRecorder, so either can be used for the other.
//
// Concurrency: the methods may be called from any goroutine, hold no lock while they format, and never block on the
// network.
type Recorder interface {
	// Event records an event about obj. eventType is "Normal" or "Warning"; reason is a short CamelCase word for
	// machines to match; message is the sentence for people. obj is read before Event returns and not kept.
	Event(obj runtime.Object, eventType, reason, message string)
	// Eventf is Event with a message made of format and args.
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
	// AnnotatedEventf is Eventf with annotations of the event. Repetitions are added to the first event of their kind,
	// which keeps its annotations; an event that combines similar ones has none.
	AnnotatedEventf(
		obj runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any,
	)
}

// componentRecorder is the Recorder of one component.
type componentRecorder struct {
	broadcaster *Broadcaster
	component   string
}

// Event implements [Recorder].
func (r *componentRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	r.record(obj, nil, eventType, reason, message)
}

// Eventf implements [Recorder].
func (r *componentRecorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.record(obj, nil, eventType, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements [Recorder].
func (r *componentRecorder) AnnotatedEventf(
	obj runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any,
) {
	r.record(obj, maps.Clone(annotations), eventType, reason, fmt.Sprintf(format, args...))
}

func (r *componentRecorder) record(
	obj runtime.Object, annotations map[string]string, eventType, reason, message string,
) {
	event, err := r.newEvent(obj, eventType, reason, message)
	if err != nil {
		// A mistake in the caller's code: there is no context here and nobody to return it to.
		r.broadcaster.queue.countInvalid()
		klog.Background().Error(err, "Event not recorded", "controller", r.component, "reason", reason)
		return
	}
	event.Annotations = annotations
	r.broadcaster.queue.offer(event)
}

// newEvent builds the event as it would be created if it were the first of its kind.
func (r *componentRecorder) newEvent(obj runtime.Object, eventType, reason, message string) (*corev1.Event, error) {
	if eventType != corev1.EventTypeNormal && eventType != corev1.EventTypeWarning {
		return nil, fmt.Errorf("event type %q is neither %q nor %q", eventType, corev1.EventTypeNormal,
			corev1.EventTypeWarning)
	}
	ref, err := reference.GetReference(r.broadcaster.options.Scheme, obj)
	if err != nil {
		return nil, fmt.Errorf("reference to %T: %w", obj, err)
	}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // events are namespaced, also those about cluster-scoped objects
	}
	now := time.Now()
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: r.broadcaster.names.next(ref.Name, now)},
		InvolvedObject:      *ref,
		Reason:              reason,
		Message:             message,
		Type:                eventType,
		Count:               1,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: r.component},
		ReportingController: r.component,
	}, nil
}

// nameSource hands out event names: the object's name, a dot, and the time in hexadecimal nanoseconds.
//
// Invariant: no number is handed out twice by one source. Two events about one object in one tick of the clock (a
// coarse clock, or the frozen one of a testing/synctest bubble) would otherwise get one name, and the second would be
// lost.
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
