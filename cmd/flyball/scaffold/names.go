package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// names are what a user gives a name to. The names of the operator in the folder project are those that replacer
// replaces.
type names struct {
	module, project, domain string
	group, version, kind    string // group is the full one, with the domain
	shortGroup, plural      string
	spoke                   string // another version, which is converted to version and from it; may be empty
	nested                  bool   // the folders of the group are named after it
	cluster                 bool   // the objects are in no namespace
	external                string // the package of the types, of a kind that is not the project's own
	core                    bool   // external is Kubernetes' own
	annotated               bool   // the examples are about an annotation: the Spec has no field Message
}

const ownPath = "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project"

// in returns a folder of a kind: that of its group, where groups have their own.
func (n names) in(folder string, elements ...string) string {
	if n.nested {
		folder = path.Join(folder, n.shortGroup)
	}
	return path.Join(append([]string{folder}, elements...)...)
}

// replacer replaces the names of the operator in the folder project. Of those that begin in one place, the first one
// counts.
func (n names) replacer() *strings.Replacer {
	lower, alias := strings.ToLower(n.kind), n.alias()
	replaced := []string{ownPath + "/api/v1alpha1", cmp.Or(n.external, n.module+"/"+n.in("api", n.version))}
	if n.external != "" || n.annotated {
		replaced = append(replaced, `{"spec": {"message": "required"}}`, n.sample())
	}
	if n.nested {
		controllers, controller := n.in("internal/controller"), aliasOf(n.shortGroup, "controller")
		replaced = append(replaced,
			`"`+ownPath+`/internal/controller"`, controller+` "`+n.module+"/"+controllers+`"`,
			"controller.Gizmo", controller+"."+n.kind,
			"internal/controller/", controllers+"/",
			"webhookv1alpha1", "webhook"+alias,
			"gizmo_editor", n.shortGroup+"_"+lower+"_editor", "gizmo_viewer", n.shortGroup+"_"+lower+"_viewer",
			"gizmo-editor", n.shortGroup+"-"+lower+"-editor", "gizmo-viewer", n.shortGroup+"-"+lower+"-viewer",
			"webhook_in_gizmos", "webhook_in_"+n.shortGroup+"_"+n.plural,
			`Named("gizmo")`, `Named("`+n.shortGroup+"-"+lower+`")`,
		)
	}
	if n.spoke != "" {
		replaced = append(replaced,
			"api/v1beta7", n.in("api", n.spoke),
			"samplev1beta7", aliasOf(n.shortGroup, n.spoke),
			"v1beta7", n.spoke, "V1beta7", "V"+n.spoke[1:])
	}
	replaced = append(replaced,
		ownPath, n.module,
		"api/v1alpha1", n.in("api", n.version),
		"internal/webhook/v1alpha1", n.in("internal/webhook", n.version),
		"sample-operator", n.project,
		"sample_v1alpha1_gizmo", n.shortGroup+"_"+n.version+"_"+lower,
		"sample-flyball-example", strings.ReplaceAll(n.group, ".", "-"),
		"sample.flyball.example", n.group,
		"annotation.flyball.example", n.domain,
		"samplev1alpha1", alias,
		"v1alpha1", n.version,
		"Gizmos", n.kinds(),
		"Gizmo", n.kind,
		"gizmos", n.plural,
		"gizmo", lower,
	)
	return strings.NewReplacer(replaced...)
}

// alias is the name under which the package of the kind's types is imported.
func (n names) alias() string {
	if n.core && n.group == "" {
		return "core" + n.version // the templates import it by this name, too
	}
	return aliasOf(n.shortGroup, n.version)
}

// forCluster replaces clusterPairs.
var forCluster = strings.NewReplacer(clusterPairs...)

