package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

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
func (c *command) asTable(t target) *rest.Request {
	root := "/apis"
	if t.Resource.Group == "" {
		root = "/api"
	}
	r := c.rest.Get().AbsPath(root, t.Resource.Group, t.Resource.Version).
		NamespaceIfScoped(t.namespace, t.namespace != "").Resource(t.Resource.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	if t.name != "" {
		r = r.Name(t.name)
	}
	for name, value := range map[string]string{"labelSelector": c.selector, "fieldSelector": c.fields} {
		if value != "" {
			r = r.Param(name, value)
		}
	}
	return r
}

// tables prints the tables of the targets. Those of a kind, one after the other, share one.
func (c *command) tables(ctx context.Context, found []target) error {
	if c.watch && len(found) > 1 {
		return errors.New("you may only specify a single resource type with --watch")
	}
	var answered []target
	var tables []*metav1.Table
	err := each(found, func(t target) error {
		table := &metav1.Table{}
		err := c.asTable(t).Do(ctx).Into(table)
		if err == nil {
			answered, tables = append(answered, t), append(tables, table)
		}
		return err
	})
	several := slices.ContainsFunc(answered, func(t target) bool { return t.Resource != answered[0].Resource })
	printed := 0
	var columns columns
	for i, t := range answered {
		kind := ""
		if several {
			kind = t.kind()
		}
		rows := c.rows(tables[i], tables[i].ColumnDefinitions, kind)
		if len(rows) > 0 && (i == 0 || t.Resource != answered[i-1].Resource) {
			if printed > 0 {
				fmt.Fprintln(c.out)
			}
			columns.widths = nil
			rows = slices.Insert(rows, 0, c.heads(tables[i].ColumnDefinitions)...)
		}
		columns.print(c.out, rows)
		printed += len(rows)
	}
	if c.watch && err == nil {
		return c.follows(ctx, found[0], tables[0], &columns)
	}
	if printed == 0 && err == nil {
		in := ""
		if found[0].namespace != "" {
			in = " in " + c.namespace + " namespace."
		}
		fmt.Fprintf(c.out, "No resources found%s\n", in)
	}
	return err
}

// follows prints the rows of a watch from the version of a table on, until ctx is done.
func (c *command) follows(ctx context.Context, t target, first *metav1.Table, columns *columns) error {
	if t.name != "" {
		c.fields = "metadata.name=" + t.name
		t.name = ""
	}
	w, err := c.asTable(t).Param("watch", "true").Param("resourceVersion", first.ResourceVersion).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	definitions := first.ColumnDefinitions
	for event := range w.ResultChan() {
		table, ok := event.Object.(*metav1.Table)
		if !ok {
			return fmt.Errorf("the watch has ended: %w", apierrors.FromObject(event.Object))
		}
		if len(table.ColumnDefinitions) > 0 {
			definitions = table.ColumnDefinitions
		}
		if columns.widths == nil {
			columns.print(c.out, c.heads(definitions))
		}
		columns.print(c.out, c.rows(table, definitions, ""))
	}
	return nil
}

// read returns the object of a target, or all that the selector selects.
func (c *command) read(ctx context.Context, t target) ([]unstructured.Unstructured, error) {
	if t.name != "" {
		o, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []unstructured.Unstructured{*o}, nil
	}
	all, err := c.objects(t).List(ctx, metav1.ListOptions{LabelSelector: c.selector})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// print prints the targets in another form than a table.
func (c *command) print(ctx context.Context, found []target) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	err := each(found, func(t target) error {
		all, err := c.read(ctx, t)
		for _, o := range all {
			if t.name = o.GetName(); c.output == "name" {
				fmt.Fprintln(c.out, t)
			}
			o.SetManagedFields(nil)
			list.Items = append(list.Items, o)
		}
		return err
	})
	value := list.UnstructuredContent()
	if len(found) == 1 && found[0].name != "" {
		if err != nil {
			return err
		}
		value = list.Items[0].Object
	}
	return errors.Join(c.write(value), err)
}

// write writes a value as JSON or YAML.
func (c *command) write(value any) error {
	switch c.output {
	case "json":
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		fmt.Fprint(c.out, string(text))
		return err
	}
	return nil
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
	c.output = "yaml"
	events, err := c.mapping("events")
	if err := errors.Join(err, c.write(o.Object)); err != nil {
		return err
	}
	fmt.Fprintln(c.out, "Events:")
	c.output, c.fields = "", "involvedObject.uid="+string(o.GetUID())
	c.namespace = cmp.Or(t.namespace, metav1.NamespaceDefault)
	return c.tables(ctx, []target{c.target(events, "")})
}
