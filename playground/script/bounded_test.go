package script

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/reconcile"
)

// TestBounded: a script that takes too much is stopped, and the error names the line. A script that makes much garbage,
// and one that uses some memory, run to their ends.
func TestBounded(t *testing.T) {
	const memory = ": stopped because it uses more than 128 MB of memory$"
	for _, c := range []struct{ name, body, want string }{
		{"string", "x = 'x'\nfor i in range(1000):\n  x += x", "^line 5" + memory},
		{"strings", "x = 'x' * 4000000\nfor i in range(1000):\n  x = x + x + x + x", "^line 5" + memory},
		{"list", "l = [0]\nfor i in range(1000):\n  l = l + l", "^line 5" + memory},
		{"lists", "l = []\nfor i in range(1000000):\n  l.append([0] * 1000)", "^line 5" + memory},
		{"dict", "d = {}\nfor i in range(1000000):\n  d[i] = ('%d' % i) * 9000", "^line 5" + memory},
		{"product", "l = [0] * (1 << 30)", "^line 3: the product has more than 8388608 elements$"},
		{
			"products", "l = [0]\nfor i in range(9):\n  l *= 1000",
			"^line 5: the product has more than 8388608 elements$",
		},
		{"global", "seen.append(a)", "^line 3: append: cannot append to frozen list$"},
		{"range", "list(range(1 << 30))", "^line 3: range has more than 1000000 numbers$"},
		{"steps", "for i in range(1000000):\n  pass", "^line 3: stopped after 1000000 steps: it must come to an end$"},
		{"garbage", "for i in range(300):\n  x = 'x' * 1000000", "^$"},
		{"some", "d = {'n': [3 * 2]}\nd['n'] *= 1000000\nd['n'][0] *= 7\nd['n'][0] == 42 or fail('wrong')", "^$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			controller, err := Compile("watches, seen = 'v1/Pod', []\ndef reconcile(a, b):\n  " +
				strings.ReplaceAll(c.body, "\n", "\n  "))
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if err := controller.run(t.Context(), nil, reconcile.Request{}); err != nil {
				text = err.Error()
				if strings.Contains(text, "stopped") && !reconcile.IsTerminal(err) {
					t.Error("a stopped script is retried")
				}
			}
			if !regexp.MustCompile(c.want).MatchString(text) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
	if _, err := Compile("x = [str(y) * 1000000 for y in range(10000)]"); err == nil ||
		!strings.Contains(err.Error(), "line 1: stopped because it uses more than 128 MB") {
		t.Errorf("outside of functions: %v", err)
	}
}