// clusterPairs make the templates those of a kind whose objects are in no namespace: what its controller writes is in
// the namespace of the operator.
var clusterPairs = []string{
	"+kubebuilder:resource:path=gizmos", "+kubebuilder:resource:path=gizmos,scope=Cluster",
	"scope: Namespaced", "scope: Cluster",
	`Namespace: "default", Name: "first"`, `Name: "first"`,
	`Namespace: "default", Name: "second"`, `Name: "second"`,
	`Namespace: "default", Name: "first-gizmo"`, `Namespace: "sample-operator-system", Name: "first-gizmo"`,
	"Namespace: obj.Namespace, Name:", "Namespace: r.Namespace, Name:",
	"Namespace: obj.Namespace, GenerateName:", `Namespace: "sample-operator-system", GenerateName:`,
	"Namespace: key.Namespace,", `Namespace: "sample-operator-system",`,
	`others.Namespace, others.Name = "default",`, `others.Namespace, others.Name = "sample-operator-system",`,
	"	Recorder events.Recorder\n",
	"	Recorder events.Recorder\n	// Namespace is that of the ConfigMaps.\n	Namespace string\n",
	"(&controller.GizmoReconciler{\n", "(&controller.GizmoReconciler{\n		Namespace: operatorNamespace(),\n",
	"(&GizmoReconciler{\n", "(&GizmoReconciler{\n		Namespace: \"sample-operator-system\",\n",
}

// forAnnotation makes the templates those of a kind of the project whose Spec has no field Message. The message is an
// annotation then, and the test of a conversion leaves the Spec to the user. The last pairs are for the controller that
// kinds of others have, which a kind of the project gets if its Status has other fields.
var forAnnotation = strings.NewReplacer(
	`if obj.Spec.Message == "" {`, `if message, found := `+messageOf+`; found && message == "" {`,
	"obj.Spec.Message", messageOf,
	"g.Spec.Message", strings.Replace(messageOf, "obj", "g", 1),
	`field.Invalid(field.NewPath("spec", "message"), `, "field.Invalid(\n"+
		`			field.NewPath("metadata", "annotations").Key("sample.flyball.example/message"), `,
	`Name: "first"},
		Spec:       samplev1alpha1.GizmoSpec{Message: message},
`, `Name: "first", Annotations: map[string]string{
			"sample.flyball.example/message": message,
		}},
`,
	`			Spec:       samplev1beta7.GizmoSpec{Message: "hello"},
`, "",
	"annotation.flyball.example", "sample.flyball.example",
	" Other controllers\n// own the Gizmos themselves, so it does not write to them.", "",
	" The definition of a kind of another project must be in config/crd/external.", "",
	", or put the definition into config/crd/external", "",
)

const messageOf = `obj.Annotations["sample.flyball.example/message"]`

// aliasOf is the name under which the package of the types of a group in a version is imported.
func aliasOf(group, version string) string {
	alias := strings.NewReplacer("-", "", ".", "").Replace(group) + version
	if slices.Contains([]string{"corev1", "metav1", "rbacv1"}, alias) || alias[0] <= '9' {
		return "api" + alias
	}
	return alias
}

// kinds is the plural of the kind, for prose.
func (n names) kinds() string {
	same := 0
	for lower := strings.ToLower(n.kind); same < len(lower) && same < len(n.plural) && lower[same] == n.plural[same]; {
		same++
	}
	return n.kind[:same] + n.plural[same:]
}

