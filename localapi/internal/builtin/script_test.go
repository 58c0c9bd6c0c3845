package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// TestRules plays the scripts in testdata against the definitions, in the order that the package resource promises. All
// answers in the scripts are those of kube-apiserver v1.37.2; each script names where the rule stands.
//
//	create           store a new object, print it
//	patch, status    change it (or its status) by a merge patch, print what differs then as a merge patch
//	sub name=scale   write to a subresource: a merge patch of its view, or the body of an action
//	view name=scale  print a subresource
//	table [wide]     print it as kubectl does
//	fields           print what a field selector sees
//	delete           print the grace period for the delete options given
//	remove           free what was allocated
//	advance d        let time pass
func TestRules(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		p := &player{alloc: newAllocator()}
		synctest.Test(t, func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return p.play(t, d)
			})
		})
	})
	if scripts, _ := filepath.Glob("testdata/*"); len(scripts) == 0 {
		t.Fatal("no scripts")
	}
}

// player holds the one object of a script.
type player struct {
	def   *resource.Definition
	obj   runtime.Object
	alloc *allocator
}

func (p *player) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "create":
		return p.create(t, d.Input)
	case "patch":
		return p.change(t, d.Input, p.update)
	case "status":
		return p.change(t, d.Input, p.updateStatus)
	case "sub":
		return p.subresource(t, arg(t, d, "name"), d.Input)
	case "view":
		view, err := p.def.Subresources[arg(t, d, "name")].Project(t.Context(), p.obj)
		if err != nil {
			return failure(err)
		}
		return toYAML(t, view)
	case "table":
		return p.table(d.HasArg("wide"))
	case "fields":
		return strings.ReplaceAll(p.def.Fields(p.obj).String(), ",", "\n")
	case "delete":
		var o metav1.DeleteOptions
		fromYAML(t, d.Input, &o)
		return fmt.Sprintf("grace %d", p.def.Grace(p.obj, &o))
	case "remove":
		done, err := p.def.Allocate(t.Context(), p.alloc, nil, p.obj)
		if err != nil {
			return failure(err)
		}
		done(true)
		return p.alloc.String()
	case "advance":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
		return ""
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}

func arg(t *testing.T, d *datadriven.TestData, name string) (value string) {
	t.Helper()
	d.ScanArgs(t, name, &value)
	return value
}

func (p *player) create(t *testing.T, input string) string {
	t.Helper()
	var kind metav1.TypeMeta
	fromYAML(t, input, &kind)
	p.def = definitionOf(kind)
	if p.def == nil {
		t.Fatalf("no definition of %v", kind)
	}
	obj := p.def.New()
	fromYAML(t, input, obj)
	m, _ := meta.Accessor(obj)
	m.SetUID("6f8e2a40-0000-4000-8000-000000000001")
	m.SetCreationTimestamp(metav1.Now())
	if p.def.Namespaced {
		m.SetNamespace("default")
	}
	if p.def.Default != nil {
		p.def.Default(obj)
	}
	if obj, m = admit(t, obj, nil); p.def.PrepareCreate != nil {
		p.def.PrepareCreate(t.Context(), obj)
	}
	done, err := p.allocate(t.Context(), obj, nil)
	if err != nil {
		return failure(err)
	}
	var errs field.ErrorList
	if p.def.Validate != nil {
		errs = p.def.Validate(obj)
	}
	if p.def.ValidateCreate != nil {
		errs = append(errs, p.def.ValidateCreate(obj)...)
	}
	done(len(errs) == 0)
	if len(errs) > 0 {
		return failure(p.invalid(obj, errs))
	}
	m.SetResourceVersion("1")
	p.obj = obj
	shown := obj.DeepCopyObject()
	hide(shown)
	return toYAML(t, shown)
}

