package differential

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// transport finds stacks, a function a line, of what carries requests: HTTP and TLS, with all that they call.
var transport = regexp.MustCompile(`(?m)^(net/http|crypto/tls|golang\.org/x/net/http2)[./]`)

// outsideTransport is the processor time in profiles that was not spent on carrying requests.
func outsideTransport(t *testing.T, profiles []string) (spent time.Duration) {
	t.Helper()
	out, err := exec.Command("go", append([]string{"tool", "pprof", "-traces", "-unit=ns"}, profiles...)...).Output()
	if err != nil {
		t.Fatalf("go tool pprof: %v", err)
	}
	for stack, d := range stacks(string(out)) {
		if !transport.MatchString(stack) {
			spent += d
		}
	}
	return spent
}

// stacks reads what go tool pprof -traces -unit=ns prints: the time of each stack, a function a line, the innermost
// first.
func stacks(traces string) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, block := range strings.Split(traces,
		"-----------+-------------------------------------------------------\n")[1:] {
		value, rest, _ := strings.Cut(strings.TrimSpace(block), " ")
		d, err := time.ParseDuration(value)
		if err != nil {
			continue // a label
		}
		var functions []string
		for _, line := range strings.Split(rest, "\n") {
			functions = append(functions, strings.TrimSpace(line))
		}
		all[strings.Join(functions, "\n")] += d
	}
	return all
}

// TestStacks: a stack counts as transport wherever in it HTTP or TLS stands.
func TestStacks(t *testing.T) {
	all := stacks(`File: x.test
Type: cpu
-----------+-------------------------------------------------------
20000000ns   runtime.memmove
             crypto/tls.(*Conn).Write
             net/http.(*persistConn).writeLoop
-----------+-------------------------------------------------------
10000000ns   runtime.mallocgc
             k8s.io/api/core/v1.(*Pod).Unmarshal
-----------+-------------------------------------------------------
10000000ns   syscall.read
             golang.org/x/net/http2.(*Framer).ReadFrame (inline)
-----------+-------------------------------------------------------
10000000ns   runtime.mallocgc
             k8s.io/api/core/v1.(*Pod).Unmarshal
-----------+-------------------------------------------------------
`)
	var in, out time.Duration
	for stack, d := range all {
		if transport.MatchString(stack) {
			in += d
		} else {
			out += d
		}
	}
	if in != 30*time.Millisecond || out != 20*time.Millisecond || len(all) != 3 {
		t.Errorf("%s in, %s out of transport, of %d stacks, want 30ms, 20ms, 3:\n%v", in, out, len(all), all)
	}
}
