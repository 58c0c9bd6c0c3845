package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	// Plural is the name of the resource. Empty means that of the kind's first version, or the English plural.
	Plural string
	// NoResource leaves out the type and its definition: the kind is one that the project has, one of Kubernetes, or
	// one of ExternalPath. NoController leaves out the controller.
	NoResource, NoController bool
	// ClusterScoped makes a kind whose objects are in no namespace. A further version has the scope of the first.
	ClusterScoped bool
	// Storage makes this version the one that is stored, also if it exists already.
	Storage bool
	// ExternalPath is the package of the types of another project's kind, whose group ends in ExternalDomain.
	ExternalPath, ExternalDomain string
	// Force replaces files that exist.
	Force bool
	// FetchDeps runs go mod tidy at the end.
	FetchDeps bool
	// Out receives a report.
	Out io.Writer
}

// Validate checks what the user has named.
func (o APIOptions) Validate() error {
	switch {
	case o.NoResource && o.NoController:
		return errors.New("--resource=false and --controller=false leave nothing to create")
	case o.NoResource && o.Storage:
		return errors.New("--storage is about a resource: leave --resource=false out")
	case o.ExternalPath != "" && !o.NoResource:
		return errors.New("--external-api-path names types that exist: it needs --resource=false")
	}
	return checkKind(names{
		shortGroup: o.Group, group: o.Group, version: o.Version, kind: o.Kind,
		plural: cmp.Or(o.Plural, plural.Of(o.Kind)),
	})
}

// CreateAPI adds a kind to a project: its type, its definition, a controller, tests, roles and a sample. A further
// version of a kind begins as a copy of the first, which stays the one that is stored unless Storage is set. Files that
// exist are kept. Errors: no project; invalid names; a kind that exists. Nothing is written then.
func CreateAPI(ctx context.Context, o APIOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	p, err := openProject(ctx, o.Dir, o.FetchDeps)
	if err != nil {
		return err
	}
	n := p.names(o.Group, o.Version, o.Kind)
	n.plural, n.cluster = o.Plural, o.ClusterScoped
	c := &change{dir: o.Dir, force: o.Force}
	next, err := o.create(c, p, n)
	if err != nil {
		return err
	}
	return c.finish(ctx, p, o.FetchDeps, o.Out, next)
}

// create adds what is asked for. next is what the user does then.
func (o APIOptions) create(c *change, p *project, n names) (next string, err error) {
	first, r := p.firstVersion(n), p.find(n)
	known := r != nil && r["api"] != nil
	if o.NoResource && !known {
		if n, err = p.foreign(n, o.ExternalPath, o.ExternalDomain); err != nil {
			return "", err
		}
	} else if n, err = p.own(n); err != nil {
		return "", err
	}
	if err := checkKind(n); err != nil && n.external == "" {
		return "", err
	}
	types := n.target(typesPath)
	switch {
	case o.NoResource:
	case known && o.Storage:
		c.notes = append(c.notes, fmt.Sprintf("%s is stored in version %s. Objects that were written before keep the "+
			"version in which they were, until they are written again", n.kind, n.version))
		return "Next: make test", moveStorage(c, p, n)
	default:
		if err := p.checkNew(n, o.Force); err != nil {
			return "", err
		}
		p.record(n)["api"] = map[string]any{"crdVersion": "v1", "namespaced": !n.cluster}
		if first != "" {
			return o.addVersion(c, p, n, first)
		}
		if err := addKind(c, n); err != nil {
			return "", err
		}
	}
	if o.NoController {
		return "Next: make test; then write your fields into " + types, nil
	}
	for _, r := range p.resources() { // all versions of a kind have one controller
		if r["group"] != n.shortGroup || r["kind"] != n.kind {
			continue
		}
		if r["controller"] == true && !o.Force {
			return "", fmt.Errorf("the controller of %s exists already; --force writes its files anew", n.kind)
		}
		delete(r, "controller")
	}
	p.record(n)["controller"] = true
	next = "Next: make test; then write your fields into " + types
	if o.NoResource {
		next = "Next: make test; then write what it does into " +
			n.in("internal/controller", strings.ToLower(n.kind)+"_controller.go")
	}
	return next, addController(c, n)
}

// addVersion adds a version to a kind that the project has in the version first.
func (o APIOptions) addVersion(c *change, p *project, n names, first string) (next string, err error) {
	if err := addVersion(c, n, first); err != nil {
		return "", err
	}
	next = fmt.Sprintf("Next: flyball create webhook --group %s --version %s --kind %s --conversion --spoke %s; then "+
		"write your fields into %s", n.shortGroup, first, n.kind, n.version, n.target(typesPath))
	stored, err := p.stored(c, n)
	if err != nil {
		return "", err
	}
	kept := n
	if kept.version = cmp.Or(stored, first); o.Storage {
		kept.version = n.version
	} else {
		c.notes = append(c.notes, fmt.Sprintf("%s is stored in version %s as before. flyball create api --group %s "+
			"--version %s --kind %[1]s --storage moves it to this one; do so when every cluster serves both", n.kind,
			kept.version, n.shortGroup, n.version))
	}
	return next, moveStorage(c, p, kept)
}

