package scaffold

import (
	"fmt"
	"slices"
)

// checkSpokes checks that the project has the versions to convert.
func (o WebhookOptions) checkSpokes(p *project, n names) error {
	for _, spoke := range o.Spokes {
		other := n
		other.version = spoke
		if r := p.find(other); r == nil || r["api"] == nil || spoke == n.version {
			return fmt.Errorf("--spoke %q: the project has no other version %[1]s of %s: create it by flyball create "+
				"api", spoke, n.kind)
		}
	}
	return nil
}

// recordSpokes adds the conversion to the record of a kind. Errors: another version is the hub.
func (o WebhookOptions) recordSpokes(p *project, n names) error {
	if len(o.Spokes) == 0 {
		return nil
	}
	for _, r := range p.resources() {
		record, _ := r["webhooks"].(map[string]any)
		if record[partConversion] == true && r["group"] == n.shortGroup && r["kind"] == n.kind &&
			r["version"] != n.version {
			return fmt.Errorf("--version %q: the hub of %s is version %v: all versions are converted to that one",
				n.version, n.kind, r["version"])
		}
	}
	record, _ := p.find(n)["webhooks"].(map[string]any)
	record[partConversion] = true
	spokes, _ := record["spoke"].([]any)
	for _, spoke := range o.Spokes {
		if !slices.Contains(spokes, any(spoke)) {
			spokes = append(spokes, spoke)
		}
	}
	record["spoke"] = spokes
	return nil
}

// addConversion adds the files and lines of the conversion of a kind between the version of n and n.spoke.
func addConversion(c *change, n names) error {
	for _, path := range []string{
		"api/v1alpha1/gizmo_conversion.go", "api/v1beta7/gizmo_conversion.go",
		"internal/webhook/v1alpha1/gizmo_v1beta7_test.go", "config/crd/patches/webhook_in_gizmos.yaml",
		"config/crd/kustomizeconfig.yaml",
	} {
		if err := addOnce(c, n, path); err != nil {
			return err
		}
	}
	for _, path := range []string{
		"cmd/main.go", "config/crd/kustomization.yaml", "config/rbac/webhook_certificate_role.yaml",
		"internal/webhook/v1alpha1/run_test.go",
	} {
		if err := c.insert(n.replacer().Replace(path), fragments(path, partConversion, n)); err != nil {
			return err
		}
	}
	return nil
}
