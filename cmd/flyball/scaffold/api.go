package scaffold

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/flyball-dev/flyball/internal/plural"
)

// rolePath is the role of the manager, which controller-gen writes.
const rolePath = "config/rbac/role.yaml"

// APIOptions configures [CreateAPI].
type APIOptions struct {
	// Dir is the root of the project.
	Dir string
	// Group, Version and Kind name the kind. Group is without the domain.
	Group, Version, Kind string
	// Plural is the name of the resource. Empty means the English plural.
	Plural string
	// Force replaces files that exist.
	Force bool
	// FetchDeps runs go mod tidy at the end.
	FetchDeps bool
	// Out receives a report.
	Out io.Writer
}

// Validate checks what the user has named.
func (o APIOptions) Validate() error {
	return checkKind(names{
		shortGroup: o.Group, group: o.Group, version: o.Version, kind: o.Kind,
		plural: cmp.Or(o.Plural, plural.Of(o.Kind)),
	})
}

// CreateAPI adds a kind to a project: its type, its definition, a controller, tests, roles and a sample. A further
// version of a kind begins as a copy of the first, which stays the one that is stored. Files that exist are kept.
// Errors: no project; invalid names; a kind that exists. Nothing is written then.
func CreateAPI(ctx context.Context, o APIOptions) error {
	p, err := readOneGroup(o.Dir)
	if err != nil {
		return err
	}
	n := p.names(o.Group, o.Version, o.Kind)
	n.plural = cmp.Or(o.Plural, plural.Of(o.Kind))
	if err := checkKind(n); err != nil {
		return err
	}
	if err := checkNew(p, n, o.Force); err != nil {
		return err
	}
	if o.FetchDeps {
		if err := checkGo(ctx, o.Dir); err != nil {
			return err
		}
	}
	c := &change{dir: o.Dir, force: o.Force}
	next := fmt.Sprintf("Next: make test; then write your fields into api/%s/%s_types.go", n.version,
		strings.ToLower(n.kind))
	first := p.firstVersion(n)
	r := p.record(n)
	r["api"] = map[string]any{"crdVersion": "v1", "namespaced": true}
	if first != "" {
		next = fmt.Sprintf("Next: flyball create webhook --group %s --version %s --kind %s --conversion --spoke %s; "+
			"then write your fields into api/%[4]s/%s_types.go", n.shortGroup, first, n.kind, n.version,
			strings.ToLower(n.kind))
		err = addVersion(c, n, first)
	} else {
		r["controller"] = true
		err = addKind(c, n)
	}
	if err != nil {
		return err
	}
	if err := p.save(c); err != nil {
		return err
	}
	return c.finish(ctx, o.FetchDeps, o.Out, next)
}

// checkNew rejects a kind that exists in this version, and a group beside another one.
func checkNew(p *project, n names, force bool) error {
	if r := p.find(n); r != nil && r["api"] != nil && !force {
		return fmt.Errorf("%s %s %s exists already; --force writes its files anew", n.group, n.version, n.kind)
	}
	for _, r := range p.resources() {
		group, _ := r["group"].(string)
		if r["api"] != nil && group != n.shortGroup {
			return fmt.Errorf("--group %q: the kinds of this project are in the group %s: begin another project, or "+
				"use that group", n.shortGroup, group)
		}
	}
	return nil
}

// The files of a kind that every kind has of its own, and those that its project has once.
var (
	ofKind = []string{
		typesPath, crdPath,
		"config/rbac/gizmo_editor_role.yaml", "config/rbac/gizmo_viewer_role.yaml",
		"config/samples/sample_v1alpha1_gizmo.yaml", "internal/controller/gizmo_controller.go",
		"internal/controller/gizmo_controller_test.go",
	}
	ofKinds = []string{
		"api/v1alpha1/doc.go", "api/v1alpha1/groupversion_info.go", "config/crd/kustomization.yaml",
		"config/samples/kustomization.yaml", "internal/controller/doc.go", "internal/controller/run_test.go",
	}
	// withMarkers are files that have lines for every kind.
	withMarkers = []string{
		"cmd/main.go", "config/crd/kustomization.yaml", "config/default/kustomization.yaml",
		"config/rbac/kustomization.yaml", "config/samples/kustomization.yaml", "internal/controller/run_test.go",
	}
)

// addKind adds the files and lines of a kind.
func addKind(c *change, n names) error {
	for _, path := range ofKind {
		text, err := render(path, n, partAPI)
		if path == crdPath {
			text, err = renderDefinition(n)
		}
		if err == nil {
			err = c.create(n.replacer().Replace(path), text)
		}
		if err != nil {
			return err
		}
	}
	for _, path := range ofKinds {
		if err := addOnce(c, n, path, partAPI); err != nil {
			return err
		}
	}
	for _, path := range withMarkers {
		if err := c.insert(path, fragments(path, partAPI, n)); err != nil {
			return err
		}
	}
	return addGenerated(c, n)
}

// addOnce adds a file unless the project has it.
func addOnce(c *change, n names, path string, parts ...string) error {
	to := n.replacer().Replace(path)
	if _, exists, err := c.read(to); exists || err != nil {
		return err
	}
	text, err := render(path, n, parts...)
	if err != nil {
		return err
	}
	c.put(to, text, "create")
	return nil
}

// addGenerated extends the files that controller-gen writes.
func addGenerated(c *change, n names) error {
	text, err := render(deepCopyPath, n)
	if err != nil {
		return err
	}
	text = []byte(nameMeta(string(text), n.version))
	to := n.replacer().Replace(deepCopyPath)
	old, exists, err := c.read(to)
	switch {
	case err != nil:
		return err
	case exists:
		c.extend(to, old, mergeDeepCopy(old, text))
	default:
		c.put(to, text, "create")
	}
	rules, err := render(rolePath, n)
	if err != nil {
		return err
	}
	if old, exists, err = c.read(rolePath); err != nil {
		return err
	}
	if !exists {
		c.put(rolePath, rules, "create")
		return nil
	}
	merged, err := mergeRole(old, rules)
	if err != nil {
		return err
	}
	c.extend(rolePath, old, merged)
	return nil
}
