package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/internal/kit"
)

// inside opens the shop's store between two calls.
func (s *shop) inside(do func(ctx context.Context, r *stockroom)) {
	s.Helper()
	ctx := context.Background()
	r, err := (&options{dir: s.store, tenant: "default"}).open(ctx)
	if err != nil {
		s.Fatal(err)
	}
	do(ctx, r)
	if err := r.close(ctx); err != nil {
		s.Fatal(err)
	}
}

// putForeignLabel takes the name of an item's label.
func (s *shop) putForeignLabel(item string) {
	s.Helper()
	s.inside(func(ctx context.Context, r *stockroom) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stock.LabelName(item)}}
		if err := r.client.Create(ctx, cm); err != nil {
			s.Fatal(err)
		}
	})
}

// many is a file of n items in two categories.
func many(n int) string {
	var text strings.Builder
	for i, c := range []string{"tools", "paint"} {
		fmt.Fprintf(&text,
			"{apiVersion: stock.flyball.dev/v1, kind: Category, metadata: {name: %s}, spec: {prefix: C%c}}\n---\n", c,
			'A'+i)
		for j := range n / 2 {
			fmt.Fprintf(&text,
				"{apiVersion: stock.flyball.dev/v1, kind: Item, metadata: {name: %s-%d}, spec: {category: %s, "+
					"quantity: %d, unitPrice: 3}}\n---\n", c, j, c, j)
		}
	}
	return text.String()
}

// TestInterrupted: a signal while labels are printed. Those are finished and noted, what nobody came to is named, the
// exit code is 1, and the next call does the rest.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := command(t, "apply", "-f", "-", "--store", s.store, "--print-delay", "300ms", "--workers", "2", "--progress")
	c.Stdin = strings.NewReader(many(12))
	out, errs := started(t, c, "printed ")
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, text := exit(t, c, out), errs.all()+out.String()
	s.says(words("apply, interrupted"), code, 1, text, "Left: item default/", "items: stopped by interrupt, ",
		" left; items run goes on with them", "progress: ", " in flight")
	printed := strings.Count(text, "printed ")
	s.inside(func(ctx context.Context, r *stockroom) {
		var labels corev1.ConfigMapList
		if err := r.client.List(ctx, &labels); err != nil {
			t.Fatal(err)
		}
		if len(labels.Items) != printed {
			t.Errorf("%d labels were printed, and %d noted", printed, len(labels.Items))
		}
	})
	s.ok(words("run"), fmt.Sprintf("Created %d configmaps", 12-printed))
	s.sound(12)
}

// TestInterruptedTwice: the second signal ends it at once.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := command(t, "apply", "-f", "-", "--store", s.store, "--print-delay", "1m", "--progress")
	c.Stdin = strings.NewReader(many(4))
	out, _ := started(t, c, "4 in flight")
	for range 2 {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // signals within a second are one
	}
	began := time.Now()
	if code := exit(t, c, out); code != 1 || time.Since(began) > 8*time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(began))
	}
	s.ok(words("run"), "Created 4 configmaps")
	s.sound(4)
}

// TestKilled: the tool is killed at random moments, over and over, at whatever it is at; FLYBALL_KILLS says how
// often. The last call, which is left alone, comes to the same state as one that was never disturbed, and one more
// has nothing to do.
func TestKilled(t *testing.T) {
	kit.Guard(t)
	t.Parallel()
	const items = 20
	rounds := 2
	if text := os.Getenv("FLYBALL_KILLS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newShop(t)
	unharmed := 0
	for round := range rounds {
		c := command(t, "apply", "-f", "-", "--store", s.store, "--print-delay", "50ms", "--progress")
		c.Stdin = strings.NewReader(many(items))
		begun := "progress: " // it has applied everything, and works
		if round%3 == 0 {
			begun = "" // it may not have opened the store yet
		}
		out, _ := started(t, c, begun)
		time.Sleep(rand.N(150 * time.Millisecond))
		_ = c.Process.Kill()
		if exit(t, c, out) == 0 {
			unharmed++
		}
	}
	t.Logf("%d kills, %d of them too late", rounds, unharmed)
	code := 0
	var out, errs bytes.Buffer
	if code = run(t.Context(), []string{"apply", "-f", "-", "--store", s.store}, strings.NewReader(many(items)), &out,
		&errs); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	s.sound(items)
	s.ok(words("run"), "Nothing changed.")
}

// sound fails the test unless every item of many is shelved with a number of its own, and the sums are right.
func (s *shop) sound(items int) {
	s.Helper()
	s.inside(func(ctx context.Context, r *stockroom) {
		all, err := inventoryOf(ctx, r.client)
		if err != nil {
			s.Fatal(err)
		}
		skus, quantity := map[string]bool{}, map[string]int64{}
		for _, i := range all.Items {
			var label corev1.ConfigMap
			key := client.ObjectKey{Namespace: namespace, Name: stock.LabelName(i.Name)}
			if err := r.client.Get(ctx, key, &label); err != nil || label.Data["sku"] != i.Status.SKU ||
				i.Status.Phase != api.Shelved || skus[i.Status.SKU] {
				s.Errorf("%s: %+v, label %v, %v", i.Name, i.Status, label.Data, err)
			}
			skus[i.Status.SKU] = true
			quantity[i.Spec.Category] += i.Spec.Quantity
		}
		if len(all.Items) != items || len(all.Categories) != 2 {
			s.Errorf("%d items, %d categories", len(all.Items), len(all.Categories))
		}
		for _, c := range all.Categories {
			if got := c.Status; got.Issued != int64(items/2) || got.Items != int64(items/2) ||
				got.Quantity != quantity[c.Name] || got.Value != 3*quantity[c.Name] || len(got.Numbers) != items/2 {
				s.Errorf("category %s: %+v", c.Name, got)
			}
		}
	})
}

// pipe is what a process writes to its standard error.
type pipe struct {
	*bufio.Reader
	t    *testing.T
	read string
}

// all is everything, up to the end.
func (p *pipe) all() string {
	text, err := io.ReadAll(p.Reader)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Error(err)
	}
	return p.read + string(text)
}

// started starts a process and returns when it has written that, "" being at once.
func started(t *testing.T, c *exec.Cmd, sign string) (out *bytes.Buffer, errs *pipe) {
	t.Helper()
	out = &bytes.Buffer{}
	c.Stdout = out
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = r.Close()
	})
	errs = &pipe{Reader: bufio.NewReader(r), t: t}
	for sign != "" && !strings.Contains(errs.read, sign) {
		line, err := errs.ReadString('\n')
		if errs.read += line; err != nil {
			t.Fatalf("it never says %q, but %q", sign, errs.read)
		}
	}
	return out, errs
}

// exit waits for the process; -1 is the code of one that was killed.
func exit(t *testing.T, c *exec.Cmd, out *bytes.Buffer) int {
	t.Helper()
	err := c.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%v\n%s", err, out)
	}
	return c.ProcessState.ExitCode()
}

// TestStory: what make run tells is true, and ends with a line that says what was shown.
func TestStory(t *testing.T) {
	t.Parallel()
	c := exec.Command("bash", "./story.sh")
	c.Env = append(os.Environ(), asCommand+"=1", "ITEMS="+os.Args[0])
	out, err := c.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || !strings.HasPrefix(lines[len(lines)-1], "Shown: ") {
		t.Errorf("%v\n%s", err, out)
	}
}
