package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// columns prints rows in columns, which stay as wide as the widest cell so far.
//
// Source: k8s.io/cli-runtime v0.37.2 pkg/printers/tabwriter.go: at least 6 characters, and 3 between columns.
type columns struct{ widths []int }

// print prints rows. All rows have the same cells.
func (c *columns) print(out io.Writer, rows [][]string) {
	const minWidth, padding = 6, 3
	for _, row := range rows {
		for i, cell := range row {
			if i == len(c.widths) {
				c.widths = append(c.widths, minWidth)
			}
			c.widths[i] = max(c.widths[i], utf8.RuneCountInString(cell)+padding)
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", c.widths[i]-utf8.RuneCountInString(cell)))
			}
		}
		fmt.Fprintln(out, b.String())
	}
}

// cell returns a value of a table as kubectl prints it: the first line.
//
// Source: k8s.io/cli-runtime v0.37.2 pkg/printers/tableprinter.go printRows.
func cell(value any) string {
	if value == nil {
		return ""
	}
	text := fmt.Sprint(value)
	if at := strings.IndexAny(text, "\f\n\r"); at >= 0 {
		text = text[:at] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == '\x1b' {
			return '^'
		}
		return r
	}, text)
}

// rows returns the cells of a server's table. definitions are its columns.
func (c *command) rows(table *metav1.Table, definitions []metav1.TableColumnDefinition, kind string) [][]string {
	var rows [][]string
	for _, row := range table.Rows {
		var cells []string
		var object metav1.PartialObjectMetadata
		_ = json.Unmarshal(row.Object.Raw, &object) // Without it, the row has no namespace.
		if c.all {
			cells = append(cells, object.Namespace)
		}
		for i, d := range definitions {
			if i >= len(row.Cells) || d.Priority > 0 && c.output != "wide" {
				continue
			}
			text := cell(row.Cells[i])
			if kind != "" && i == 0 {
				text = kind + "/" + text
			}
			cells = append(cells, text)
		}
		if c.showLabels {
			cells = append(cells, labels.FormatLabels(object.Labels))
		}
		rows = append(rows, cells)
	}
	return rows
}

// heads returns the row with the heads of a server's table, or none if they are not wanted.
func (c *command) heads(definitions []metav1.TableColumnDefinition) [][]string {
	if c.noHeaders {
		return nil
	}
	var heads []string
	if c.all {
		heads = append(heads, "NAMESPACE")
	}
	for _, d := range definitions {
		if d.Priority == 0 || c.output == "wide" {
			heads = append(heads, strings.ToUpper(d.Name))
		}
	}
	if c.showLabels {
		heads = append(heads, "LABELS")
	}
	return [][]string{heads}
}
