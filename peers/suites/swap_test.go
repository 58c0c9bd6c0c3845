package suites

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// swap replaces the calls of a constructor in one of a suite's files: those of New of the named package.
type swap struct {
	file, of string
}

// edit replaces a text in a file of controller-runtime's, as often as it is there. The path is below its folder pkg.
type edit struct {
	path, old, new string
}

// defaults are the edits for what managers and controllers make where their options name nothing.
var defaults = []edit{
	{"cluster/cluster.go", "options.NewCache = cache.New\n", "options.NewCache = FlyballNewCache\n"},
	{"cluster/cluster.go", "options.NewClient = client.New\n", "options.NewClient = FlyballNewClient\n"},
	{
		"controller/controller.go", "return priorityqueue.New(controllerName,",
		"if f, ok := FlyballNewQueue.(func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]); ok {\n" +
			"return f(controllerName, rateLimiter)\n}\nreturn priorityqueue.New(controllerName,",
	},
}

// hooks are the added files that declare what the edits of [defaults] call. Packages of controller-runtime cannot import Flyball's
// parts, which import them: they call a variable, which the suite's external test package sets.
var hooks = map[string]string{
	"cluster/flyball.go": "package cluster\n\nimport (\n\t\"" + module + "/cache\"\n\t\"" + module + "/client\"\n)\n\n" +
		"var (\n\tFlyballNewCache cache.NewCacheFunc = cache.New\n\tFlyballNewClient client.NewClientFunc = client.New\n)\n",
	"controller/flyball.go": "package controller\n\nvar FlyballNewQueue any\n",
}

// module is the path of controller-runtime's packages.
const module = "sigs.k8s.io/controller-runtime/pkg"

// overlay writes the changed and the added files into dir and returns the file for go test -overlay. Folder is that of
// controller-runtime's packages.
func overlay(folder, dir string, s *suite) (string, error) {
	texts := maps.Clone(hooks) // by path below folder
	edits, more, err := s.edits(folder)
	if err != nil {
		return "", err
	}
	maps.Copy(texts, more)
	for _, e := range append(slices.Clone(defaults), edits...) {
		text, ok := texts[e.path]
		if !ok {
			original, err := os.ReadFile(filepath.Join(folder, e.path))
			if err != nil {
				return "", fmt.Errorf("swap in %s: %w", e.path, err)
			}
			text = string(original)
		}
		if !strings.Contains(text, e.old) {
			return "", fmt.Errorf("controller-runtime's %s has no %q any more: the replacement has to be written anew", e.path, e.old)
		}
		texts[e.path] = strings.ReplaceAll(text, e.old, e.new)
	}
	replace := map[string]string{}
	for path, text := range texts {
		name := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(folder, path)] = name
	}
	out, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, out, 0o600)
}

// edits returns the edits of the suite's own files, and the files to add to its folder: one of its external test package, which
// imports Flyball's parts, and one of the package itself if a call is there.
func (s *suite) edits(folder string) ([]edit, map[string]string, error) {
	name := filepath.Base(s.path)
	var edits []edit
	inner, external := fileOf{name: name}, fileOf{name: name + "_test", imports: []string{
		"inner " + strconv.Quote(module+"/"+s.path), "theirCluster " + strconv.Quote(module+"/cluster"),
		"theirController " + strconv.Quote(module+"/controller"), strconv.Quote("github.com/flyball-dev/flyball/peers/suites/parts"),
	}}
	set := []string{
		"theirCluster.FlyballNewCache, theirCluster.FlyballNewClient = parts.NewCache, parts.NewClient",
		"theirController.FlyballNewQueue = parts.Queue()",
	}
	for _, w := range s.swaps {
		path := s.path + "/" + w.file
		text, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil {
			return nil, nil, fmt.Errorf("swap in %s: %w", path, err)
		}
		constructor := "New" + strings.ToUpper(w.of[:1]) + w.of[1:]
		variable := "Flyball" + constructor
		e := edit{path, w.of + ".New(", variable + "("}
		switch {
		case bytes.Contains(text, []byte("\npackage "+name+"_test\n")):
			external.declare(variable + " = parts." + constructor)
		case w.of == name:
			e = edit{path, "= New(", "= " + variable + "("}
			inner.declare(variable + " = New")
			set = append(set, "inner."+variable+" = parts."+constructor)
		default:
			inner.imports = append(inner.imports, strconv.Quote(module+"/"+w.of))
			inner.declare(variable + " = " + w.of + ".New")
			set = append(set, "inner."+variable+" = parts."+constructor)
		}
		edits = append(edits, e)
	}
	inner.declare("FlyballIsHere bool") // so that the external file has a use for its import in any case
	external.rest = "func init() {\n\t" + strings.Join(set, "\n\t") + "\n\tinner.FlyballIsHere = true\n}\n"
	return edits, map[string]string{
		s.path + "/flyball_test.go": inner.String(), s.path + "/flyball_external_test.go": external.String(),
	}, nil
}

// fileOf is a Go file to be written.
type fileOf struct {
	name          string
	imports, vars []string
	rest          string
}

// declare adds a variable, once.
func (f *fileOf) declare(v string) {
	if !slices.Contains(f.vars, v) {
		f.vars = append(f.vars, v)
	}
}

func (f *fileOf) String() string {
	slices.Sort(f.imports)
	return "package " + f.name + "\n\nimport (\n\t" + strings.Join(slices.Compact(f.imports), "\n\t") + "\n)\n\nvar (\n\t" +
		strings.Join(f.vars, "\n\t") + "\n)\n\n" + f.rest
}