var (
	modulePath = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._~]*(/[A-Za-z0-9][-A-Za-z0-9._~]*)*$`)
	versioned  = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	camelCase  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	majorPath  = regexp.MustCompile(`^v[0-9]+$`)
)

func checkModule(module string) error {
	switch {
	case module == "":
		return errors.New("--module is needed: the path of the Go module, such as example.com/guestbook")
	case !modulePath.MatchString(module):
		return fmt.Errorf("--module %q: a module path is letters, digits and -._~, in elements with / between them, "+
			"such as example.com/guestbook", module)
	}
	return nil
}

// projectName derives the name of the project from its module.
func projectName(module string) string {
	if base := path.Base(module); !majorPath.MatchString(base) {
		return strings.ToLower(base)
	}
	return strings.ToLower(path.Base(path.Dir(module)))
}

// maxProject leaves room for the longest name that is made of the project's name.
const maxProject = 63 - len("-controller-manager-metrics-service")

func checkProject(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("--project-name %q: it begins the names of the objects in the cluster: %s", name, wrong[0])
	}
	var value any
	if err := yaml.Unmarshal([]byte(name), &value); err != nil || value != name || name[0] <= '9' {
		return fmt.Errorf("--project-name %q: it becomes a label and begins names of objects: it must begin with a "+
			"letter, and not be a word that YAML reads as something other than text", name)
	}
	if len(name) > maxProject {
		return fmt.Errorf("--project-name %q: it has more than %d characters, and begins longer names", name,
			maxProject)
	}
	return nil
}

// hosts serve the code of many. None of their users may name an API group after them.
var hosts = []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "gopkg.in"}

// domainOf derives the domain from the module, if the module is named after one.
func domainOf(module string) (string, error) {
	host, _, _ := strings.Cut(module, "/")
	if strings.Contains(host, ".") && !slices.Contains(hosts, host) {
		return host, checkDomain(host)
	}
	return "", fmt.Errorf("--domain is needed: the API groups end in a domain of yours, and the module %s does not "+
		"begin with one", module)
}

func checkDomain(domain string) error {
	if wrong := validation.IsDNS1123Subdomain(domain); len(wrong) > 0 {
		return fmt.Errorf("--domain %q: %s", domain, wrong[0])
	}
	if reserved(domain) {
		return fmt.Errorf("--domain %q: k8s.io and kubernetes.io belong to Kubernetes, and API servers reject "+
			"definitions there that it has not approved", domain)
	}
	return nil
}

func reserved(domain string) bool {
	return slices.ContainsFunc([]string{"k8s.io", "kubernetes.io"}, func(theirs string) bool {
		return domain == theirs || strings.HasSuffix(domain, "."+theirs)
	})
}

// checkKind checks what names one kind.
func checkKind(n names) error {
	switch {
	case n.shortGroup == "" || n.version == "" || n.kind == "":
		return errors.New("--group, --version and --kind are needed, such as --group webapp --version v1 " +
			"--kind Guestbook")
	case len(validation.IsDNS1123Subdomain(n.group)) > 0:
		return fmt.Errorf("--group %q: %s", n.shortGroup, validation.IsDNS1123Subdomain(n.group)[0])
	case n.domain != "" && strings.HasSuffix("."+n.shortGroup, "."+n.domain):
		return fmt.Errorf("--group %q: leave out %s, which is added to it", n.shortGroup, n.domain)
	case strings.NewReplacer("-", "", ".", "").Replace(n.shortGroup) == "webhook":
		return fmt.Errorf("--group %q: the package of the webhooks is imported by the name that the types of this "+
			"group would have: use another one, such as hooks", n.shortGroup)
	case !versioned.MatchString(n.version):
		return fmt.Errorf("--version %q: a version is v1, v1beta1 or v1alpha1, with any numbers from 1", n.version)
	case !camelCase.MatchString(n.kind):
		return fmt.Errorf("--kind %q: a kind is CamelCase, letters and digits that begin with a capital letter, such "+
			"as Guestbook", n.kind)
	case len(n.kind) > 63:
		return fmt.Errorf("--kind %q: it has more than 63 characters", n.kind)
	case strings.HasSuffix(n.kind, "List"):
		return fmt.Errorf("--kind %q: a kind that ends in List is a list of others", n.kind)
	}
	if wrong := validation.IsDNS1035Label(n.plural); len(wrong) > 0 {
		return fmt.Errorf("--plural %q: %s", n.plural, wrong[0])
	}
	return nil
}
