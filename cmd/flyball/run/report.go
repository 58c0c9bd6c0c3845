package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/printable"
	flyball "github.com/flyball-dev/flyball/manager"
)

// The output formats.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
)

// report is the output at the end of a run.
type report struct {
	objects []applied
	changes string
	// skipped lists the objects that were not applied because their kinds are unknown; unhandled lists those whose
	// kinds no controller handles.
	skipped, unhandled []string
	// ran is whether the controllers were run; summary is their summary.
	ran     bool
	summary flyball.Summary
}

// write writes the objects to o.Out, and the summary of the run to o.Summary.
func (r report) write(o Options) error {
	var err error
	switch o.Output {
	case JSON, YAML:
		err = r.writeObjects(o.Out, o.Output)
	default:
		err = r.writeTable(o.Out)
	}
	if err != nil {
		return fmt.Errorf("write the objects: %w", err)
	}
	var summary strings.Builder
	r.writeSummary(&summary)
	_, _ = io.WriteString(o.Summary, printable.Text(summary.String()))
	return nil
}

// writeObjects writes the objects as one List.
func (r report) writeObjects(out io.Writer, form string) error {
	items := make([]any, 0, len(r.objects))
	for _, o := range r.objects {
		o.SetManagedFields(nil)
		items = append(items, o.Object)
	}
	text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "  ")
	if err == nil && form == YAML {
		text, err = yaml.JSONToYAML(text)
	} else {
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func (r report) writeTable(out io.Writer) error {
	if len(r.objects) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := printable.Line
	fmt.Fprintln(w, "NAMESPACE\tKIND\tNAME\tAPPLIED\tCONDITIONS")
	for _, o := range r.objects {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", line(cmp.Or(o.GetNamespace(), "-")), line(o.GetKind()),
			line(o.GetName()), o.change, line(conditions(o.Unstructured)))
	}
	return w.Flush()
}

// conditions returns the conditions of an object: those that are true, and the others with their reasons.
func conditions(o *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var texts []string
	for _, element := range list {
		c, ok := element.(map[string]any)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%v=%v", c["type"], c["status"])
		if reason, ok := c["reason"].(string); ok && reason != "" && c["status"] != "True" {
			text += " (" + reason + ")"
		}
		texts = append(texts, text)
	}
	return cmp.Or(strings.Join(texts, ", "), "-")
}

// mostLater is the maximum number of keys due later that the summary shows.
const mostLater = 10

func (r report) writeSummary(out io.Writer) {
	fmt.Fprintf(out, "\n%s.\n", upper(r.changes))
	for _, line := range r.skipped {
		fmt.Fprintf(out, "Skipped, of a kind that is not known: %s\n", line)
	}
	for _, line := range r.unhandled {
		fmt.Fprintf(out, "Only stored, no controller handles it: %s\n", line)
	}
	if !r.ran {
		fmt.Fprintln(out, "The controllers were not run, because not everything was applied.")
		return
	}
	s := r.summary
	var controllers []string
	for _, c := range s.Controllers {
		controllers = append(controllers, fmt.Sprintf("%s %d", c.Name, c.Processed))
	}
	fmt.Fprintf(out, "%d reconciles in %v, at most %d at once (%s).\n", s.Processed,
		s.Duration.Round(time.Millisecond), s.Peak, strings.Join(controllers, ", "))
	if s.Pending > 0 {
		fmt.Fprintf(out, "Cut short: %d keys were still to do.\n", s.Pending)
	}
	for _, l := range s.Left[:min(mostLater, len(s.Left))] {
		fmt.Fprintf(out, "Left: %s %s\n", l.Controller, l.Key)
	}
	for _, f := range s.Failed {
		cause := ""
		if n := len(f.Causes); n > 0 {
			cause = fmt.Sprintf(" (asked for by %s %s %s)", f.Causes[n-1].Source, f.Causes[n-1].Event,
				f.Causes[n-1].Object)
		}
		fmt.Fprintf(out, "Failed: %s %s, %d times: %v%s\n", f.Controller, f.Key, f.Attempts, f.Err, cause)
	}
	for i, d := range s.DueLater {
		if i == mostLater {
			fmt.Fprintf(out, "… and %d more are due later.\n", len(s.DueLater)-i)
			break
		}
		fmt.Fprintf(out, "Due later: %s %s in %v\n", d.Controller, d.Key, time.Until(d.Due).Round(time.Second))
	}
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// standing is the status of an object relative to its spec.
type standing string

// The statuses of kstatus.
const (
	current     standing = "Current"
	inProgress  standing = "InProgress"
	failed      standing = "Failed"
	terminating standing = "Terminating"
)

// standingOf returns the standing of an object, and the reason if it is not current. It checks first what all kinds
// have in common, then the rules of the kind, then a condition Ready. It is not called for kinds that no controller of
// the run handles.
//
// Source: sigs.k8s.io/cli-utils pkg/kstatus/status, Compute in status.go, generic.go and core.go.
func standingOf(o *unstructured.Unstructured) (standing, string) {
	if s, why, ok := generic(o); ok {
		return s, why
	}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps":
		return deploymentStanding(o)
	case "ReplicaSet.apps":
		return replicaSetStanding(o)
	case "Pod":
		return podStanding(o)
	case "Service":
		if text(o, "spec", "type") == "LoadBalancer" && text(o, "spec", "clusterIP") == "" {
			return inProgress, "it has no cluster IP"
		}
		return current, ""
	case definitionKind.String():
		return definitionStanding(o)
	}
	if ready, ok := conditionsOf(o)["Ready"]; ok && ready.status != "True" {
		return inProgress, ready.String()
	}
	return current, ""
}

