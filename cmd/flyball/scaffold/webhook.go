package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// WebhookOptions configures [CreateWebhook].
type WebhookOptions struct {
	// Dir is the root of the project.
	Dir string
	// Group, Version and Kind name the kind. Group is without the domain.
	Group, Version, Kind string
	// Defaulting and Validation are the webhooks to create.
	Defaulting, Validation bool
	// Conversion creates the webhook that converts between Version, the hub, and each of Spokes.
	Conversion bool
	Spokes     []string
	// Plural is the name of the resource, of a kind that is not the project's own. Empty means the English plural.
	Plural string
	// ExternalPath is the package of the types of another project's kind, whose group ends in ExternalDomain.
	ExternalPath, ExternalDomain string
	// Force replaces files that exist.
	Force bool
	// FetchDeps runs go mod tidy at the end.
	FetchDeps bool
	// Out receives a report.
	Out io.Writer
}

// parts returns the parts of the templates for the webhooks.
func (o WebhookOptions) parts() (parts []string) {
	if o.Defaulting {
		parts = append(parts, partDefaulting)
	}
	if o.Validation {
		parts = append(parts, partValidation)
	}
	return parts
}

// Validate checks what the user has named.
func (o WebhookOptions) Validate() error {
	switch {
	case len(o.parts()) == 0 && !o.Conversion:
		return errors.New("--defaulting or --programmatic-validation or --conversion is needed: the webhooks to create")
	case o.Conversion != (len(o.Spokes) > 0):
		return errors.New("--conversion and --spoke are needed together: --version is the hub, and each --spoke is a " +
			"version that is converted to it and from it")
	}
	return APIOptions{Group: o.Group, Version: o.Version, Kind: o.Kind}.Validate()
}

// CreateWebhook adds webhooks of a kind to a project, with tests and manifests. Files that exist are extended. Errors:
// no project; a kind that neither the project nor Kubernetes has; webhooks that exist. Nothing is written then.
func CreateWebhook(ctx context.Context, o WebhookOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	p, err := openProject(ctx, o.Dir, o.FetchDeps)
	if err != nil {
		return err
	}
	n, err := o.names(p)
	if err != nil {
		return err
	}
	r := p.record(n)
	if err := cmp.Or(o.checkSpokes(p, n), o.merge(r), o.recordSpokes(p, n)); err != nil {
		return err
	}
	c := &change{dir: o.Dir, force: o.Force}
	if n.annotated, err = lacks(c, n, n.version, exampleSpec); err != nil {
		return err
	}
	if err := o.addWebhooks(c, n); err != nil {
		return err
	}
	for _, n.spoke = range o.Spokes {
		if n.annotated, err = lacks(c, n, n.spoke, exampleSpec); err != nil { // the test writes this version
			return err
		}
		if without, _ := lacks(c, n, n.spoke, []string{"Gizmo Spec"}); without {
			return fmt.Errorf("%s %s has no field Spec: write the conversion yourself", n.kind, n.spoke)
		}
		if err := addConversion(c, n); err != nil {
			return err
		}
	}
	file := n.target(webhookPath)
	if n.spoke != "" {
		file = n.replacer().Replace("api/v1beta7/gizmo_conversion.go")
	}
	return c.finish(ctx, p, o.FetchDeps, o.Out, "Next: make test; then write your rules into "+file)
}

// names returns the names of the kind.
func (o WebhookOptions) names(p *project) (names, error) {
	n := p.names(o.Group, o.Version, o.Kind)
	n.plural = o.Plural
	if r := p.find(n); r != nil && r["api"] != nil {
		return p.own(n)
	}
	if o.Conversion {
		return n, fmt.Errorf("the project has no kind %s in %s %s, whose versions it could convert", n.kind, n.group,
			n.version)
	}
	return p.foreign(n, o.ExternalPath, o.ExternalDomain)
}

// merge adds the webhooks to the record of a kind. With Force, it sets those of o to all that the kind has then.
// Errors: there is nothing to add.
func (o *WebhookOptions) merge(r map[string]any) error {
	record, _ := r["webhooks"].(map[string]any)
	if record == nil {
		record = map[string]any{"webhookVersion": "v1"}
	}
	added := o.Conversion
	for part, wanted := range map[string]*bool{partDefaulting: &o.Defaulting, partValidation: &o.Validation} {
		has, _ := record[part].(bool)
		added = added || *wanted && !has
		*wanted = *wanted && !has || has && o.Force
		if *wanted {
			record[part] = true
		}
	}
	if !added && !o.Force {
		return fmt.Errorf("these webhooks of %v exist already; --force writes their files anew", r["kind"])
	}
	r["webhooks"] = record
	return nil
}

const (
	manifestsPath = "config/webhook/manifests.yaml"
	webhookPath   = "internal/webhook/v1alpha1/gizmo_webhook.go"
)

