package ciconfig

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/reconcile"
)

// write puts files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	metadata  = "metadata: {org: o, repo: r, branch: main}\n"
	promoting = metadata + `
images: [{to: a}, {to: b}, {to: c}]
promotion:
  to:
  - {namespace: ns, name: "4.21", excluded_images: [b], additional_images: {extra: src}}
  - {namespace: ns, name: none, excluded_images: ["*"], additional_images: {only: src}}
  - {namespace: ns, name: halted, disabled: true}
  - {namespace: ns}
`
)

func texts(refs []imagestreamtag.Ref) (out []string) {
	for _, r := range refs {
		out = append(out, r.String())
	}
	return out
}

func TestPromoted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"o/r/o-r-main.yaml": promoting, "o/r/README.md": "not: [yaml"})
	a, err := New(dir, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	configs := a.Promoters(imagestreamtag.Ref{Namespace: "ns", Stream: "halted", Tag: "a"})
	if len(configs) != 1 {
		t.Fatalf("a disabled promoter is found by its tag: %v", configs)
	}
	if got, want := texts(configs[0].Promoted()),
		[]string{"ns/4.21:a", "ns/4.21:c", "ns/4.21:extra", "ns/none:only"}; !reflect.DeepEqual(got, want) {
		t.Errorf("promoted %v, want %v", got, want)
	}
}

func TestPromotionJob(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"jobs.yaml": `
postsubmits:
  o/r:
  - {name: unit, branches: [main]}
  - {name: main-images, branches: ["^main$"], labels: {promotes: "true"}}
  - {name: release-images, branches: ["^release-"], skip_branches: ["-old$"], labels: {promotes: "true"}}
  o/twice:
  - {name: one, labels: {promotes: "true"}}
  - {name: two, labels: {promotes: "true"}}
`})
	a, err := New("", dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for branch, want := range map[string]string{
		"r@main": "main-images", "r@release-4": "release-images", "r@release-4-old": "no promotion job",
		"r@maintenance": "no promotion job",
		"twice@main":    "several promotion jobs: one, two", "other@main": "no promotion job",
	} {
		repo, branch, _ := strings.Cut(branch, "@")
		job, err := a.PromotionJob("o", repo, branch, "promotes")
		if got := map[bool]string{true: "?"}[job == nil && err == nil]; got != "" || job != nil && job.Name != want ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s@%s: %v, %v; want %s", repo, branch, job, err, want)
		}
	}
}

func TestUnusableConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"metadata: {org: o}": "org, repo and branch are required",
		"meta: {org: o}":     `unknown field "meta"`,
		"a: b: c":            "yaml",
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"x.yaml": text})
		if _, err := New(dir, "", Options{}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := New(filepath.Join(t.TempDir(), "nowhere"), "", Options{}); err == nil {
		t.Error("a folder that does not exist is accepted")
	}
}

// A change is in force after the interval, and the source tells of what was added; a broken one is named in health,
// the old stays in force; what is taken away is not told of. The files stand behind links, as a ConfigMap's do.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		version := func(name, text string) {
			write(t, dir, map[string]string{"..versions/" + name + "/o-r-main.yaml": text})
			_ = os.Remove(filepath.Join(dir, "..data"))
			if err := os.Symlink(filepath.Join("..versions", name), filepath.Join(dir, "..data")); err != nil {
				t.Fatal(err)
			}
		}
		version("1", metadata+"base_images: {cli: {namespace: ocp, name: '4.21', tag: cli}}")
		if err := os.Symlink("..data/o-r-main.yaml", filepath.Join(dir, "o-r-main.yaml")); err != nil {
			t.Fatal(err)
		}
		a, err := New(dir, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		c := reconcile.New("test",
			reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
				got = append(got, key)
				return reconcile.Result{}, nil
			}), reconcile.Options[string]{})
		if err := c.Watch(
			Added(a, ByTestInput, func(_ context.Context, key string) []string { return []string{key} }),
		); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error, 2)
		go func() { done <- a.Run(ctx) }()
		go func() { done <- c.Run(ctx) }()
		want := func(keys ...string) {
			t.Helper()
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if slices.Sort(got); !slices.Equal(got, keys) {
				t.Errorf("told of %v, want %v", got, keys)
			}
			got = nil
		}
		want("ocp/4.21:cli")
		version("2", metadata+
			"base_images: {cli: {namespace: ocp, name: '4.21', tag: cli}, b: {namespace: ocp, name: b, tag: "+
			"t}}\ntag_specification: {namespace: ocp, name: '4.22'}")
		want("imagestream_ocp/4.22", "ocp/b:t")
		if !a.IsTestInput(imagestreamtag.Ref{Namespace: "ocp", Stream: "4.22", Tag: "any"}) {
			t.Error("a tag of a stream that is an input is none")
		}
		version("3", "broken")
		want()
		if a.Health() == nil || !a.IsTestInput(imagestreamtag.Ref{Namespace: "ocp", Stream: "b", Tag: "t"}) {
			t.Errorf("health %v; the last usable configuration must stay in force", a.Health())
		}
		version("4", metadata+"build_root: {image_stream_tag: {namespace: ocp, name: b, tag: t}}")
		want()
		if a.Health() != nil || a.IsTestInput(imagestreamtag.Ref{Namespace: "ocp", Stream: "4.21", Tag: "cli"}) {
			t.Errorf("health %v; what was taken away is still there", a.Health())
		}
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
