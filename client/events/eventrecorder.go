package events

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/reference"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// EventRecorder records events in the form of events.k8s.io: with an action and a second object. It has the methods of
// client-go's events.EventRecorder and events.AnnotatedEventRecorder and can take their place. A [Recorder] and an
// EventRecorder share one queue. The server shows the events of both in both APIs.
//
// Repetitions are counted in the series of the event. An event with another note is another event, as with a Recorder.
//
// Concurrency: as [Recorder].
type EventRecorder interface {
	// Eventf records an event about regarding. related is a second object, or nil. eventType is "Normal" or "Warning".
	// reason is a short CamelCase word for why something was done, and action one for what was done. Both are required
	// and have at most 128 bytes. note and args are formatted into the text for people; it is cut off after the 1,024
	// bytes that the server allows. The objects are not used after Eventf returns.
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
	// AnnotatedEventf is Eventf for an event with annotations, as in [Recorder].
	AnnotatedEventf(
		regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string,
		args ...any,
	)
}

// The server's limits on an event with an eventTime, in bytes.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/events.go.
const (
	maxShortText = 128
	maxNote      = 1024
)

// controllerRecorder is the EventRecorder of one controller.
type controllerRecorder struct {
	componentRecorder
	instance string
}

// EventRecorder returns the recorder of a controller for events with an action. The name of the controller must be a
// qualified name, like the key of a label: "website-controller" or "example.com/website-controller". The reporting
// instance of the events is that name with the name of the host.
func (b *Broadcaster) EventRecorder(controller string) EventRecorder {
	instance := controller
	if host, err := os.Hostname(); err == nil {
		instance += "-" + host
	}
	return &controllerRecorder{
		componentRecorder: componentRecorder{broadcaster: b, component: controller},
		instance:          truncated(instance, maxShortText),
	}
}

// Eventf implements [EventRecorder].
func (r *controllerRecorder) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	r.AnnotatedEventf(regarding, related, nil, eventType, reason, action, note, args...)
}

// AnnotatedEventf implements [EventRecorder].
func (r *controllerRecorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string,
	args ...any,
) {
	event, err := r.newEvent(occurrence{
		regarding: regarding, related: related, annotations: annotations, eventType: eventType, reason: reason,
		action: action, message: truncated(fmt.Sprintf(note, args...), maxNote),
	})
	r.broadcaster.offer(event, err)
}

// newEvent returns the event with a count, as the correlator needs it. Only events of an [EventRecorder] have an
// eventTime; wireForm turns their count into a series.
func (r *controllerRecorder) newEvent(o occurrence) (*corev1.Event, error) {
	event, err := r.componentRecorder.newEvent(o)
	if err != nil {
		return nil, err
	}
	if err := r.check(o); err != nil {
		return nil, fmt.Errorf("event %q of %s: %w", o.reason, r.component, err)
	}
	event.EventTime = metav1.NewMicroTime(event.FirstTimestamp.Time)
	event.Action, event.ReportingInstance = o.action, r.instance
	if !misuse.IsNil(o.related) {
		if event.Related, err = reference.GetReference(r.broadcaster.options.Scheme, o.related); err != nil {
			return nil, fmt.Errorf("event %q of %s: reference to related %T: %w", o.reason, r.component, o.related, err)
		}
	}
	return event, nil
}

// check returns an error if the server would refuse the event.
func (r *controllerRecorder) check(o occurrence) error {
	if wrong := validation.IsQualifiedName(r.component); len(wrong) > 0 {
		return fmt.Errorf("the controller's name %q is no qualified name: %s", r.component, strings.Join(wrong, "; "))
	}
	if o.reason == "" || o.action == "" {
		return errors.New("reason and action are required: say why, and what was done, each in a CamelCase word")
	}
	if len(o.reason) > maxShortText || len(o.action) > maxShortText {
		return fmt.Errorf("reason and action may have at most %d bytes: put the rest into the note", maxShortText)
	}
	return nil
}

// truncated returns text, cut to limit bytes with an ellipsis if it is longer.
func truncated(text string, limit int) string {
	const ellipsis = "..."
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// wireForm returns the event as it is created on the server. An event with an eventTime has a series in the place of
// the count and the two timestamps, and no source.
func wireForm(e *corev1.Event) *corev1.Event {
	if e.EventTime.IsZero() {
		return e
	}
	out := *e
	out.EventTime = metav1.NewMicroTime(e.FirstTimestamp.Time)
	out.Series = seriesOf(e)
	out.Count, out.FirstTimestamp, out.LastTimestamp = 0, metav1.Time{}, metav1.Time{}
	out.Source = corev1.EventSource{}
	return &out
}

// seriesOf returns the repetitions of an event with an eventTime, or nil if there are none.
func seriesOf(e *corev1.Event) *corev1.EventSeries {
	if e.EventTime.IsZero() || e.Count < 2 {
		return nil
	}
	return &corev1.EventSeries{Count: e.Count, LastObservedTime: metav1.NewMicroTime(e.LastTimestamp.Time)}
}
