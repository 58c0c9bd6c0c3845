package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/plural"
)

// projectFile records what was created. It has the form of kubebuilder's file, so that tools that read that can read
// ours.
const projectFile = "PROJECT"

const projectHead = `# Written by flyball: it records what flyball init and flyball create have made.
`

// layout names our plugin. With it, kubebuilder does not add code for controller-runtime to the project.
const layout = "flyball.dev/v1"

// project is the content of the file PROJECT. Fields that flyball does not know stay in it.
type project struct {
	fields map[string]any
}

func newProject(n names, domain string) *project {
	return &project{map[string]any{
		"domain": domain, "layout": []any{layout}, "projectName": n.project, "repo": n.module, "version": "3",
	}}
}

// readProject reads the file of the project in dir.
func readProject(dir string) (*project, error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no go.mod: run this in the root of a project, which flyball init makes", dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, projectFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no file %s: run this in the root of a project, which flyball init makes", dir,
			projectFile)
	}
	if err != nil {
		return nil, err
	}
	p := &project{}
	if err := yaml.Unmarshal(text, &p.fields); err != nil {
		return nil, fmt.Errorf("%s: %w", projectFile, err)
	}
	if p.text("repo") == "" {
		return nil, fmt.Errorf("%s: it does not have the field repo, the path of the module", projectFile)
	}
	return p, nil
}

// openProject reads the file of a project of flyball, and checks that there is a go command.
func openProject(ctx context.Context, dir string, fetchDeps bool) (*project, error) {
	p, err := readProject(dir)
	if err == nil && p.ofKubebuilder() {
		err = errors.New("PROJECT has the layout of kubebuilder: run flyball migrate first")
	}
	if err != nil {
		return nil, err
	}
	return p, checkGo(ctx, dir, fetchDeps)
}

func (p *project) ofKubebuilder() bool {
	return strings.Contains(fmt.Sprint(p.fields["layout"]), "kubebuilder")
}

func (p *project) text(field string) string {
	text, _ := p.fields[field].(string)
	return text
}

// resources returns the kinds of the project.
func (p *project) resources() (all []map[string]any) {
	list, _ := p.fields["resources"].([]any)
	for _, item := range list {
		if r, ok := item.(map[string]any); ok {
			all = append(all, r)
		}
	}
	return all
}

// names returns the project's names, with those of a kind. The first group of a project has folders without its name;
// those of any further one, and all groups of a project with multigroup from its beginning, are named after it.
func (p *project) names(group, version, kind string) names {
	n := names{
		module: p.text("repo"), project: p.text("projectName"), domain: p.text("domain"),
		shortGroup: group, version: version, kind: kind,
	}
	if n.project == "" {
		n.project = projectName(n.module)
	}
	n.group = strings.Trim(group+"."+n.domain, ".")
	n.nested = p.multigroup()
	mine := false
	for _, r := range p.resources() {
		at, _ := r["path"].(string)
		switch {
		case r["api"] == nil:
		case r["group"] == group:
			mine, n.nested = true, strings.HasPrefix(at, n.module+"/api/"+group+"/")
		case !mine:
			n.nested = true
		}
	}
	return n
}

// multigroup reports whether the folders of all groups are named after them.
func (p *project) multigroup() bool {
	all, _ := p.fields["multigroup"].(bool)
	return all
}

// own completes the names of a kind that the project has: the plural and the scope are those of its first version, if
// nothing else was said.
func (p *project) own(n names) (names, error) {
	first := p.find(n)
	if first == nil || first["api"] == nil {
		first = p.version(n, p.firstVersion(n))
	}
	inherited, _ := first["plural"].(string)
	if first != nil && n.plural != "" && n.plural != cmp.Or(inherited, plural.Of(n.kind)) {
		return n, fmt.Errorf("--plural %q: %s is %s in its other version: all versions have the same plural", n.plural,
			n.kind, cmp.Or(inherited, plural.Of(n.kind)))
	}
	n.plural = cmp.Or(n.plural, inherited, plural.Of(n.kind))
	if api, _ := first["api"].(map[string]any); api != nil {
		namespaced, _ := api["namespaced"].(bool)
		if n.cluster && namespaced {
			return n, fmt.Errorf("--namespaced=false: %s is in namespaces: all versions have the same scope", n.kind)
		}
		n.cluster = !namespaced
	}
	return n, nil
}

// find returns the record of a kind, or nil.
func (p *project) find(n names) map[string]any { return p.version(n, n.version) }

// version returns the record of another version of a kind, or nil.
func (p *project) version(n names, version string) map[string]any {
	for _, r := range p.resources() {
		if r["group"] == n.shortGroup && r["version"] == version && r["kind"] == n.kind {
			return r
		}
	}
	return nil
}

// firstVersion returns the version in which a kind was created first, if that is another one, or "".
func (p *project) firstVersion(n names) string {
	for _, other := range p.versions(n) {
		if other.version != n.version {
			return other.version
		}
	}
	return ""
}

// versions returns the names of a kind in all its versions.
func (p *project) versions(n names) (all []names) {
	for _, r := range p.resources() {
		if r["api"] != nil && r["group"] == n.shortGroup && r["kind"] == n.kind {
			n.version, _ = r["version"].(string)
			all = append(all, n)
		}
	}
	return all
}

// record returns the record of a kind, a new one if there is none.
func (p *project) record(n names) map[string]any {
	if r := p.find(n); r != nil {
		return r
	}
	r := map[string]any{
		"group": n.shortGroup, "version": n.version, "kind": n.kind,
		"path": cmp.Or(n.external, n.module+"/"+n.in("api", n.version)),
	}
	switch domain := strings.TrimPrefix(strings.TrimPrefix(n.group, n.shortGroup), "."); {
	case n.core:
		r["core"] = true
	case domain != "":
		r["domain"] = domain
	}
	if n.external != "" && !n.core {
		r["external"] = true
	}
	if n.plural != plural.Of(n.kind) {
		r["plural"] = n.plural
	}
	list, _ := p.fields["resources"].([]any)
	p.fields["resources"] = append(list, r)
	return r
}

// save adds the file to a change.
func (p *project) save(c *change) error {
	old, _, err := c.read(projectFile)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(p.fields)
	c.write(projectFile, old, append([]byte(projectHead), text...))
	return err
}
