package builtin

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
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
