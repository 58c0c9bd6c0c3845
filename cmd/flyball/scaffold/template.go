package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// source is the operator that the templates are made of. Its names are those that replacer replaces.
//
//go:embed all:project
var source embed.FS

// A part of the project. Lines between "flyball:part" and "flyball:end" in a file belong to that part only; the files
// themselves belong to a part by their paths.
const (
	partAPI        = "api"        // of manifests: a kind of the project
	partTypes      = "types"      // of Go files: the types of a kind
	partController = "controller" // likewise, its controller
	partCluster    = "cluster"    // likewise, a controller of a kind whose objects are in no namespace
	partWebhook    = "webhook"
	partDefaulting = "defaulting" // of the file of webhooks
	partValidation = "validation" // likewise
	partAdmission  = "admission"  // likewise, of both
	partConversion = "conversion" // of a kind with several versions
	partMessage    = "message"    // of the tests of a controller: the Spec has a field Message
)

// fence matches the lines of one part, with the lines around it. Its groups are the part and the lines.
var fence = regexp.MustCompile(`(?ms)^[ \t]*(?://|#) flyball:([a-z]+)\n(.*?)^[ \t]*(?://|#) flyball:end\n`)

// marker matches the comment above which the lines of further kinds are inserted. Its group is the name.
var marker = regexp.MustCompile(`(?m)^[ \t]*(?://|#) \+kubebuilder:scaffold:([a-z]+)$`)

// templates returns the paths in the project of the files below dirs, and of the files among dirs, in order.
func templates(dirs ...string) (paths []string) {
	for _, dir := range dirs {
		err := fs.WalkDir(source, path.Join("project", dir), func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				paths = append(paths, strings.TrimPrefix(p, "project/"))
			}
			return err
		})
		if err != nil {
			panic(err) // the embedded files are what this package was compiled with
		}
	}
	return paths
}

// template returns the text of a file of the project.
func template(path string) string {
	text, err := source.ReadFile("project/" + path)
	if err != nil {
		panic(err) // as above
	}
	return string(text)
}

// target returns where a file of the project goes. Controllers and webhooks of kinds of others have templates of their
// own.
func (n names) target(path string) string {
	return n.replacer().Replace(strings.Replace(path, "internal/foreign/", "internal/", 1))
}

// render returns the text of a file with the user's names and the lines of the given parts.
func render(path string, n names, parts ...string) ([]byte, error) {
	text := strings.ReplaceAll(template(path), ",\n//   ", ",") // long markers, which controller-gen wants in one line
	if n.cluster {
		text = forCluster.Replace(text)
	}
	if n.annotated && n.external == "" {
		text = forAnnotation.Replace(text)
	} else {
		parts = append(slices.Clone(parts), partMessage)
	}
	text = fence.ReplaceAllStringFunc(text, func(block string) string {
		m := fence.FindStringSubmatch(block)
		for _, part := range parts {
			if m[1] == part {
				return m[2]
			}
		}
		return ""
	})
	return finish(path, n.replacer().Replace(text))
}

// finish formats what is Go. Names change the order of imports and the columns of comments.
func finish(path, text string) ([]byte, error) {
	if !strings.HasSuffix(path, ".go") {
		return []byte(text), nil
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return formatted, nil
}

// fragment is the lines of a part in front of a marker.
type fragment struct {
	marker string
	lines  string
}

// fragments returns the lines of a part in a file of the project, with the user's names.
func fragments(path, part string, n names) (all []fragment) {
	text := template(path)
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		if text[at[2]:at[3]] != part {
			continue
		}
		next := marker.FindStringSubmatch(text[at[1]:])
		if next == nil {
			continue // a part that only whole files have
		}
		all = append(all, fragment{next[1], n.replacer().Replace(text[at[4]:at[5]])})
	}
	return all
}

// insert puts the lines in front of the marker in text. What is there already is left out: see units. The entries of a
// list that text has go to its beginning instead, so that its key stands there once. ok is false if text has no such
// marker; missing is what should have been inserted.
func (f fragment) insert(text string) (result, missing string, ok bool) {
	units := f.units()
	list := listKey(units[0])
	if list != "" {
		text = regexp.MustCompile(`(?m)^`+list+` \[\][ \t]*$`).ReplaceAllLiteralString(text, list)
	}
	at := lineOf(text, list)
	for i, unit := range units {
		isKey := i == 0 && list != ""
		first, _, _ := strings.Cut(strings.TrimSpace(unit), "\n")
		if !isKey && lineOf(text, first) < 0 {
			missing += unit
		}
	}
	switch {
	case missing == "":
		return text, "", true
	case list != "" && at >= 0:
		return insertEntries(text, at, missing), missing, true
	case list != "":
		missing = list + "\n" + missing
	}
	for _, at := range marker.FindAllStringSubmatchIndex(text, -1) {
		if text[at[2]:at[3]] == f.marker {
			return text[:at[0]] + missing + text[at[0]:], missing, true
		}
	}
	return text, missing, false
}

// units returns the parts of the lines that are inserted as a whole: an entry of a list, or one line. A file has a unit
// if it has its first line, outside of comments.
func (f fragment) units() (all []string) {
	for line := range strings.Lines(f.lines) {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "  ") && len(all) > 0:
			all[len(all)-1] += line
		default:
			all = append(all, line)
		}
	}
	return all
}

// listKey returns the line of a key in YAML whose list follows, or "".
func listKey(unit string) string {
	if line := strings.TrimSuffix(unit, "\n"); strings.HasSuffix(line, ":") && !strings.ContainsAny(line, " \t\n") {
		return line
	}
	return ""
}