// addWebhooks adds the files and lines of webhooks.
func (o WebhookOptions) addWebhooks(c *change, n names) error {
	file, parts := webhookPath, o.parts()
	if n.external != "" {
		file = "internal/foreign/webhook/v1alpha1/gizmo_webhook.go"
	}
	files := []string{file}
	if len(parts) > 0 {
		parts = append(parts, partAdmission)
		files = append(files, strings.Replace(file, ".go", "_test.go", 1))
	}
	for _, path := range files {
		err := c.merge(path, n, parts...)
		if c.force && len(parts) > 0 && err == nil {
			var text []byte
			text, err = render(path, n, parts...)
			c.put(n.target(path), text, "replace")
		}
		if err != nil {
			return err
		}
	}
	err := addAllOnce(c, n, []string{
		"config/default/manager_webhook_patch.yaml", "config/rbac/webhook_certificate_role.yaml",
		"config/rbac/webhook_certificate_role_binding.yaml", "config/webhook/kustomization.yaml",
		"config/webhook/service.yaml", "internal/webhook/v1alpha1/doc.go", "internal/webhook/v1alpha1/main_test.go",
	})
	if n.external != "" {
		err = errors.Join(err, addTypes(c, n))
	}
	err = errors.Join(err, c.mergeAll(n, ofProject, partWebhook),
		c.insertAll(n, partWebhook, "config/default/kustomization.yaml", "config/rbac/kustomization.yaml"))
	if err != nil || len(parts) == 0 { // only a conversion
		return err
	}
	if err := c.insertAll(n, partAdmission, "config/webhook/kustomization.yaml"); err != nil {
		return err
	}
	text, err := render(file, n, parts...)
	if err != nil {
		return err
	}
	return addConfigurations(c, markerFields(string(text), "webhook"))
}

// The fields that CreateAPI writes as examples, as lacks wants them: those that webhooks use, and those that
// controllers use in addition. Users replace them by their own.
var (
	exampleSpec   = []string{"Gizmo Spec GizmoSpec", "GizmoSpec Message string"}
	exampleStatus = []string{
		"Gizmo Status GizmoStatus", "GizmoStatus Conditions []metav1.Condition", "GizmoStatus ConfigMap string",
	}
)

// lacks reports whether a version of a kind lacks one of fields. Each is named by the type that has it, its name, and
// its type if that matters, with spaces between them.
func lacks(c *change, n names, version string, fields []string) (bool, error) {
	n.version = version
	files, err := c.goFiles(path.Dir(n.target(typesPath)))
	found := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file.File, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						field := spec.Name.Name + " " + name.Name
						found[field], found[field+" "+types.ExprString(f.Type)] = true, true
					}
				}
			}
			return false
		})
	}
	for _, field := range fields {
		if !found[strings.ReplaceAll(field, "Gizmo", n.kind)] {
			return true, err
		}
	}
	return false, err
}

// addConfigurations extends the webhook configurations by the webhooks of markers, as controller-gen would.
func addConfigurations(c *change, markers []map[string]string) error {
	old, _, err := c.read(manifestsPath)
	if err != nil {
		return err
	}
	all, err := configurations(old)
	if err != nil {
		return fmt.Errorf("%s: %w", manifestsPath, err)
	}
	for _, m := range markers {
		all = addConfiguration(all, m)
	}
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetKind(), b.GetKind()) })
	var merged strings.Builder
	for _, u := range all {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return err
		}
		merged.WriteString("---\n" + string(text))
	}
	c.write(manifestsPath, old, []byte(merged.String()))
	return nil
}

// configurations reads the documents of a file.
func configurations(text []byte) (all []unstructured.Unstructured, err error) {
	for _, document := range documents.Split(string(text), -1) {
		u := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
	return all, nil
}

// addConfiguration adds the webhook of a marker to the configuration of its kind, sorted by name.
func addConfiguration(all []unstructured.Unstructured, m map[string]string) []unstructured.Unstructured {
	kind := "ValidatingWebhookConfiguration"
	if m["mutating"] == "true" {
		kind = "MutatingWebhookConfiguration"
	}
	i := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetKind() == kind })
	if i < 0 {
		u := unstructured.Unstructured{Object: map[string]any{}}
		u.SetAPIVersion("admissionregistration.k8s.io/v1")
		u.SetKind(kind)
		u.SetName(strings.ToLower(strings.TrimSuffix(kind, "WebhookConfiguration")) + "-webhook-configuration")
		i, all = len(all), append(all, u)
	}
	name := func(hook any) string {
		m, _ := hook.(map[string]any)
		text, _ := m["name"].(string)
		return text
	}
	hooks, _ := all[i].Object["webhooks"].([]any)
	hooks = slices.DeleteFunc(hooks, func(h any) bool { return name(h) == m["name"] })
	hooks = append(hooks, map[string]any{
		"admissionReviewVersions": list(m["admissionReviewVersions"]), "name": m["name"],
		"clientConfig": map[string]any{"service": map[string]any{
			"name": "webhook-service", "namespace": "system", "path": m["path"],
		}},
		"failurePolicy": strings.ToUpper(m["failurePolicy"][:1]) + m["failurePolicy"][1:],
		"rules": []any{map[string]any{
			"apiGroups": list(m["groups"]), "apiVersions": list(m["versions"]),
			"operations": list(strings.ToUpper(m["verbs"])), "resources": list(m["resources"]),
		}},
		"sideEffects": m["sideEffects"],
	})
	slices.SortStableFunc(hooks, func(a, b any) int { return cmp.Compare(name(a), name(b)) })
	all[i].Object["webhooks"] = hooks
	return all
}

// list returns the elements of a field of a marker.
func list(field string) (all []any) {
	for element := range strings.SplitSeq(field, ";") {
		all = append(all, element)
	}
	return all
}
