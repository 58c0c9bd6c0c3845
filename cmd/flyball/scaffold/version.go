package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	typesPath    = "api/v1alpha1/gizmo_types.go"
	deepCopyPath = "api/v1alpha1/zz_generated.deepcopy.go"
	crdPath      = "config/crd/bases/sample.flyball.example_gizmos.yaml"
)

// addVersion adds a version to a kind that the project has in the version first. It begins as a copy of that: its type,
// its functions to copy objects, and its part of the definition. The kind has the controller that it has.
func addVersion(c *change, n names, first string) error {
	was := n
	was.version = first
	return cmp.Or(copyTypes(c, was, n), copyDefinition(c, was, n), addTypes(c, n))
}

// stored returns the version in which a kind is marked to be stored, or "".
func (p *project) stored(c *change, n names) (version string, err error) {
	for _, other := range p.versions(n) {
		text, _, err := c.read(other.target(typesPath))
		if err != nil {
			return "", err
		}
		if bytes.Equal(text, markStored(text, n.kind, true)) && len(text) > 0 {
			version = other.version
		}
	}
	return version, nil
}

// moveStorage makes the version of n the one that is stored.
func moveStorage(c *change, p *project, n names) error {
	for _, other := range p.versions(n) {
		path := other.target(typesPath)
		text, _, err := c.read(path)
		if err != nil {
			return err
		}
		marked := markStored(text, n.kind, other.version == n.version)
		if marked == nil {
			c.notes = append(c.notes, fmt.Sprintf("%s has no type %s with the comment +kubebuilder:object:root=true: "+
				"mark the version that is stored by +kubebuilder:storageversion yourself", path, n.kind))
			continue
		}
		c.write(path, text, marked)
	}
	return editDefinition(c, n, func(versions []map[string]any) []map[string]any {
		for _, v := range versions {
			v["storage"] = v["name"] == n.version
		}
		return versions
	})
}

var (
	// packageClause matches the package clause of a file.
	packageClause = regexp.MustCompile(`(?m)^package .*$`)
	// rooted matches the marker of a kind's type, down to the declaration: kubebuilder leaves a line between the
	// markers and the comment of the type. Its groups are the marker and the kind.
	rooted = regexp.MustCompile(
		`(?m)^(// \+kubebuilder:object:root=true\n)(?:(?://.*)?\n)*type ([A-Za-z0-9]+) struct`)
)

const storageMarker = "// +kubebuilder:storageversion\n"

// copyTypes copies the type of a kind from one version to another.
func copyTypes(c *change, from, to names) error {
	path := from.target(typesPath)
	text, exists, err := c.read(path)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("there is no %s, of which the other version would begin as a copy", path)
	}
	clause := []byte("package " + to.version)
	types := packageClause.ReplaceAll(bytes.ReplaceAll(text, []byte(storageMarker), nil), clause)
	if err := c.create(to.target(typesPath), types); err != nil {
		return err
	}
	return copyFunctions(c, from, to, types)
}

// markStored marks a kind's version as the one that is stored, or as another one. It returns nil if it cannot.
func markStored(text []byte, kind string, stored bool) []byte {
	for _, at := range rooted.FindAllSubmatchIndex(text, -1) {
		if string(text[at[4]:at[5]]) != kind {
			continue
		}
		head := bytes.ReplaceAll(text[at[3]:at[1]], []byte(storageMarker), nil)
		if stored {
			head = slices.Concat([]byte(storageMarker), head)
		}
		return slices.Concat(text[:at[3]], head, text[at[1]:])
	}
	return nil
}

// copyFunctions copies the generated functions of types to the package of another version.
func copyFunctions(c *change, from, to names, types []byte) error {
	all, _, err := c.read(from.target(deepCopyPath))
	if err != nil {
		return err
	}
	parsed, err := parseGo(to.target(typesPath), string(types))
	if err != nil {
		return err
	}
	head, functions := splitFunctions(string(all))
	body := ""
	for _, d := range parsed.Decls {
		for key, text := range functions {
			if slices.Contains(namesOf(d), key[0]) {
				body += "\n\n" + text
			}
		}
	}
	head = packageClause.ReplaceAllString(head, "package "+to.version)
	return addFunctions(c, to, mergeDeepCopy([]byte(nameMeta(head+body, to.version)), nil))
}

