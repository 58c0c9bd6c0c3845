package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/github"
	"github.com/flyball-dev/flyball/examples/operators/ci/promotion"
	"github.com/flyball-dev/flyball/localapi"
)

// branches is a GitHub that counts what it is asked.
type branches struct {
	mu    sync.Mutex
	refs  map[string]any // "org/repo@branch": a commit, or an error
	asked map[string]int
}

func (b *branches) GetRef(_ context.Context, org, repo, ref string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := org + "/" + repo + "@" + strings.TrimPrefix(ref, "heads/")
	b.asked[key]++
	switch answer := b.refs[key].(type) {
	case string:
		return answer, nil
	case error:
		return "", answer
	}
	return "", github.ErrNotFound
}

func (b *branches) set(key string, answer any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refs[key] = answer
}

func (b *branches) count(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[key]
}

type promotionWorld struct {
	*World
	dir    string
	github *branches
	o      promotion.Options
}

// jobs has a promotion job for the branches main and release-1 of every repository of the tests.
const jobs = `
postsubmits:
  o/r: &jobs
  - {name: unit-tests, branches: [main]}
  - {name: main-images, cluster: build01, branches: ["^main$"], labels: {ci-operator.openshift.io/is-promotion: "true"}}
  o/s: *jobs
  o/.github: *jobs
`

func inPromotion(t *testing.T, test func(w *promotionWorld)) {
	t.Helper()
	dir := t.TempDir()
	In(t, func(w *World) {
		x := &promotionWorld{w, dir, &branches{refs: map[string]any{}, asked: map[string]int{}}, promotion.Options{}}
		x.write("jobs/jobs.yaml", jobs)
		x.write("config/none.yaml", "metadata: {org: o, repo: none, branch: main}")
		test(x)
	}, Hub)
}

func (w *promotionWorld) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	w.Must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.Must(os.WriteFile(path, []byte(text), 0o600))
}

// promotes configures a repository that promotes images to ocp/STREAM.
func (w *promotionWorld) promotes(repo, stream string, images ...string) {
	w.Helper()
	text := "metadata: {org: o, repo: " + repo + ", branch: main}\npromotion: {to: [{namespace: ocp, name: '" +
		stream + "'}]}\nimages:\n"
	for _, image := range images {
		text += "- {to: " + image + "}\n"
	}
	w.write("config/"+repo+"-"+stream+".yaml", text)
}

func (w *promotionWorld) start() (stop func()) {
	w.Helper()
	agent, err := ciconfig.New(filepath.Join(w.dir, "config"), filepath.Join(w.dir, "jobs"),
		ciconfig.Options{Interval: 30 * time.Second})
	w.Must(err)
	f := w.Fleet()
	w.Must(f.Hub.Manager.Add(agent))
	w.Must(promotion.Add(f, agent, w.github, w.o))
	return w.Go(f.Run)
}

func image(digest, commit string) *api.Image {
	return &api.Image{ObjectMeta: metav1.ObjectMeta{Name: api.ImageName(digest)}, DockerLabels: map[string]string{
		api.CommitLabel: commit, api.SourceLabel: "https://github.com/o/r.git",
	}}
}

func stream(name string, created time.Time, digest string, tags ...string) *api.ImageStream {
	s := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: name}}
	for _, tag := range tags {
		s.Point(tag, api.TagEvent{Created: metav1.NewTime(created), Image: digest})
	}
	return s
}

// point makes a tag point at another image, as a job does.
func (w *promotionWorld) point(name, digest string, tags ...string) {
	w.Helper()
	s := Get(w.World, Hub, "ocp", name, &api.ImageStream{})
	for _, tag := range tags {
		s.Point(tag, api.TagEvent{Created: metav1.Now(), Image: digest})
	}
	w.Must(w.Client.Status().Update(w.Ctx, s))
}

// wantJobs says which jobs there are, "repo@commit state".
func (w *promotionWorld) wantJobs(want ...string) {
	w.Helper()
	got := map[string]int{}
	for _, j := range w.Jobs() {
		got[fmt.Sprintf("%s@%s %s", j.Spec.Refs.Repo, j.Spec.Refs.BaseSHA, j.Status.State)]++
	}
	for _, text := range want {
		got[text]--
	}
	for text, n := range got {
		if n != 0 {
			w.Errorf("of %q there are %d too many", text, n)
		}
	}
}

func (w *promotionWorld) finish(state api.ProwJobState) {
	w.Helper()
	for _, j := range w.Jobs() {
		if !j.Complete() {
			j.Finish(state, "")
			w.Must(w.Client.Status().Update(w.Ctx, &j))
		}
	}
}

