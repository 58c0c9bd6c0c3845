package builtin

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// events are those of the core group, as which they are stored, and those of events.k8s.io, whose rules are stricter.
func events() []*resource.Definition {
	all := family(event(), resource.Member{
		Kind:      eventsv1.SchemeGroupVersion.WithKind("Event"),
		New:       func() runtime.Object { return &eventsv1.Event{} },
		ToFirst:   func(obj runtime.Object) runtime.Object { return coreEvent(obj.(*eventsv1.Event)) },
		FromFirst: func(obj runtime.Object) runtime.Object { return newEvent(obj.(*corev1.Event)) },
	})
	d := all[1]
	d.NewList = func() runtime.Object { return &eventsv1.EventList{} }
	d.Validate = check(func(e *eventsv1.Event) field.ErrorList {
		return validateEventAs(coreEvent(e), "reportingController")
	})
	d.ValidateCreate = check(validateNewEvent)
	d.ValidateUpdate = compare(validateNewEventUpdate)
	d.Fields = selectable(func(e *eventsv1.Event) fields.Set { return newEventFields(coreEvent(e)) })
	return all
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/events/v1/conversion.go Convert_v1_Event_To_core_Event.
func coreEvent(e *eventsv1.Event) *corev1.Event {
	return &corev1.Event{
		Series:     (*corev1.EventSeries)(e.Series),
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Reason: e.Reason, Message: e.Note,
		Source:         e.DeprecatedSource,
		FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
		Type: e.Type, EventTime: e.EventTime, Action: e.Action, Related: e.Related,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/events/v1/conversion.go Convert_core_Event_To_v1_Event.
func newEvent(e *corev1.Event) *eventsv1.Event {
	return &eventsv1.Event{
		Series:     (*eventsv1.EventSeries)(e.Series),
		ObjectMeta: e.ObjectMeta, Regarding: e.InvolvedObject, Reason: e.Reason, Note: e.Message,
		DeprecatedSource:         e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
		Type: e.Type, EventTime: e.EventTime, Action: e.Action, Related: e.Related,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/events.go ValidateEventCreate.
func validateNewEvent(e *eventsv1.Event) field.ErrorList {
	errs := validateSeries(e.Series)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	for _, old := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.DeprecatedFirstTimestamp.IsZero()},
		{"lastTimestamp", !e.DeprecatedLastTimestamp.IsZero()},
		{"count", e.DeprecatedCount != 0},
		{"source", e.DeprecatedSource != corev1.EventSource{}},
	} {
		if old.set {
			errs = append(errs, field.Invalid(field.NewPath(old.name), "", "needs to be unset"))
		}
	}
	return errs
}

func validateSeries(s *eventsv1.EventSeries) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateNewEventUpdate lets only the series of an event change.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/events.go ValidateEventUpdate.
func validateNewEventUpdate(e, old *eventsv1.Event) (errs field.ErrorList) {
	if !reflect.DeepEqual(e.Series, old.Series) {
		errs = validateSeries(e.Series)
	}
	eventTime := old.EventTime
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		eventTime = e.EventTime
	}
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", e.Regarding, old.Regarding},
		{"reason", e.Reason, old.Reason},
		{"message", e.Note, old.Note},
		{"source", e.DeprecatedSource, old.DeprecatedSource},
		{"firstTimestamp", e.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp},
		{"lastTimestamp", e.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp},
		{"count", e.DeprecatedCount, old.DeprecatedCount},
		{"reason", e.Reason, old.Reason}, // reported twice
		{"type", e.Type, old.Type},
		{"eventTime", eventTime, old.EventTime},
		{"action", e.Action, old.Action},
		{"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, immutable(f.now, f.was, field.NewPath(f.name))...)
	}
	return errs
}

// newEventFields are the fields of an event under the names that events.k8s.io gives them.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/events/v1/conversion.go AddFieldLabelConversionsForEvent.
func newEventFields(e *corev1.Event) fields.Set {
	set := fields.Set{}
	for name, value := range eventFields(e) {
		switch {
		case name == "source":
		case name == "reportingComponent":
			set["reportingController"] = value
		default:
			set[strings.Replace(name, "involvedObject.", "regarding.", 1)] = value
		}
	}
	return set
}
