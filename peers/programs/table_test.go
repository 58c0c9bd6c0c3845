package programs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/docblock"
)

const (
	page  = "../../docs/localapi.md"
	block = "make test-conformance"
)

// area matches the special interest group that a spec belongs to.
var area = regexp.MustCompile(`^\[(sig-[a-z-]+)\]`)

// table shows the specs by area, and the reasons of those that do not pass on flyball serve alone.
func table(specs []string, list []verdict, on map[string]*verdict) string {
	const columns = 5 // all, those that pass alone, that pass behind, that fail, and that do not run
	rows, counts := map[string]*[columns]int{}, map[*verdict]int{}
	for _, spec := range specs {
		name, v := "other", on[spec]
		if m := area.FindStringSubmatch(spec); m != nil {
			name = m[1]
		}
		column := 1
		switch {
		case v.Fails:
			column = 3
		case v.Place == behind:
			column = 2
		case v.Place == nowhere:
			column = 4
		}
		for _, row := range []string{name, "total"} {
			if rows[row] == nil {
				rows[row] = &[columns]int{}
			}
			rows[row][0]++
			rows[row][column]++
		}
		counts[v]++
	}
	var out strings.Builder
	out.WriteString("| area | specs | pass alone | pass with the two programs | fail | not run |\n" +
		"|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) { // total is the last one
		cells := strings.Fields(strings.Trim(fmt.Sprint(*rows[name]), "[]"))
		fmt.Fprintf(&out, "| %s | %s |\n", name, strings.Join(cells, " | "))
	}
	for _, part := range []struct {
		heading string
		holds   func(*verdict) bool
	}{
		{"why specs fail", func(v *verdict) bool { return v.Fails }},
		{"why specs run with the two programs", func(v *verdict) bool { return v.Place == behind && !v.Fails }},
		{"why specs are not run", func(v *verdict) bool { return v.Place == nowhere }},
	} {
		lines := ""
		for i := range list {
			if v := &list[i]; part.holds(v) {
				lines += fmt.Sprintf("| %s | %d |\n", v.Reason, counts[v])
			}
		}
		if lines != "" {
			fmt.Fprintf(&out, "\n| %s | specs |\n|---|---|\n%s", part.heading, lines)
		}
	}
	return out.String()
}

// TestTable: the table in the document is that of the list, so it has every reason and every spec.
func TestTable(t *testing.T) {
	text, err := docblock.Read(page, block)
	if err != nil {
		t.Fatal(err)
	}
	all, list := conformance(t), readVerdicts(t)
	on, _ := verdicts(list, all)
	if want := strings.TrimSpace(table(all, list, on)); !strings.HasSuffix(text, want) {
		t.Errorf("%s has another table than that of the list, which %s writes:\n%s", page, block, want)
	}
}