// Twenty tags of one repository fall behind at once: one job. While it runs, nobody creates another; when it has
// ended and the images are still behind, somebody does. When they are not, nothing is written any more.
func TestOneJobForManyTags(t *testing.T) {
	inPromotion(t, func(w *promotionWorld) {
		var tags []string
		for i := range 20 {
			tags = append(tags, fmt.Sprint("component-", i))
		}
		w.promotes("r", "4.21", tags...)
		w.github.set("o/r@main", "B")
		w.o.Metrics = promotion.NewMetrics()
		w.Create(Hub, image("sha256:a", "A"), image("sha256:b", "B"),
			stream("4.21", time.Now(), "sha256:a", tags...))
		stop := w.start()
		time.Sleep(time.Minute)
		w.wantJobs("r@B ")
		job := w.Jobs()[0]
		if job.Spec.Job != "main-images" || job.Spec.Cluster != "build01" || job.Spec.Refs.BaseRef != "main" ||
			job.Labels[api.CreatedByLabel] != promotion.CreatorName {
			t.Errorf("the job is %+v", job)
		}
		w.point("4.21", "sha256:a", tags[0]) // another image of the old commit
		time.Sleep(time.Minute)
		w.wantJobs("r@B ")
		w.finish(api.FailureState)
		w.point("4.21", "sha256:a", tags[1])
		time.Sleep(time.Minute)
		w.wantJobs("r@B failure", "r@B ")
		w.point("4.21", "sha256:b", tags...)
		w.finish(api.SuccessState)
		time.Sleep(time.Minute)
		w.Quiet(time.Hour)
		w.wantJobs("r@B failure", "r@B success")
		stop()
		stop = w.start() // nothing was forgotten
		w.Quiet(time.Hour)
		stop()
		registry := prometheus.NewRegistry()
		w.Must(registry.Register(w.o.Metrics))
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].Metric[0].Counter.GetValue() != 2 {
			t.Errorf("the metrics are %v, %v", families, err)
		}
	})
}

// Source: rows of TestReconcile and TestCommitForIST of openshift/ci-tools.
func TestTags(t *testing.T) {
	const day = 24 * time.Hour
	rows := map[string]struct {
		head     any
		age      time.Duration
		image    *api.Image // of the tag; nil: none
		disabled bool
		job      bool
		asked    int // how often GitHub was asked in an hour; -1: more than twice
	}{
		"behind":         {head: "B", image: image("sha256:a", "A"), job: true, asked: 1},
		"up to date":     {head: "A", image: image("sha256:a", "A"), asked: 1},
		"no such branch": {head: github.ErrNotFound, image: image("sha256:a", "A"), asked: 1},
		"too many refs": {
			head:  fmt.Errorf("x: %w", github.ErrTooManyRefs),
			image: image("sha256:a", "A"), asked: 1,
		},
		"GitHub is down":             {head: errors.New("502"), image: image("sha256:a", "A"), asked: -1},
		"no such branch, an old tag": {head: github.ErrNotFound, age: 16 * day, image: image("sha256:a", "A")},
		"behind, an old tag":         {head: "B", age: 16 * day, image: image("sha256:a", "A")},
		"behind, not so old": {
			head: "B", age: 14 * day, image: image("sha256:a", "A"), job: true,
			asked: 1,
		},
		"behind, disabled":                   {head: "B", image: image("sha256:a", "A"), disabled: true},
		"an image that names no commit":      {head: "B", image: image("sha256:a", "")},
		"an image of which nothing is known": {head: "B"},
		"a manifest list": {head: "B", job: true, asked: 1, image: &api.Image{
			ObjectMeta: metav1.ObjectMeta{Name: "sha256-a"},
			Manifests: []api.ImageManifest{
				{Digest: "sha256:arm", Architecture: "arm64"},
				{Digest: "sha256:amd", Architecture: "amd64"},
			},
		}},
		"a manifest list that is up to date": {head: "A", asked: 1, image: &api.Image{
			ObjectMeta: metav1.ObjectMeta{Name: "sha256-a"},
			Manifests: []api.ImageManifest{
				{Digest: "sha256:arm", Architecture: "arm64"},
				{Digest: "sha256:amd", Architecture: "amd64"},
			},
		}},
	}
	inPromotion(t, func(w *promotionWorld) {
		names := slices.Sorted(maps.Keys(rows))
		w.Create(Hub, image("sha256:arm", "other"), image("sha256:amd", "A"))
		allJobs := "postsubmits:\n"
		for n, name := range names {
			c, repo := rows[name], fmt.Sprint("r", n)
			allJobs += "  o/" + repo + ": [{name: " + repo +
				", labels: {ci-operator.openshift.io/is-promotion: 'true'}}]\n"
			w.promotes(repo, repo, "cli")
			if c.disabled {
				w.write("config/"+repo+"-"+repo+".yaml", "metadata: {org: o, repo: "+repo+
					", branch: main}\npromotion: {to: [{namespace: ocp, name: "+repo+
					", disabled: true}]}\nimages: [{to: cli}]")
			}
			w.github.set("o/"+repo+"@main", c.head)
			if c.image != nil {
				c.image.Name = api.ImageName("sha256:" + repo)
				w.Create(Hub, c.image)
			}
			w.Create(Hub, stream(repo, time.Now().Add(-c.age), "sha256:"+repo, "cli"))
		}
		w.write("jobs/jobs.yaml", allJobs)
		stop := w.start()
		time.Sleep(time.Hour)
		found := map[string]bool{}
		for _, j := range w.Jobs() {
			found[j.Spec.Refs.Repo] = true
		}
		for n, name := range names {
			c, repo := rows[name], fmt.Sprint("r", n)
			if found[repo] != c.job {
				t.Errorf("%s: there is a job: %t", name, found[repo])
			}
			if got := w.github.count("o/" + repo + "@main"); got != c.asked && (c.asked != -1 || got <= 2) {
				t.Errorf("%s: GitHub was asked %d times, want %d", name, got, c.asked)
			}
		}
		stop()
	})
}