// checkNew rejects a kind that exists in this version, and one whose files another kind has.
func (p *project) checkNew(n names, force bool) error {
	if r := p.find(n); r != nil && r["api"] != nil && !force {
		return fmt.Errorf("%s %s %s exists already; --force writes its files anew", n.group, n.version, n.kind)
	}
	for _, r := range p.resources() {
		group, _ := r["group"].(string)
		kind, _ := r["kind"].(string)
		named, _ := r["plural"].(string)
		// Singulars and plurals of a group are one set: the API server serves no definition with a name of another.
		names := []string{strings.ToLower(kind), cmp.Or(named, plural.Of(kind))}
		if group == n.shortGroup && kind != n.kind &&
			(slices.Contains(names, strings.ToLower(n.kind)) || slices.Contains(names, n.plural)) {
			return fmt.Errorf("--kind %q: the kind %s of this group has the same singular or plural: choose another "+
				"name", n.kind, kind)
		}
	}
	return nil
}

// The files of a kind: those that each kind has of its own, and those with lines for every kind.
var (
	ofKind = []string{
		typesPath, crdPath, "config/rbac/gizmo_editor_role.yaml", "config/rbac/gizmo_viewer_role.yaml",
		"config/samples/sample_v1alpha1_gizmo.yaml",
	}
	ofVersion   = []string{"api/v1alpha1/doc.go", "api/v1alpha1/groupversion_info.go"}
	withMarkers = []string{
		"config/crd/kustomization.yaml", "config/default/kustomization.yaml", "config/rbac/kustomization.yaml",
		"config/samples/kustomization.yaml",
	}
	ofProject = []string{mainPath, harnessPath}
)

const (
	mainPath    = "cmd/main.go"
	harnessPath = "internal/harness/harness.go"
)

// addKind adds the files and lines of a kind, but for its controller.
func addKind(c *change, n names) error {
	if err := errors.Join(addAll(c, n, ofKind...), addAllOnce(c, n, withMarkers),
		c.insertAll(n, partAPI, withMarkers...)); err != nil {
		return err
	}
	text, err := render(deepCopyPath, n)
	if err != nil {
		return err
	}
	return errors.Join(addTypes(c, n), addFunctions(c, n, []byte(nameMeta(string(text), n.version))))
}

// addTypes adds what a version of a group has once, and makes the manager and the tests know its kinds.
func addTypes(c *change, n names) error {
	if n.core {
		return c.mergeAll(n, ofProject) // client-go's scheme has them
	}
	if n.external != "" {
		return c.mergeAll(n, ofProject, partTypes)
	}
	return errors.Join(addAllOnce(c, n, ofVersion), c.mergeAll(n, ofProject, partTypes))
}

// addAll adds files of a kind.
func addAll(c *change, n names, paths ...string) error {
	for _, path := range paths {
		text, err := render(path, n)
		if path == crdPath {
			text, err = renderDefinition(n)
		}
		if err = cmp.Or(err, c.create(n.target(path), text)); err != nil {
			return err
		}
	}
	return nil
}

// addController adds the controller of a kind, with tests.
func addController(c *change, n names) error {
	of, parts := "internal/controller/", []string{partController}
	noSpec, err := lacks(c, n, n.version, exampleSpec)
	if err != nil {
		return err
	}
	noStatus, err := lacks(c, n, n.version, exampleStatus)
	if err != nil {
		return err
	}
	if n.external != "" || noStatus {
		of = "internal/foreign/controller/"
	}
	n.annotated = noSpec || noStatus
	if n.cluster {
		parts = append(parts, partCluster)
	}
	once := []string{"internal/controller/doc.go", "internal/controller/main_test.go", "internal/harness/role_test.go"}
	if err := errors.Join(addAll(c, n, of+"gizmo_controller.go", of+"gizmo_controller_test.go"),
		addAllOnce(c, n, once), addTypes(c, n), c.merge(mainPath, n, parts...)); err != nil {
		return err
	}
	return addRole(c, n, of+"gizmo_controller.go")
}

// addOnce adds a file unless the project has it.
func addOnce(c *change, n names, path string) error {
	to := n.target(path)
	if _, exists, err := c.read(to); exists || err != nil {
		return err
	}
	text, err := render(path, n)
	if err != nil {
		return err
	}
	c.put(to, text, "create")
	return nil
}

func addAllOnce(c *change, n names, paths []string) (err error) {
	for _, p := range paths {
		err = errors.Join(err, addOnce(c, n, p))
	}
	return err
}

// addFunctions adds generated functions to the package of a version, as controller-gen would.
func addFunctions(c *change, n names, text []byte) error {
	to := n.target(deepCopyPath)
	old, exists, err := c.read(to)
	if err != nil {
		return err
	}
	merged := mergeImports(text, nil)
	if exists {
		merged = mergeDeepCopy(mergeImports(old, text), text)
	}
	c.write(to, old, merged)
	return nil
}

// addRole adds the rules of a controller's markers to the role, as controller-gen would.
func addRole(c *change, n names, controller string) error {
	text, err := render(controller, n)
	if err != nil {
		return err
	}
	old, _, err := c.read(rolePath)
	if err != nil {
		return err
	}
	merged, err := mergeRole(old, rulesOf(string(text)))
	if err != nil {
		return err
	}
	c.write(rolePath, old, merged)
	return nil
}
