package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/plural"
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

// CreateWebhook adds webhooks of a kind to a project, with tests and manifests. Files that exist are kept. Errors: no
// project; a kind that the project does not have, or whose webhooks exist. Nothing is written then.
func CreateWebhook(ctx context.Context, o WebhookOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	p, err := readOneGroup(o.Dir)
	if err != nil {
		return err
	}
	n := p.names(o.Group, o.Version, o.Kind)
	r := p.find(n)
	switch {
	case r == nil || r["api"] == nil:
		return fmt.Errorf("the project has no kind %s in %s %s: create it by flyball create api", n.kind, n.group,
			n.version)
	}
	if err := o.checkSpokes(p, n); err != nil {
		return err
	}
	recorded, err := o.merge(r)
	if err == nil {
		err = o.recordSpokes(p, n)
	}
	if err != nil {
		return err
	}
	named, _ := r["plural"].(string)
	n.plural = cmp.Or(named, plural.Of(n.kind))
	if o.FetchDeps {
		if err := checkGo(ctx, o.Dir); err != nil {
			return err
		}
	}
	c := &change{dir: o.Dir, force: o.Force}
	if err := addWebhooks(c, n, recorded, o.parts()); err != nil {
		return err
	}
	for _, n.spoke = range o.Spokes {
		if err := addConversion(c, n); err != nil {
			return err
		}
	}
	if err := p.save(c); err != nil {
		return err
	}
	file := fmt.Sprintf("internal/webhook/%s/%s_webhook.go", n.version, strings.ToLower(n.kind))
	if n.spoke != "" {
		file = fmt.Sprintf("api/%s/%s_conversion.go", n.spoke, strings.ToLower(n.kind))
	}
	return c.finish(ctx, o.FetchDeps, o.Out, "Next: make test; then write your rules into "+file)
}

// merge adds the webhooks to the record of a kind. It sets those of o to all that the kind has then, and returns the
// parts that it had.
func (o *WebhookOptions) merge(r map[string]any) (recorded []string, err error) {
	record, _ := r["webhooks"].(map[string]any)
	if record == nil {
		record = map[string]any{"webhookVersion": "v1"}
	}
	for part, wanted := range map[string]*bool{partDefaulting: &o.Defaulting, partValidation: &o.Validation} {
		if has, _ := record[part].(bool); has {
			if *wanted && !o.Force {
				return nil, fmt.Errorf("the webhook of %v for %s exists already; --force writes its files anew",
					r["kind"], part)
			}
			recorded = append(recorded, part)
			*wanted = true
		}
		if *wanted {
			record[part] = true
		}
	}
	slices.Sort(recorded)
	r["webhooks"] = record
	return recorded, nil
}

// renderWebhooks returns the text of a file of webhooks.
func renderWebhooks(path string, n names, parts []string) ([]byte, error) {
	if len(parts) > 0 {
		parts = append(slices.Clone(parts), partAdmission)
	}
	return render(path, n, parts...)
}

const manifestsPath = "config/webhook/manifests.yaml"

// addWebhooks adds the files and lines of webhooks. A file that is as it was written for the recorded parts is
// extended. Errors: the file of the recorded webhooks has been edited, so that the others cannot be added to it.
func addWebhooks(c *change, n names, recorded, parts []string) error {
	for _, path := range []string{
		"internal/webhook/v1alpha1/gizmo_webhook.go", "internal/webhook/v1alpha1/gizmo_webhook_test.go",
	} {
		if len(parts) == 0 && strings.HasSuffix(path, "_test.go") {
			continue // a conversion has a test of its own
		}
		text, err := renderWebhooks(path, n, parts)
		if err != nil {
			return err
		}
		to := n.replacer().Replace(path)
		old, _, err := c.read(to)
		if err != nil {
			return err
		}
		written, err := renderWebhooks(path, n, recorded)
		switch {
		case err != nil:
			return err
		case len(old)+len(recorded) > 0 && bytes.Equal(text, written) && !c.force: // it has what it is to have
		case len(old) > 0 && bytes.Equal(old, written):
			c.extend(to, old, text)
		case len(recorded) > 0 && len(old) > 0 && !c.force && !strings.HasSuffix(to, "_test.go"):
			return fmt.Errorf("%s has been edited: --force writes it anew with all webhooks of %s, and git shows "+
				"what was yours", to, n.kind)
		default:
			err = c.create(to, text)
		}
		if err != nil {
			return err
		}
	}
	for _, path := range []string{
		"config/default/manager_webhook_patch.yaml", "config/rbac/webhook_certificate_role.yaml",
		"config/rbac/webhook_certificate_role_binding.yaml", "config/webhook/kustomization.yaml",
		"config/webhook/service.yaml", "internal/webhook/v1alpha1/doc.go", "internal/webhook/v1alpha1/run_test.go",
	} {
		if err := addOnce(c, n, path); err != nil {
			return err
		}
	}
	for _, path := range []string{
		"cmd/main.go", "config/default/kustomization.yaml", "config/rbac/kustomization.yaml",
	} {
		if err := c.insert(path, fragments(path, partWebhook, n)); err != nil {
			return err
		}
	}
	if len(parts) == 0 {
		return nil // only a conversion
	}
	const resources = "config/webhook/kustomization.yaml"
	if err := c.insert(resources, fragments(resources, partAdmission, n)); err != nil {
		return err
	}
	return addConfigurations(c, n, parts)
}

// addConfigurations extends the webhook configurations, as controller-gen would.
func addConfigurations(c *change, n names, parts []string) error {
	text, err := render(manifestsPath, n)
	if err != nil {
		return err
	}
	old, exists, err := c.read(manifestsPath)
	if err != nil {
		return err
	}
	all, err := configurations(old)
	if err != nil {
		return fmt.Errorf("%s: %w", manifestsPath, err)
	}
	added, err := configurations(text)
	if err != nil {
		return err
	}
	kinds := map[string]string{
		partDefaulting: "MutatingWebhookConfiguration", partValidation: "ValidatingWebhookConfiguration",
	}
	for _, part := range parts {
		i := slices.IndexFunc(added, func(u unstructured.Unstructured) bool { return u.GetKind() == kinds[part] })
		all = addConfiguration(all, added[i])
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
	if !exists {
		c.put(manifestsPath, []byte(merged.String()), "create")
		return nil
	}
	c.extend(manifestsPath, old, []byte(merged.String()))
	return nil
}

// configurations reads the documents of a file.
func configurations(text []byte) (all []unstructured.Unstructured, err error) {
	for document := range strings.SplitSeq(string(text), "---\n") {
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

// addConfiguration adds the webhooks of one configuration to that of the same kind, sorted by path.
func addConfiguration(all []unstructured.Unstructured, added unstructured.Unstructured) []unstructured.Unstructured {
	i := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetKind() == added.GetKind() })
	if i < 0 {
		return append(all, added)
	}
	path := func(hook any) string {
		m, _ := hook.(map[string]any)
		text, _, _ := unstructured.NestedString(m, "clientConfig", "service", "path")
		return text
	}
	hooks, _ := all[i].Object["webhooks"].([]any)
	more, _ := added.Object["webhooks"].([]any)
	for _, hook := range more {
		hooks = slices.DeleteFunc(hooks, func(h any) bool { return path(h) == path(hook) })
	}
	hooks = append(hooks, more...)
	slices.SortStableFunc(hooks, func(a, b any) int { return cmp.Compare(path(a), path(b)) })
	all[i].Object["webhooks"] = hooks
	return all
}