// admit has [PodAdmission] change a pod, and returns other objects as they are. old is nil for a create.
func admit(t *testing.T, obj, old runtime.Object) (runtime.Object, metav1.Object) {
	t.Helper()
	a := &admission.Attributes{Operation: admissionv1.Create, Object: obj}
	if _, ok := obj.(*corev1.Pod); ok {
		a.Resource = corev1.SchemeGroupVersion.WithResource("pods")
	}
	if old != nil {
		a.Operation, a.OldObject = admissionv1.Update, old
	}
	if err := (&PodAdmission{PriorityClasses: everyCluster}).Mutate(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	m, err := meta.Accessor(a.Object)
	if err != nil {
		t.Fatal(err)
	}
	return a.Object, m
}

// everyCluster returns the priority classes that every cluster has, as the server stores them.
func everyCluster() ([]*schedulingv1.PriorityClass, error) {
	all := SystemPriorityClasses()
	for _, c := range all {
		c.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
	return all, nil
}

// change applies a merge patch to the object, gives it to judge, and prints what came of it.
func (p *player) change(t *testing.T, input string, judge func(ctx context.Context, obj runtime.Object) error) string {
	t.Helper()
	before := toJSON(t, p.obj)
	patch, err := yaml.YAMLToJSON([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatal(err)
	}
	obj := p.def.New()
	if err := json.Unmarshal(merged, obj); err != nil {
		t.Fatal(err)
	}
	if p.def.Default != nil {
		p.def.Default(obj)
	}
	obj, _ = admit(t, obj, p.obj)
	if err := judge(t.Context(), obj); err != nil {
		return failure(err)
	}
	return p.replace(t, before, obj)
}

// replace makes obj the object and prints how it differs from before.
func (p *player) replace(t *testing.T, before []byte, obj runtime.Object) string {
	t.Helper()
	p.obj = obj
	changed, err := jsonpatch.CreateMergePatch(before, toJSON(t, obj))
	if err != nil {
		t.Fatal(err)
	}
	if string(changed) == "{}" {
		return "no change"
	}
	text, err := yaml.JSONToYAML(changed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (p *player) update(ctx context.Context, obj runtime.Object) error {
	old := p.obj
	if p.def.PrepareUpdate != nil {
		p.def.PrepareUpdate(ctx, obj, old)
	}
	done, err := p.allocate(ctx, obj, old)
	if err != nil {
		return err
	}
	errs := p.judge(obj, old)
	done(len(errs) == 0)
	if len(errs) > 0 {
		return p.invalid(obj, errs)
	}
	return nil
}

func (p *player) judge(obj, old runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if p.def.Validate != nil {
		errs = append(errs, p.def.Validate(obj)...)
	}
	if p.def.ValidateUpdate != nil {
		errs = append(errs, p.def.ValidateUpdate(obj, old)...)
	}
	return errs
}

func (p *player) updateStatus(ctx context.Context, obj runtime.Object) error {
	p.def.PrepareStatusUpdate(ctx, obj, p.obj)
	if p.def.ValidateStatusUpdate == nil {
		return nil
	}
	if errs := p.def.ValidateStatusUpdate(obj, p.obj); len(errs) > 0 {
		return p.invalid(obj, errs)
	}
	return nil
}

func (p *player) subresource(t *testing.T, name, input string) string {
	t.Helper()
	sub := p.def.Subresources[name]
	body, err := yaml.YAMLToJSON([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	if sub.Project != nil {
		view, err := sub.Project(t.Context(), p.obj)
		if err != nil {
			return failure(err)
		}
		if body, err = jsonpatch.MergePatch(toJSON(t, view), body); err != nil {
			t.Fatal(err)
		}
	}
	asked := sub.New()
	if err := json.Unmarshal(body, asked); err != nil {
		t.Fatal(err)
	}
	if sub.Delete != nil {
		o, _, err := sub.Delete(t.Context(), resource.Deletion{Object: p.obj, Body: asked})
		if err != nil {
			return failure(err)
		}
		return "delete with " + toYAML(t, o)
	}
	obj := p.obj.DeepCopyObject()
	if err := sub.Merge(t.Context(), obj, asked); err != nil {
		return failure(err)
	}
	judge := p.judge
	if sub.Validate != nil {
		judge = sub.Validate
	}
	if errs := judge(obj, p.obj); len(errs) > 0 {
		return failure(p.invalid(obj, errs))
	}
	return p.replace(t, toJSON(t, p.obj), obj)
}

func (p *player) allocate(ctx context.Context, obj, old runtime.Object) (func(bool), error) {
	nothing := func(bool) {}
	if p.def.Allocate == nil {
		return nothing, nil
	}
	done, err := p.def.Allocate(ctx, p.alloc, obj, old)
	if done == nil {
		done = nothing
	}
	return done, err
}

// table prints like kubectl: headings in capitals, columns of priority 1 only if wide.
func (p *player) table(wide bool) string {
	row := p.def.Row(p.obj, time.Now())
	var headings, values []string
	for i, c := range p.def.Columns {
		if c.Priority > 0 && !wide {
			continue
		}
		value := fmt.Sprint(row[i])
		width := max(len(c.Name), len(value))
		headings = append(headings, fmt.Sprintf("%-*s", width, strings.ToUpper(c.Name)))
		values = append(values, fmt.Sprintf("%-*s", width, value))
	}
	return strings.TrimRight(strings.Join(headings, "   "), " ") + "\n" +
		strings.TrimRight(strings.Join(values, "   "), " ")
}

func (p *player) invalid(obj runtime.Object, errs field.ErrorList) error {
	m, _ := meta.Accessor(obj)
	return apierrors.NewInvalid(p.def.GroupVersionKind().GroupKind(), m.GetName(), errs)
}

func definitionOf(kind metav1.TypeMeta) *resource.Definition {
	for _, d := range All() {
		if d.GroupVersionKind() == kind.GroupVersionKind() {
			return d
		}
	}
	return nil
}

// failure prints an API error: its code and reason, and each cause on a line of its own.
func failure(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "500: " + err.Error()
	}
	s := status.Status()
	head := strings.TrimSpace(fmt.Sprintf("%d %s", s.Code, s.Reason))
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return head + ": " + s.Message
	}
	for _, cause := range s.Details.Causes {
		head += fmt.Sprintf("\n%s: %s", cause.Field, strings.TrimRight(cause.Message, "\n"))
	}
	return head
}

// hide removes what is the same in all scripts.
func hide(obj runtime.Object) {
	m, _ := meta.Accessor(obj)
	m.SetUID("")
	m.SetNamespace("")
	m.SetResourceVersion("")
	m.SetCreationTimestamp(metav1.Time{})
}

func fromYAML(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func toYAML(t *testing.T, obj any) string {
	t.Helper()
	text, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func toJSON(t *testing.T, obj any) []byte {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
