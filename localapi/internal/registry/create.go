package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// WriteOptions are the options that all writes share.
type WriteOptions struct {
	// DryRun computes and validates the result, but stores nothing.
	DryRun bool

	// Manager is the owner of the fields that the write sets. "" leaves the managed fields alone.
	Manager string

	// Apply means that the write is a server-side apply, which is useless without managed fields.
	Apply bool

	// Warn receives warnings for the client. It is never nil.
	Warn func(string)

	// Admission, if not nil, changes and checks the object.
	Admission Admission

	// Admit, if not nil, checks an object before the rules of its type. old is nil for a create.
	Admit func(obj, old runtime.Object) error

	// Permit, if not nil, checks an object as it will be stored, once it is known to be valid.
	Permit func(obj, old runtime.Object) error
}

// Admission decides about writes. It is called with no lock held, and may take long. Errors refuse the write.
type Admission interface {
	// Mutate returns what to go on with in place of obj, which the caller gives away. The rules of the type have not
	// seen obj yet. old is nil for a create.
	Mutate(ctx context.Context, obj, old runtime.Object) (runtime.Object, error)

	// Validate sees obj as it will be stored.
	Validate(ctx context.Context, obj, old runtime.Object) error

	// Delete sees old before it is deleted, or marked as deleted.
	Delete(ctx context.Context, old runtime.Object) error
}

// mutate is [Admission.Mutate], if there is an admission.
func (o *WriteOptions) mutate(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
	if o.Admission != nil {
		var err error
		if obj, err = o.Admission.Mutate(ctx, obj, old); err != nil {
			return nil, err
		}
	}
	dedupOwnerReferences(resource.Meta(obj), " after mutating admission happens", o.Warn)
	return obj, nil
}

// permit makes the last checks of obj.
func (o *WriteOptions) permit(ctx context.Context, obj, old runtime.Object) error {
	if o.Permit != nil {
		if err := o.Permit(obj, old); err != nil {
			return err
		}
	}
	if o.Admission == nil {
		return nil
	}
	return o.Admission.Validate(ctx, obj, old)
}

// nameAttempts is how often a create with a generated name is tried, each time with another name.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go maxNameGenerationCreateAttempts.
const nameAttempts = 8

// Create stores a new object. It takes ownership of obj.
func (r *Resource) Create(ctx context.Context, namespace string, obj runtime.Object,
	o WriteOptions,
) (*watchcache.Object, error) {
	m := resource.Meta(obj)
	if err := r.matchNamespace(namespace, m); err != nil {
		return nil, err
	}
	wipe(m)
	DedupOwnerReferences(m, o.Warn)
	var err error
	if o.Manager != "" {
		if obj, err = r.env.Managers.Update(ctx, r.Written(""), r.New(), obj, o.Manager); err != nil {
			return nil, err
		}
	}
	if obj, err = r.admitNew(ctx, obj, namespace, o); err != nil {
		return nil, err
	}
	if m = resource.Meta(obj); m.GetName() != "" || m.GetGenerateName() == "" {
		return r.create(ctx, obj, o)
	}
	for range nameAttempts {
		attempt := obj.DeepCopyObject()
		a := resource.Meta(attempt)
		a.SetName(r.generateName(a.GetGenerateName()))
		created, err := r.create(ctx, attempt, o)
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
		m = a
	}
	return nil, apierrors.NewGenerateNameConflict(r.Definition.GroupResource(), m.GetName(), 1)
}

// admitNew returns what to create in place of obj, or an error if obj must not be created in its namespace.
func (r *Resource) admitNew(ctx context.Context, obj runtime.Object, namespace string,
	o WriteOptions,
) (runtime.Object, error) {
	m := resource.Meta(obj)
	if r.Definition.Terminating {
		return nil, createWhileTerminating(r.Definition.GroupResource(), m.GetName())
	}
	if err := r.namespaceTakesContent(m); err != nil {
		return nil, err
	}
	obj, err := o.mutate(ctx, obj, nil)
	if err != nil {
		return nil, err
	}
	if o.Admission != nil {
		if err := r.matchNamespace(namespace, resource.Meta(obj)); err != nil {
			return nil, err
		}
	}
	if o.Admit != nil {
		err = o.Admit(obj, nil)
	}
	return obj, err
}

// create stores obj, which is admitted and has its name, its namespace and its managed fields.
func (r *Resource) create(ctx context.Context, obj runtime.Object, o WriteOptions) (_ *watchcache.Object, err error) {
	m := resource.Meta(obj)
	d := r.Definition
	version := m.GetResourceVersion()
	m.SetResourceVersion("")
	m.SetUID(r.env.UID())
	m.SetCreationTimestamp(now())
	if d.PrepareCreate != nil {
		d.PrepareCreate(ctx, obj)
	}
	done, err := r.allocate(ctx, obj, nil)
	if err != nil {
		return nil, err
	}
	stored := false
	defer func() { done(stored) }()
	if err := r.validateCreate(ctx, obj, m, o); err != nil {
		return nil, err
	}
	r.warn(obj, nil, o)
	if err := o.permit(ctx, obj, nil); err != nil {
		return nil, err
	}
	key := r.key(m.GetNamespace(), m.GetName()).String()
	if o.DryRun {
		m.SetResourceVersion(version)
		return r.dryCreate(obj, key, m.GetName())
	}
	if err := checkNoVersion(version); err != nil {
		return nil, err
	}
	value, err := r.value(ctx, obj, m, o)
	if err != nil {
		return nil, err
	}
	created, err := r.put(ctx, storage.Record{Key: key}, obj, value)
	if errors.Is(err, storage.ErrConflict) {
		return nil, r.alreadyExists(key, m.GetName())
	}
	stored = err == nil
	return created, err
}