// nameMeta makes a generated file import the package of the metadata as controller-gen does: as v1, unless that is the
// name of the file's own package.
func nameMeta(text, version string) string {
	const path = `"k8s.io/apimachinery/pkg/apis/meta/v1"`
	if version == "v1" {
		text = strings.Replace(text, "\t"+path, "\tmetav1 "+path, 1)
		return regexp.MustCompile(`\bv1\.`).ReplaceAllString(text, "metav1.")
	}
	text = strings.Replace(text, "\tmetav1 "+path, "\t"+path, 1)
	return regexp.MustCompile(`\bmetav1\.`).ReplaceAllString(text, "v1.")
}

// importLine matches a line of an import declaration. Its groups are the name, if it has one, and the path.
var importLine = regexp.MustCompile(`(?m)^\t(?:([a-z0-9A-Z_]+) )?"([^"]+)"\n`)

// mergeImports returns a generated file with its imports and those of more, without those that neither needs.
func mergeImports(text, more []byte) []byte {
	lines, both := map[string]bool{}, slices.Concat(text, more)
	_, body, _ := bytes.Cut(both, []byte("\n)\n"))
	var all []string
	for _, m := range importLine.FindAllSubmatch(both, -1) {
		name := string(m[1])
		if name == "" {
			name = string(m[2][bytes.LastIndexByte(m[2], '/')+1:])
		}
		used := regexp.MustCompile(`\b` + name + `\.[A-Z]`).Match(body)
		if line := string(m[0]); used && !lines[line] {
			lines[line], all = true, append(all, line)
		}
	}
	begin, rest, found := strings.Cut(string(text), "import (\n")
	_, rest, closed := strings.Cut(rest, ")\n")
	if !found || !closed {
		return text
	}
	return []byte(begin + "import (\n" + strings.Join(all, "") + ")\n" + rest)
}

// copyDefinition copies a version in the definition of a kind to another one, which is served but not stored.
func copyDefinition(c *change, from, to names) error {
	return editDefinition(c, to, func(versions []map[string]any) []map[string]any {
		for _, v := range versions {
			if v["name"] == from.version {
				added := maps.Clone(v)
				added["name"], added["storage"] = to.version, false
				versions = append(versions, added)
			}
		}
		return versions
	})
}

// editDefinition changes the versions of a kind in its definition.
func editDefinition(c *change, n names, edit func([]map[string]any) []map[string]any) error {
	path := n.target(crdPath)
	old, exists, err := c.read(path)
	if err != nil {
		return err
	}
	if !exists {
		c.notes = append(c.notes, path+" does not exist: make manifests writes it")
		return nil
	}
	text, err := editVersions(old, edit)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.write(path, old, text)
	return nil
}

// editVersions changes the versions of a definition in controller-gen's form. They are sorted by name.
func editVersions(text []byte, edit func([]map[string]any) []map[string]any) ([]byte, error) {
	var definition struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   any    `json:"metadata"`
		Spec       struct {
			Conversion any                                           `json:"conversion,omitempty"`
			Group      string                                        `json:"group"`
			Names      apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
			Scope      string                                        `json:"scope"`
			Versions   []map[string]any                              `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	versions := edit(definition.Spec.Versions)
	slices.SortStableFunc(versions, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["name"]), fmt.Sprint(b["name"]))
	})
	definition.Spec.Versions = versions
	written, err := yaml.Marshal(definition)
	return append([]byte("---\n"), written...), err
}

// renderDefinition returns the definition of a kind with one version.
func renderDefinition(n names) ([]byte, error) {
	text, err := editVersions([]byte(template(crdPath)), func(all []map[string]any) []map[string]any {
		return slices.DeleteFunc(all, func(v map[string]any) bool { return v["name"] != "v1alpha1" })
	})
	if n.cluster {
		text = []byte(forCluster.Replace(string(text)))
	}
	return []byte(n.replacer().Replace(string(text))), err
}

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
	return errors.Join(addAllOnce(c, n, []string{
		"api/v1alpha1/gizmo_conversion.go", "api/v1beta7/gizmo_conversion.go",
		"internal/webhook/v1alpha1/gizmo_v1beta7_test.go", "config/crd/patches/webhook_in_gizmos.yaml",
		"config/crd/kustomizeconfig.yaml",
	}), c.mergeAll(n, ofProject, partConversion), c.insertAll(n, partConversion, "config/crd/kustomization.yaml",
		"config/rbac/webhook_certificate_role.yaml"))
}