// lineOf returns the end of the first line that is want, but for spaces around it and a comment behind it, or -1.
func lineOf(text, want string) int {
	end := 0
	for line := range strings.Lines(text) {
		end += len(line)
		line = strings.TrimSpace(line)
		for _, comment := range []string{" // ", " # "} {
			code, _, _ := strings.Cut(line, comment)
			line = strings.TrimSpace(code)
		}
		if line == want && want != "" {
			return end
		}
	}
	return -1
}

// insertEntries inserts entries of a list in YAML, at the end of the line of its key, as far indented as those that it
// has.
func insertEntries(text string, at int, entries string) string {
	indent := regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\n)*( *)- `).FindStringSubmatch(text[at:])
	if indent != nil {
		entries = regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(entries, indent[1]+"${1}")
	}
	return text[:at] + entries + text[at:]
}

// A new kind extends files that controller-gen writes. The functions here do it as controller-gen would, so that the
// project compiles and its tests pass before controller-gen runs for the first time.

// method matches the head of a function in zz_generated.deepcopy.go. Its groups are the type and the method.
var method = regexp.MustCompile(`(?m)^func \(in (?:\*|)([A-Za-z0-9]+)\) (DeepCopy[A-Za-z]*)\(`)

// mergeDeepCopy adds the functions of more to old, sorted by type.
func mergeDeepCopy(old, more []byte) []byte {
	head, functions := splitFunctions(string(old))
	_, added := splitFunctions(string(more))
	maps.Copy(functions, added)
	order := []string{"DeepCopyInto", "DeepCopy", "DeepCopyObject"}
	keys := slices.SortedFunc(maps.Keys(functions), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(slices.Index(order, a[1]), slices.Index(order, b[1])))
	})
	var merged strings.Builder
	merged.WriteString(head)
	for _, key := range keys {
		merged.WriteString("\n\n" + functions[key])
	}
	merged.WriteString("\n")
	return []byte(merged.String())
}

// splitFunctions splits a file into what comes before its functions, and the functions with their comments by type and
// method.
func splitFunctions(text string) (head string, functions map[[2]string]string) {
	functions = map[[2]string]string{}
	parts := strings.Split(strings.TrimSpace(text), "\n\n// DeepCopy")
	for _, part := range parts[1:] {
		part = "// DeepCopy" + part
		if m := method.FindStringSubmatch(part); m != nil {
			functions[[2]string{m[1], m[2]}] = part
		}
	}
	return parts[0], functions
}

// documents is what separates the documents of a file of YAML.
var documents = regexp.MustCompile(`(?m)^---[ \t]*\n`)

// markerFields returns the fields of the markers of one name in a text.
func markerFields(text, name string) (all []map[string]string) {
	for line := range strings.Lines(text) {
		marked, found := strings.CutPrefix(strings.TrimSpace(line), "// +kubebuilder:"+name+":")
		if !found {
			continue
		}
		fields := map[string]string{}
		for field := range strings.SplitSeq(marked, ",") {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = strings.Trim(value, `"`)
		}
		all = append(all, fields)
	}
	return all
}

// rulesOf returns the rules of the markers in a file.
func rulesOf(text string) (rules []rbacv1.PolicyRule) {
	for _, f := range markerFields(text, "rbac") {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: strings.Split(f["groups"], ";"), Resources: strings.Split(f["resources"], ";"),
			Verbs: slices.Sorted(slices.Values(strings.Split(f["verbs"], ";"))),
		})
	}
	return rules
}

// mergeRole adds rules to the ClusterRole of old: a resource to the rule of its group that has the same verbs, if there
// is one. Other documents stay as they are.
func mergeRole(old []byte, rules []rbacv1.PolicyRule) ([]byte, error) {
	var result []byte
	merged := false
	for _, document := range documents.Split(string(old), -1) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("%s: %w", rolePath, err)
		}
		switch {
		case strings.TrimSpace(document) == "":
		case merged || role.Kind != "ClusterRole":
			result = append(result, "---\n"+document...)
		default:
			text, err := extendRole(&role, rules)
			if err != nil {
				return nil, err
			}
			result, merged = append(result, text...), true
		}
	}
	if merged {
		return result, nil
	}
	text, err := extendRole(emptyRole(), rules)
	return append(text, result...), err
}

// extendRole adds rules to a role, and returns its text.
func extendRole(role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) ([]byte, error) {
	for _, rule := range rules {
		addRule(role, rule)
	}
	slices.SortStableFunc(role.Rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources))
	})
	return marshalRole(role)
}

func addRule(role *rbacv1.ClusterRole, rule rbacv1.PolicyRule) {
	for i, r := range role.Rules {
		if slices.Equal(r.APIGroups, rule.APIGroups) && slices.Equal(r.Verbs, rule.Verbs) && len(r.ResourceNames) == 0 {
			resources := append(slices.Clone(r.Resources), rule.Resources...)
			slices.Sort(resources)
			role.Rules[i].Resources = slices.Compact(resources)
			return
		}
	}
	role.Rules = append(role.Rules, rule)
}

// emptyRole is the role of a project without kinds.
func emptyRole() *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{}}
	role.APIVersion, role.Kind, role.Name = rbacv1.SchemeGroupVersion.String(), "ClusterRole", "manager-role"
	return role
}

// marshalRole writes a role in controller-gen's form.
func marshalRole(role *rbacv1.ClusterRole) ([]byte, error) {
	text, err := yaml.Marshal(role)
	return append([]byte("---\n"), bytes.ReplaceAll(text, []byte("  creationTimestamp: null\n"), nil)...), err
}
