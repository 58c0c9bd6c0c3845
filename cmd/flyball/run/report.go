package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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
	r.writeSummary(o.Summary)
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
	fmt.Fprintln(w, "NAMESPACE\tKIND\tNAME\tAPPLIED\tCONDITIONS")
	for _, o := range r.objects {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(o.GetNamespace(), "-"), o.GetKind(), o.GetName(), o.change,
			conditions(o.Unstructured))
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
