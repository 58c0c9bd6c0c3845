package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func labels(set map[string]string) string {
	return cmp.Or(apilabels.FormatLabels(set), "<none>")
}

func (c *command) get(ctx context.Context) error {
	found, err := c.targets(c.args)
	if err != nil {
		return err
	}
	switch c.output {
	case "", "wide":
		return c.tables(ctx, found)
	case "yaml", "json", "name":
		return c.print(ctx, found)
	}
	return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,name,"+
		"wide,yaml", c.output)
}

// asTable asks for the table of a target.
func (c *command) asTable(t target, watch bool) *rest.Request {
	r := c.rest.Get().AbsPath(c.path(t)).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	if c.selector != "" {
		r = r.Param("labelSelector", c.selector)
	}
	if watch {
		r = r.Param("watch", "true")
	}
	return r
}

// read decodes the answer of a request, which is JSON.
func read(ctx context.Context, r *rest.Request, into any) error {
	answer := r.Do(ctx)
	if err := answer.Error(); err != nil { // Raw does not read the Status of an error.
		return err
	}
	text, err := answer.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// tables prints the tables of the targets. Those of a kind, one after the other, share one.
func (c *command) tables(ctx context.Context, found []target) error {
	several := slices.ContainsFunc(found, func(t target) bool { return t.Resource != found[0].Resource })
	if c.watch && (several || len(found) > 1) {
		return errors.New("you may only specify a single resource type with --watch")
	}
	var errs []error
	printed, last := 0, target{}
	var columns columns
	for i, t := range found {
		table := &metav1.Table{}
		err := read(ctx, c.asTable(t, false), table)
		if err == nil {
			err = objects(table)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var rows [][]string
		if i == 0 || last.RESTMapping == nil || last.Resource != t.Resource {
			if printed > 0 && len(table.Rows) > 0 {
				fmt.Fprintln(c.out)
			}
			if !c.noHeaders && len(table.Rows) > 0 {
				rows = append(rows, c.heads(table.ColumnDefinitions))
			}
			columns.widths = nil
		}
		kind := ""
		if several {
			kind = t.kind()
		}
		last = t
		columns.print(c.out, append(rows, c.rows(table, table.ColumnDefinitions, kind)...))
		printed += len(table.Rows)
		if c.watch {
			return c.follows(ctx, t, table, &columns)
		}
	}
	if printed == 0 && len(errs) == 0 {
		in := ""
		if !c.all && found[0].scoped() {
			in = " in " + c.namespace + " namespace."
		}
		fmt.Fprintf(c.out, "No resources found%s\n", in)
	}
	return errors.Join(errs...)
}

// objects decodes the objects of a table.
func objects(table *metav1.Table) error {
	for i := range table.Rows {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[i].Object.Raw, object); err != nil {
			return err
		}
		table.Rows[i].Object.Object = object
	}
	return nil
}

// follows prints the rows of a watch from the version of a table on, until ctx is done.
func (c *command) follows(ctx context.Context, t target, first *metav1.Table, columns *columns) error {
	only := t.name
	t.name = ""
	r := c.asTable(t, true).Param("resourceVersion", first.ResourceVersion)
	if only != "" {
		r = r.Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", only).String())
	}
	stream, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	definitions := first.ColumnDefinitions
	for decoder := json.NewDecoder(stream); ; {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		table := &metav1.Table{}
		if err := json.Unmarshal(event.Object, table); err != nil || event.Type == "ERROR" {
			return fmt.Errorf("the watch has ended: %s", event.Object)
		}
		if err := objects(table); err != nil {
			return err
		}
		if len(table.ColumnDefinitions) > 0 {
			definitions = table.ColumnDefinitions
		}
		if len(columns.widths) == 0 && len(table.Rows) > 0 && !c.noHeaders {
			columns.print(c.out, [][]string{c.heads(definitions)})
		}
		columns.print(c.out, c.rows(table, definitions, ""))
	}
}

// print prints the targets in another form than a table.
func (c *command) print(ctx context.Context, found []target) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, t := range found {
		all := &unstructured.UnstructuredList{}
		var err error
		if t.name == "" {
			all, err = c.objects(t).List(ctx, metav1.ListOptions{LabelSelector: c.selector})
		} else if o, failed := c.objects(t).Get(ctx, t.name, metav1.GetOptions{}); failed == nil {
			all.Items = append(all.Items, *o)
		} else {
			err = failed
		}
		if err != nil {
			return err
		}
		for _, o := range all.Items {
			if c.output == "name" {
				fmt.Fprintln(c.out, target{t.RESTMapping, o.GetName()})
			}
			o.SetManagedFields(nil)
			list.Items = append(list.Items, o)
		}
	}
	if c.output == "name" {
		return nil
	}
	var value any = list.UnstructuredContent()
	if len(found) == 1 && found[0].name != "" {
		value = list.Items[0].Object
	}
	text, err := json.MarshalIndent(value, "", "    ")
	if err == nil && c.output == "yaml" {
		text, err = yaml.Marshal(value)
	} else {
		text = append(text, '\n')
	}
	if err == nil {
		_, err = c.out.Write(text)
	}
	return err
}

// describe prints the object as YAML, and its events.
func (c *command) describe(ctx context.Context) error {
	t, err := c.one(c.args)
	if err != nil {
		return err
	}
	o, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.SetManagedFields(nil)
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%sEvents:", text)
	var events corev1.EventList
	in := cmp.Or(o.GetNamespace(), metav1.NamespaceDefault)
	err = read(ctx, c.rest.Get().AbsPath("/api/v1/namespaces", in, "events").
		Param("fieldSelector", "involvedObject.uid="+string(o.GetUID())), &events)
	if err != nil || len(events.Items) == 0 {
		fmt.Fprintln(c.out, "  <none>")
		return err
	}
	rows := [][]string{{"  Type", "Reason", "Age", "From", "Message"}, {"  ----", "------", "----", "----", "-------"}}
	for _, e := range events.Items {
		seen := cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
		rows = append(rows, []string{
			"  " + e.Type, e.Reason, duration.HumanDuration(time.Since(seen)),
			cmp.Or(e.Source.Component, e.ReportingController), cell(e.Message),
		})
	}
	fmt.Fprintln(c.out)
	(&columns{}).print(c.out, rows)
	return nil
}