// generic checks what all kinds have in common, and reports whether that decides the standing.
func generic(o *unstructured.Unstructured) (s standing, why string, decides bool) {
	if o.GetDeletionTimestamp() != nil {
		return terminating, "it is being deleted", true
	}
	observed, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if generation := o.GetGeneration(); found && generation != 0 && observed != generation {
		return inProgress, fmt.Sprintf("generation %d is not observed, but %d", generation, observed), true
	}
	conditions := conditionsOf(o)
	if c := conditions["Reconciling"]; c.status == "True" {
		return inProgress, c.String(), true
	}
	if c := conditions["Stalled"]; c.status == "True" {
		return failed, c.String(), true
	}
	return "", "", false
}

func deploymentStanding(o *unstructured.Unstructured) (standing, string) {
	conditions := conditionsOf(o)
	progressing := conditions["Progressing"]
	if progressing.reason == "ProgressDeadlineExceeded" {
		return failed, progressing.String()
	}
	want, all := number(o, 1, "spec", "replicas"), number(o, 0, "status", "replicas")
	updated, available := number(o, 0, "status", "updatedReplicas"), number(o, 0, "status", "availableReplicas")
	switch {
	case want > all:
		return inProgress, fmt.Sprintf("%d of %d pods are there", all, want)
	case want > updated:
		return inProgress, fmt.Sprintf("%d of %d pods are updated", updated, want)
	case all > want:
		return inProgress, fmt.Sprintf("%d pods are to be deleted", all-want)
	case updated > available:
		return inProgress, fmt.Sprintf("%d of %d pods are available", available, updated)
	case want > number(o, 0, "status", "readyReplicas"):
		return inProgress, fmt.Sprintf("%d of %d pods are ready", number(o, 0, "status", "readyReplicas"), want)
	case number(o, math.MaxInt32, "spec", "progressDeadlineSeconds") != math.MaxInt32 &&
		(progressing.status != "True" || progressing.reason != "NewReplicaSetAvailable"):
		return inProgress, "its new replica set is not available"
	case conditions["Available"].status != "True":
		return inProgress, "it is not available"
	}
	return current, ""
}

func replicaSetStanding(o *unstructured.Unstructured) (standing, string) {
	want := number(o, 1, "spec", "replicas")
	if c := conditionsOf(o)["ReplicaFailure"]; c.status == "True" {
		return inProgress, c.String()
	}
	for _, f := range []struct{ field, word string }{
		{"fullyLabeledReplicas", "labelled"}, {"availableReplicas", "available"}, {"readyReplicas", "ready"},
	} {
		if n := number(o, 0, "status", f.field); want > n {
			return inProgress, fmt.Sprintf("%d of %d pods are %s", n, want, f.word)
		}
	}
	if all := number(o, 0, "status", "replicas"); all > want {
		return inProgress, fmt.Sprintf("%d pods are to be deleted", all-want)
	}
	return current, ""
}

// scheduleWindow is how long a pod may be unschedulable before it counts as failed.
const scheduleWindow = 15 * time.Second

func podStanding(o *unstructured.Unstructured) (standing, string) {
	conditions := conditionsOf(o)
	switch phase := text(o, "status", "phase"); phase {
	case "Succeeded", "Failed":
		return current, "" // it ran to completion, as its spec asked
	case "Running":
		if conditions["Ready"].status == "True" {
			return current, ""
		}
		if names := crashing(o); len(names) > 0 {
			return failed, "these containers crash: " + strings.Join(names, ", ")
		}
		return inProgress, "it runs, but is not ready"
	case "Pending":
		if c := conditions["PodScheduled"]; c.status == "False" && c.reason == "Unschedulable" {
			if time.Since(o.GetCreationTimestamp().Time) < scheduleWindow {
				return inProgress, "it is not scheduled"
			}
			return failed, c.String()
		}
		return inProgress, "it is pending"
	default:
		return inProgress, "no kubelet has seen it"
	}
}

// crashing returns the names of a pod's containers that are in a crash loop.
func crashing(o *unstructured.Unstructured) (names []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "containerStatuses")
	for _, element := range list {
		c, _ := element.(map[string]any)
		if reason, _, _ := unstructured.NestedString(c, "state", "waiting", "reason"); reason == "CrashLoopBackOff" {
			names = append(names, fmt.Sprint(c["name"]))
		}
	}
	return names
}

func definitionStanding(o *unstructured.Unstructured) (standing, string) {
	conditions := conditionsOf(o)
	established := conditions["Established"]
	switch accepted := conditions["NamesAccepted"]; {
	case accepted.status == "False":
		return failed, accepted.String()
	case established.status == "True":
		return current, ""
	case established.status == "False" && established.reason != "Installing":
		return failed, established.String()
	}
	return inProgress, "it is not established"
}

// condition is one of an object's conditions.
type condition struct{ kind, status, reason, message string }

// String returns "Ready=False (Reason): message", without the parts that are empty.
func (c condition) String() string {
	text := c.kind + "=" + c.status
	if c.reason != "" {
		text += " (" + c.reason + ")"
	}
	if c.message != "" {
		text += ": " + c.message
	}
	return text
}

// conditionsOf returns the conditions of an object by type.
func conditionsOf(o *unstructured.Unstructured) map[string]condition {
	found := map[string]condition{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, element := range list {
		c, _ := element.(map[string]any)
		field := func(name string) string { s, _ := c[name].(string); return s }
		found[field("type")] = condition{field("type"), field("status"), field("reason"), field("message")}
	}
	return found
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func number(o *unstructured.Unstructured, missing int64, path ...string) int64 {
	if n, found, err := unstructured.NestedInt64(o.Object, path...); found && err == nil {
		return n
	}
	return missing
}