// checkNoVersion rejects a new object that has a resource version. The real server's storage checks this last, so a dry
// run does not get the error, and ignores a version that is not a number.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/etcd3/store.go Create.
func checkNoVersion(version string) error {
	if v, err := strconv.ParseUint(version, 10, 64); err != nil || v == 0 {
		return nil
	}
	return plainError("resourceVersion should not be set on objects to be created")
}

// createWhileTerminating returns the error for custom resources of a definition that is being deleted.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go forbidCreateAdmission.
func createWhileTerminating(gr schema.GroupResource, name string) error {
	return apierrors.NewForbidden(gr, name,
		errors.New("create not allowed while custom resource definition is terminating"))
}

func (r *Resource) dryCreate(obj runtime.Object, key, name string) (*watchcache.Object, error) {
	_, exists, err := r.Objects.Get(key)
	if err != nil {
		return nil, err
	}
	if exists {
		return nil, r.alreadyExists(key, name)
	}
	return r.object(obj, key, 0), nil
}

func (r *Resource) alreadyExists(key, name string) error {
	err := apierrors.NewAlreadyExists(r.Definition.GroupResource(), name)
	if o, ok, _ := r.Objects.Get(key); ok && o.Meta.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// generateName appends a random suffix to base, which it cuts so that the result is a valid name.
//
// Source: k8s.io/apiserver pkg/storage/names/generate.go.
func (r *Resource) generateName(base string) string {
	const maxLength, suffixLength = 63, 5
	if len(base) > maxLength-suffixLength {
		base = base[:maxLength-suffixLength]
	}
	return base + r.env.Suffix()
}

// matchNamespace sets an object's namespace to that of the request, and returns an error if the object names another.
//
// Source: k8s.io/apiserver pkg/registry/rest/meta.go EnsureObjectNamespaceMatchesRequestNamespace.
func (r *Resource) matchNamespace(namespace string, m metav1.Object) error {
	if !r.Definition.Namespaced {
		namespace = ""
	}
	switch own := m.GetNamespace(); {
	case own == namespace:
	case own == "" || namespace == "":
		m.SetNamespace(namespace)
	default:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request",
		)
	}
	return nil
}

// namespaceTakesContent rejects objects in namespaces that do not exist or are being deleted.
//
// Source: k8s.io/apiserver pkg/admission/plugin/namespace/lifecycle.
func (r *Resource) namespaceTakesContent(m metav1.Object) error {
	namespaces := r.env.Namespaces
	if !r.Definition.Namespaced || namespaces == nil {
		return nil
	}
	name := m.GetNamespace()
	ns, ok, err := namespaces.Objects.Get(namespaces.key("", name).String())
	if err != nil {
		return err
	}
	if !ok {
		return namespaces.notFound(name)
	}
	if ns.Meta.GetDeletionTimestamp() == nil {
		return nil
	}
	forbidden := apierrors.NewForbidden(r.Definition.GroupResource(), m.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	forbidden.ErrStatus.Details.Causes = append(forbidden.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", name),
		Field:   "metadata.namespace",
	})
	return forbidden
}

// wipe clears the fields that only the server may set.
func wipe(m metav1.Object) {
	m.SetCreationTimestamp(metav1.Time{})
	m.SetUID("")
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
}

// now returns the present time with the precision that is stored.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }

// DedupOwnerReferences drops owner references that are equal to an earlier one, and warns of them. Create does so
// itself. For an update it is for the caller to do before the managed fields are computed; a patch does not do it. All
// three repeat it after the mutating admission, and the warning says so, even if no plugin changed anything.
func DedupOwnerReferences(m metav1.Object, warn func(string)) { dedupOwnerReferences(m, "", warn) }

// dedupOwnerReferences is DedupOwnerReferences. when is a part of the warning.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/rest.go dedupOwnerReferencesAndAddWarning.
func dedupOwnerReferences(m metav1.Object, when string, warn func(string)) {
	refs := m.GetOwnerReferences()
	if len(refs) < 2 {
		return
	}
	seen := map[string]bool{}
	unique := refs[:0:0]
	var duplicates []string
	for _, ref := range refs {
		if id := ref.String(); !seen[id] {
			seen[id] = true
			unique = append(unique, ref)
		} else {
			duplicates = append(duplicates, string(ref.UID))
		}
	}
	if len(duplicates) == 0 {
		return
	}
	warn(fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in "+
		"1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s",
		when, strings.Join(duplicates, ", ")))
	m.SetOwnerReferences(unique)
}
