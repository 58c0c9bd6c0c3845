package suites

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// swap replaces the calls of a constructor in one of a suite's files: those of New of the named package.
type swap struct {
	file, of string
	// shell is for specs that use fields of the manager, or of its options, that are not exported: their manager is
	// made by the shell.
	shell bool
}

// edit replaces what matches an expression in a file of controller-runtime's, as often as it is there. The path is
// below its folder pkg; new may name groups of the match.
type edit struct {
	path, old, new string
}

// defaults are the edits for what managers and controllers make where their options name nothing.
var defaults = []edit{
	{"cluster/cluster.go", `options\.NewCache = cache\.New\b`, "options.NewCache = FlyballNewCache"},
	{"cluster/cluster.go", `options\.NewClient = client\.New\b`, "options.NewClient = FlyballNewClient"},
	{
		"controller/controller.go", `return priorityqueue\.New\(controllerName,`,
		"if f, ok := FlyballNewQueue.(func(string, workqueue.TypedRateLimiter[request]) " +
			"workqueue.TypedRateLimitingInterface[request]); ok {\n" +
			"return f(controllerName, rateLimiter)\n}\nreturn priorityqueue.New(controllerName,",
	},
}

// hooks are the added files that declare what the edits of [defaults] call. Packages of controller-runtime cannot
// import Flyball's parts, which import them: they call a variable, which the suite's external test package sets.
var hooks = map[string]string{
	"cluster/flyball.go": "package cluster\n\nimport (\n\t\"" + module + "/cache\"\n\t\"" + module +
		"/client\"\n)\n\n" +
		"var (\n\tFlyballNewCache cache.NewCacheFunc = cache.New\n\tFlyballNewClient client.NewClientFunc = " +
		"client.New\n)\n",
	"controller/flyball.go":        "package controller\n\nvar FlyballNewQueue any\n",
	"webhook/admission/flyball.go": admissionHooks,
}

// module is the path of controller-runtime's packages.
const module = "sigs.k8s.io/controller-runtime/pkg"

// change makes the edits of all suites in a copy of controller-runtime. Folder is that of the copy's packages. (go
// test -overlay would spare the copy, but it refuses files of the module cache.)
func change(folder string) error {
	edits, files := slices.Concat(defaults, shellEdits, webhookEdits), maps.Clone(hooks)
	files["manager/flyball.go"] = shell
	for i := range suites {
		if len(suites[i].parts) == 0 {
			continue
		}
		own, more, err := suites[i].edits(folder)
		if err != nil {
			return err
		}
		edits = append(edits, own...)
		maps.Copy(files, more)
	}
	for _, e := range edits {
		name := filepath.Join(folder, e.path)
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("swap in %s: %w", e.path, err)
		}
		old := regexp.MustCompile(e.old)
		if !old.Match(text) {
			return fmt.Errorf(
				"controller-runtime's %s has nothing that matches %q any more: the replacement has to be written anew",
				e.path, e.old,
			)
		}
		if err := os.WriteFile(name, old.ReplaceAll(text, []byte(e.new)), 0o600); err != nil {
			return err
		}
	}
	internal := filepath.Join(folder, "manager/internal.go")
	text, err := os.ReadFile(internal)
	if err != nil {
		return err
	}
	if err := os.WriteFile(internal, []byte(delegate(string(text))), 0o600); err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// edits returns the edits of the suite's own files, and the files to add to its folder: one of its external test
// package, which imports Flyball's parts, and one of the package itself, which cannot.
func (s *suite) edits(folder string) ([]edit, map[string]string, error) {
	name := filepath.Base(s.path)
	var edits []edit
	inner, external := goFile{name: name}, goFile{name: name + "_test", imports: []string{
		"inner " + strconv.Quote(module+"/"+s.path), "theirCluster " + strconv.Quote(module+"/cluster"),
		"theirController " + strconv.Quote(module+"/controller"),
		"theirWebhook " + strconv.Quote(module+"/webhook"),
		"theirConversion " + strconv.Quote(module+"/webhook/conversion"),
		strconv.Quote("github.com/flyball-dev/flyball/peers/suites/parts"),
	}}
	set := []string{
		"theirCluster.FlyballNewCache, theirCluster.FlyballNewClient = parts.NewCache, parts.NewClient",
		"theirController.FlyballNewQueue = parts.Queue()",
		"theirWebhook.FlyballNewServer = parts.WebhookServer()",
		"theirConversion.FlyballNewHandler = parts.ConversionHandler()",
		"theirConversion.FlyballIsConvertible = parts.IsConvertible()",
		"inner.FlyballIsHere = true",
	}
	if s.path == "webhook/admission" {
		set = append(set, setAdmission)
	}
	inManager := "inner"
	if s.path != "manager" && slices.ContainsFunc(s.swaps, func(w swap) bool { return w.shell }) {
		inManager = "theirManager"
		external.imports = append(external.imports, inManager+" "+strconv.Quote(module+"/manager"))
	}
	inner.declare("FlyballIsHere bool") // so that the external file has a use for its import in any case
	for _, w := range s.swaps {
		path := s.path + "/" + w.file
		text, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil {
			return nil, nil, fmt.Errorf("swap in %s: %w", path, err)
		}
		constructor := "New" + strings.ToUpper(w.of[:1]) + w.of[1:]
		variable := "Flyball" + constructor
		e := edit{path, `\b` + w.of + `\.New\b`, variable}
		if w.shell {
			set = append(set, inManager+".FlyballManager = parts."+constructor)
		}
		switch {
		case w.shell && w.of != name:
			e.new = w.of + "." + variable
		case bytes.Contains(text, []byte("\npackage "+name+"_test\n")):
			external.declare(variable + " = parts." + constructor)
		case w.of == name:
			e = edit{path, `= New\(`, "= " + variable + "("} // It is manager, and its variable is in the shell.
		default:
			inner.imports = append(inner.imports, strconv.Quote(module+"/"+w.of))
			inner.declare(variable + " = " + w.of + ".New")
			set = append(set, "inner."+variable+" = parts."+constructor)
		}
		edits = append(edits, e)
	}
	external.rest = "func init() {\n\t" + strings.Join(set, "\n\t") + "\n}\n"
	return edits, map[string]string{
		s.path + "/flyball_test.go": inner.String(), s.path + "/flyball_external_test.go": external.String(),
	}, nil
}

// goFile is a Go file to be written.
type goFile struct {
	name          string
	imports, vars []string
	rest          string
}

// declare adds a variable, once.
func (f *goFile) declare(v string) {
	if !slices.Contains(f.vars, v) {
		f.vars = append(f.vars, v)
	}
}

func (f *goFile) String() string {
	imports := slices.Compact(slices.Sorted(slices.Values(f.imports)))
	return "package " + f.name + "\n\nimport (\n\t" + strings.Join(imports, "\n\t") + "\n)\n\nvar (\n\t" +
		strings.Join(f.vars, "\n\t") + "\n)\n\n" + f.rest
}
