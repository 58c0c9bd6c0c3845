package scaffold

import (
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

// readOneGroup reads the file of the project in dir. Errors: those of readProject; a layout for several groups, whose
// folders are others.
func readOneGroup(dir string) (*project, error) {
	p, err := readProject(dir)
	if err != nil {
		return nil, err
	}
	if several, _ := p.fields["multigroup"].(bool); several {
		return nil, fmt.Errorf("%s: multigroup is not supported: flyball creates kinds of one group only", projectFile)
	}
	return p, nil
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

// names returns the project's names, with those of a kind.
func (p *project) names(group, version, kind string) names {
	n := names{module: p.text("repo"), project: p.text("projectName"), shortGroup: group, version: version, kind: kind}
	if n.project == "" {
		n.project = projectName(n.module)
	}
	n.group = strings.Trim(group+"."+p.text("domain"), ".")
	return n
}

// find returns the record of a kind, or nil.
func (p *project) find(n names) map[string]any {
	for _, r := range p.resources() {
		if r["group"] == n.shortGroup && r["version"] == n.version && r["kind"] == n.kind {
			return r
		}
	}
	return nil
}

// firstVersion returns the version in which a kind was created first, if that is another one, or "".
func (p *project) firstVersion(n names) string {
	for _, r := range p.resources() {
		if r["api"] != nil && r["group"] == n.shortGroup && r["kind"] == n.kind && r["version"] != n.version {
			version, _ := r["version"].(string)
			return version
		}
	}
	return ""
}

// record returns the record of a kind, a new one if there is none.
func (p *project) record(n names) map[string]any {
	if r := p.find(n); r != nil {
		return r
	}
	r := map[string]any{
		"group": n.shortGroup, "version": n.version, "kind": n.kind, "path": n.module + "/api/" + n.version,
	}
	if domain := p.text("domain"); domain != "" {
		r["domain"] = domain
	}
	if n.plural != plural.Of(n.kind) {
		r["plural"] = n.plural
	}
	list, _ := p.fields["resources"].([]any)
	p.fields["resources"] = append(list, r)
	return r
}

func (p *project) marshal() ([]byte, error) {
	text, err := yaml.Marshal(p.fields)
	return append([]byte(projectHead), text...), err
}

// save adds the file to a change.
func (p *project) save(c *change) error {
	old, exists, err := c.read(projectFile)
	if err != nil {
		return err
	}
	text, err := p.marshal()
	if err != nil {
		return err
	}
	if !exists {
		c.put(projectFile, text, "create")
		return nil
	}
	c.extend(projectFile, old, text)
	return nil
}