// Two configurations promote to one tag: an error that comes again, until one of them is gone.
func TestTwoPromoters(t *testing.T) {
	inPromotion(t, func(w *promotionWorld) {
		w.promotes("r", "4.21", "cli")
		w.promotes("s", "4.21", "cli")
		w.github.set("o/r@main", "B")
		w.github.set("o/s@main", "C")
		w.Create(Hub, image("sha256:a", "A"), stream("4.21", time.Now(), "sha256:a", "cli"))
		stop := w.start()
		time.Sleep(10 * time.Minute)
		w.wantJobs()
		w.Must(os.Remove(filepath.Join(w.dir, "config/s-4.21.yaml")))
		time.Sleep(20 * time.Minute) // the longest backoff
		w.wantJobs("r@B ")
		stop()
	})
}

// Ignored tags are not looked at; those that nobody promotes neither.
func TestIgnored(t *testing.T) {
	inPromotion(t, func(w *promotionWorld) {
		w.promotes("r", "4.21", "cli", "quiet")
		w.github.set("o/r@main", "B")
		w.o.Ignore = []*regexp.Regexp{regexp.MustCompile("^ocp/4.21:quiet$"), regexp.MustCompile("^other/")}
		w.Create(Hub, image("sha256:a", "A"), image("sha256:b", "B"),
			stream("4.21", time.Now(), "sha256:a", "quiet", "unknown"))
		w.point("4.21", "sha256:b", "cli")
		stop := w.start()
		time.Sleep(time.Hour)
		if w.wantJobs(); w.github.count("o/r@main") != 1 {
			t.Errorf("GitHub was asked %d times", w.github.count("o/r@main"))
		}
		stop()
	})
}

// What is configured anew, and has no image yet, gets a job; what has one does not, nor what nobody waits for. A job
// that failed is not repeated when the process starts again.
//
// Source: rows of TestHandleCIOpConfigChange of openshift/ci-tools; there nothing is heard of while the process is
// away.
func TestConfiguredAnew(t *testing.T) {
	inPromotion(t, func(w *promotionWorld) {
		w.github.set("o/r@main", "B")
		w.github.set("o/s@main", github.ErrNotFound)
		w.github.set("o/.github@main", "D")
		w.Create(Hub, image("sha256:b", "B"), stream("4.21", time.Now(), "sha256:b", "there"))
		stop := w.start()
		time.Sleep(time.Minute)
		w.promotes("r", "4.21", "there")
		w.promotes("s", "4.21", "vanished")
		w.write("config/cache.yaml",
			"metadata: {org: o, repo: r, branch: main, variant: cache}\npromotion: {to: [{namespace: build-cache, "+
				"name: x}]}\nimages: [{to: a}]")
		time.Sleep(time.Minute)
		w.wantJobs()
		w.promotes("r", "4.21", "there", "new-1", "new-2")
		w.promotes(".github", "4.20", "x")
		time.Sleep(time.Minute)
		w.wantJobs("r@B ", ".github@D ")
		w.finish(api.FailureState)
		stop()
		w.promotes("r", "4.21", "there", "new-1", "new-2", "new-3")
		stop = w.start()
		time.Sleep(time.Minute)
		w.wantJobs("r@B failure", ".github@D failure")
		w.github.set("o/r@main", "C")
		stop()
		stop = w.start()
		time.Sleep(time.Minute)
		w.wantJobs("r@B failure", ".github@D failure", "r@C ")
		stop()
	})
}

// The answer to the creation is lost; and the process is stopped before it sees what it did. There is one job.
func TestLostAnswerToAJob(t *testing.T) {
	inPromotion(t, func(w *promotionWorld) {
		w.promotes("r", "4.21", "cli")
		w.github.set("o/r@main", "B")
		w.Create(Hub, image("sha256:a", "A"), stream("4.21", time.Now(), "sha256:a", "cli"))
		w.Clusters[Hub].Intercept(
			localapi.Rule{Verb: "create", Resource: "prowjobs", Applied: true, Err: context.DeadlineExceeded},
		)
		for range 3 {
			stop := w.start()
			time.Sleep(10 * time.Second)
			stop()
		}
		w.wantJobs("r@B ")
	})
}
