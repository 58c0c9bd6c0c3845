package builtin

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func event() *resource.Definition {
	d := namespaced[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, "events", "ev")
	d.CreateOnUpdate = true
	d.Validate = rules(validateEvent)
	d.Fields = selectable(eventFields)
	printed(d, eventRow)
	return d
}

// validateEvent requires an event to be in the namespace of its object. An event with an eventTime comes from a newer
// recorder, and must also name its reporter and the action.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/events.go legacyValidateEvent.
func validateEvent(f verify.Field, e *corev1.Event) { validateEventAs(f, e, "reportingComponent") }

// validateEventAs is validateEvent for an API that calls the reporting controller by the given name.
func validateEventAs(f verify.Field, e *corev1.Event, controller string) {
	about := e.InvolvedObject.Namespace
	wrong := e.Namespace != about && (about != "" || e.Namespace != metav1.NamespaceDefault)
	if !e.EventTime.IsZero() {
		wrong = about == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem
	}
	f.Reject("involvedObject.namespace", wrong, about, "does not match event.namespace")
	if e.EventTime.IsZero() {
		return
	}
	f.Require(controller, e.ReportingController != "", "")
	f.Match(controller, e.ReportingController, validation.IsQualifiedName)
	shortText(f, "reportingInstance", e.ReportingInstance)
	shortText(f, "action", e.Action)
	shortText(f, "reason", e.Reason)
	f.Reject("message", len(e.Message) > 1024, "", "can have at most 1024 characters")
}

// shortText requires a value of at most 128 characters.
func shortText(f verify.Field, name, value string) {
	f.Require(name, value != "", "")
	f.Reject(name, len(value) > 128, "", "can have at most 128 characters")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/event/strategy.go ToSelectableFields.
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
	first := resource.Age(e.FirstTimestamp, now)
	if e.FirstTimestamp.IsZero() {
		first = resource.Age(metav1.Time(e.EventTime), now)
	}
	last := resource.Age(e.LastTimestamp, now)
	if e.LastTimestamp.IsZero() {
		last = first
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		last, count = resource.Age(metav1.Time(e.Series.LastObservedTime), now), e.Series.Count
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
	d.Validate = rules(func(f verify.Field, e *eventsv1.Event) {
		validateEventAs(f, coreEvent(e), "reportingController")
	})
	d.ValidateCreate = rules(validateNewEvent)
	d.ValidateUpdate = updateRules(validateNewEventUpdate)
	d.Fields = selectable(func(e *eventsv1.Event) fields.Set { return newEventFields(coreEvent(e)) })
	return all
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/events/v1/conversion.go Convert_v1_Event_To_core_Event.
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/events/v1/conversion.go Convert_core_Event_To_v1_Event.
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/events.go ValidateEventCreate.
func validateNewEvent(f verify.Field, e *eventsv1.Event) {
	validateSeries(f, e.Series)
	f.Require("eventTime", !e.EventTime.IsZero(), "")
	f.Rejectf("type", e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning, "",
		"has invalid value: %v", e.Type)
	const old = "needs to be unset"
	f.Reject("firstTimestamp", !e.DeprecatedFirstTimestamp.IsZero(), "", old)
	f.Reject("lastTimestamp", !e.DeprecatedLastTimestamp.IsZero(), "", old)
	f.Reject("count", e.DeprecatedCount != 0, "", old)
	f.Reject("source", e.DeprecatedSource != corev1.EventSource{}, "", old)
}

func validateSeries(f verify.Field, s *eventsv1.EventSeries) {
	if s != nil {
		f.Reject("series.count", s.Count < 2, "", "should be at least 2")
		f.Require("series.lastObservedTime", !s.LastObservedTime.IsZero(), "")
	}
}

// validateNewEventUpdate lets only the series of an event change.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/events.go ValidateEventUpdate.
func validateNewEventUpdate(f verify.Field, e, old *eventsv1.Event) {
	if !reflect.DeepEqual(e.Series, old.Series) {
		validateSeries(f, e.Series)
	}
	f.Immutable("involvedObject", e.Regarding, old.Regarding)
	f.Immutable("reason", e.Reason, old.Reason)
	f.Immutable("message", e.Note, old.Note)
	f.Immutable("source", e.DeprecatedSource, old.DeprecatedSource)
	f.Immutable("firstTimestamp", e.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp)
	f.Immutable("lastTimestamp", e.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp)
	f.Immutable("count", e.DeprecatedCount, old.DeprecatedCount)
	f.Immutable("reason", e.Reason, old.Reason) // reported twice
	f.Immutable("type", e.Type, old.Type)
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		f.Immutable("eventTime", e.EventTime, old.EventTime)
	}
	f.Immutable("action", e.Action, old.Action)
	f.Immutable("related", e.Related, old.Related)
	f.Immutable("reportingController", e.ReportingController, old.ReportingController)
	f.Immutable("reportingInstance", e.ReportingInstance, old.ReportingInstance)
}

// newEventFields are the fields of an event under the names that events.k8s.io gives them.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/events/v1/conversion.go AddFieldLabelConversionsForEvent.
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
