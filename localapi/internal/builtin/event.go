package builtin

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func event() *resource.Definition {
	d := namespaced[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, "events", "ev")
	d.CreateOnUpdate = true
	d.Validate = check(validateEvent)
	d.Fields = selectable(eventFields)
	printed(d, eventRow)
	return d
}

// validateEvent requires an event to be in the namespace of its object. An event with an eventTime comes from a newer
// recorder, and must also name its reporter and the action.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/events.go legacyValidateEvent.
func validateEvent(e *corev1.Event) field.ErrorList { return validateEventAs(e, "reportingComponent") }

// validateEventAs is validateEvent for an API that calls the reporting controller by the given name.
func validateEventAs(e *corev1.Event, controller string) (errs field.ErrorList) {
	about := e.InvolvedObject.Namespace
	elsewhere := field.ErrorList{
		field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace"),
	}
	if e.EventTime.IsZero() {
		if e.Namespace != about && (about != "" || e.Namespace != metav1.NamespaceDefault) {
			return elsewhere
		}
		return nil
	}
	if about == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem {
		errs = elsewhere
	}
	errs = append(errs, shortText(controller, e.ReportingController, 0)...)
	errs = append(errs, qualifiedName(e.ReportingController, field.NewPath(controller))...)
	errs = append(errs, shortText("reportingInstance", e.ReportingInstance, 128)...)
	errs = append(errs, shortText("action", e.Action, 128)...)
	errs = append(errs, shortText("reason", e.Reason, 128)...)
	if len(e.Message) > 1024 {
		errs = append(errs, field.Invalid(field.NewPath("message"), "", "can have at most 1024 characters"))
	}
	return errs
}

// shortText requires a value of at most limit characters; 0 is no limit.
func shortText(name, value string, limit int) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(field.NewPath(name), "")}
	case limit > 0 && len(value) > limit:
		return field.ErrorList{field.Invalid(field.NewPath(name), "", "can have at most 128 characters")}
	}
	return nil
}

// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/event/strategy.go ToSelectableFields.
func eventFields(e *corev1.Event) fields.Set {
	return fields.Set{
		"involvedObject.kind":            e.InvolvedObject.Kind,
		"involvedObject.namespace":       e.InvolvedObject.Namespace,
		"involvedObject.name":            e.InvolvedObject.Name,
		"involvedObject.uid":             string(e.InvolvedObject.UID),
		"involvedObject.apiVersion":      e.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       e.InvolvedObject.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         cmp.Or(e.Source.Component, e.ReportingController),
		"type":                           e.Type,
	}
}

func eventRow(e *corev1.Event, now time.Time) []cell {
	first := age(e.FirstTimestamp, now)
	if e.FirstTimestamp.IsZero() {
		first = age(metav1.Time(e.EventTime), now)
	}
	last := age(e.LastTimestamp, now)
	if e.LastTimestamp.IsZero() {
		last = first
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		last, count = age(metav1.Time(e.Series.LastObservedTime), now), e.Series.Count
	}
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	doc, name := corev1.Event{}.SwaggerDoc(), nameColumn(e.Name)
	name.priority = 1
	return []cell{
		column("Last Seen", "string", doc["lastTimestamp"], last),
		column("Type", "string", doc["type"], e.Type),
		column("Reason", "string", doc["reason"], e.Reason),
		column("Object", "string", doc["involvedObject"], object),
		wideColumn("Subobject", "string", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"],
			e.InvolvedObject.FieldPath),
		wideColumn("Source", "string", doc["source"], eventSource(e)),
		column("Message", "string", doc["message"], strings.TrimSpace(e.Message)),
		wideColumn("First Seen", "string", doc["firstTimestamp"], first),
		wideColumn("Count", "string", doc["count"], int64(count)),
		name,
	}
}

func eventSource(e *corev1.Event) string {
	source := cmp.Or(e.Source.Component, e.ReportingController)
	if instance := cmp.Or(e.Source.Host, e.ReportingInstance); instance != "" {
		source += ", " + instance
	}
	return source
}

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
