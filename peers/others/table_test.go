package others

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// row is one run of a suite.
type row struct {
	operator      operator
	server, parts string
	start         time.Duration
	outcome       outcome
	cost          cost
}

// name is how exceptions name it.
func (r row) name() string { return r.parts + " on " + r.server }

// table shows what came out, as docs/localapi.md has it.
func table(rows []row) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, %d cores, %s, kube-apiserver %s\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), upstream.Version)
	b.WriteString("| operator | parts | server | specs that pass | start of the server | suite | memory of the server | memory of the suite | requests |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s %s | %s | %s | %d of %d | %s | %s | %d MB | %d MB | %d |\n", r.operator.name, r.operator.version, r.parts, r.server,
			r.outcome.passed, r.outcome.passed+len(r.outcome.failed), r.start.Round(time.Millisecond), r.outcome.took.Round(time.Second),
			r.cost.memory>>10, r.outcome.memory>>10, r.cost.requests)
	}
	return b.String()
}
