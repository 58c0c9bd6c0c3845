package archtest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// learningPath are the packages that a learner reads from beginning to end. The controllers are read so, too.
var learningPath = []string{
	"workqueue",
	"informer", "informer/listwatch", "informer/reflector", "informer/deltafifo", "informer/indexer",
	"informer/handler", "informer/objects", "informer/internal/connection", "informer/internal/fanout",
	"informer/internal/wire", "writes", "writes/internal/caches", "internal/wire", "internal/versions",
	"client", "client/controllerutil", "client/internal/cached", "client/internal/kinds",
	"client/internal/live", "client/internal/patches", "reconcile", "reconcile/source",
	"reconcile/handler", "reconcile/internal/feed",
}

// TestLearningPath: the doc.go of a package of the learning path names every file, in the order of reading.
func TestLearningPath(t *testing.T) {
	names, docs := map[string][]string{}, map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		name := filepath.Base(s.path)
		if s.ast.Doc != nil {
			docs[s.dir] += s.ast.Doc.Text()
		} else {
			names[s.dir] = append(names[s.dir], name)
		}
	}
	path := slices.Clone(learningPath)
	for dir := range docs {
		if under(dir, "controllers") && strings.Count(dir, "/") == 1 {
			path = append(path, dir)
		}
	}
	for _, dir := range path {
		var wrong []string
		if docs[dir] == "" {
			wrong = append(wrong, "there is no such package, or it has no package comment")
		}
		for _, name := range names[dir] {
			if !strings.Contains(docs[dir], name) {
				wrong = append(wrong, "doc.go does not name "+name)
			}
		}
		if len(wrong) > 0 {
			t.Errorf("%s: %s", dir, strings.Join(wrong, ", "))
		}
	}
}

// stages are the folders of the informer, and what each may import of the others. The pipeline has one direction: the
// cache does not know the reflector, nor the reflector the cache.
var stages = map[string][]string{
	"informer/handler":            {},
	"informer/objects":            {},
	"informer/internal/broadcast": {},
	"informer/internal/identity":  {"informer/objects"},
	"informer/internal/lean":      {},
	"informer/internal/wire":      {"informer/objects", "informer/internal/lean"},
	"informer/internal/wording":   {},
	"informer/listwatch": {
		"informer/objects", "informer/internal/wire", "informer/internal/lean", "informer/internal/wording",
	},
	"informer/internal/discovered": {"informer/listwatch", "informer/objects", "informer/internal/wire"},
	"informer/deltafifo":           {"informer/objects"},
	"informer/indexer": {
		"informer/deltafifo", "informer/objects", "informer/internal/broadcast", "informer/internal/identity",
	},
	"informer/internal/fanout":   {"informer/handler", "informer/indexer", "informer/internal/identity"},
	"informer/internal/mutation": {"informer/handler", "informer/indexer", "informer/objects"},
	"informer/internal/connection": {
		"informer/listwatch", "informer/objects", "informer/internal/broadcast", "informer/internal/wire",
	},
	"informer/reflector": {
		"informer/listwatch", "informer/deltafifo", "informer/objects", "informer/internal/connection",
		"informer/internal/identity", "informer/internal/wording",
	},
}

// TestStages: the arrows between the stages of the informer.
func TestStages(t *testing.T) {
	for _, s := range sources(t) {
		allowed, isStage := stages[s.dir]
		if s.test || !isStage {
			if under(s.dir, "informer/internal") && !isStage && !s.test {
				t.Errorf("%s: say in stages what it may import", s.dir)
			}
			continue
		}
		for _, spec := range s.ast.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ok := strings.CutPrefix(path, module+"/"); ok && under(own, "informer") &&
				!slices.Contains(allowed, own) {
				t.Errorf("%s imports %s: a stage may import %q", s.path, own, allowed)
			}
		}
	}
}
