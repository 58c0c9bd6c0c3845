package api

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The copies share nothing with their originals. TestCopiesShareNothing checks every field.

// each returns a slice with a copy of every element, nil for nil.
func each[T any](list []T, deep func(T) T) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i, e := range list {
		out[i] = deep(e)
	}
	return out
}

// copied returns a pointer to a copy, or nil for nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func raws(m map[string]runtime.RawExtension) map[string]runtime.RawExtension {
	out := maps.Clone(m)
	for k := range out {
		v := m[k]
		out[k] = *v.DeepCopy()
	}
	return out
}

// items returns copies of the list's items.
func items[T any, P interface {
	*T
	DeepCopyObject() runtime.Object
}](list []T,
) []T {
	return each(list, func(item T) T { return *P(&item).DeepCopyObject().(P) })
}

// DeepCopyObject implements runtime.Object.
func (s *ImageStream) DeepCopyObject() runtime.Object {
	d := *s
	d.ObjectMeta = *s.ObjectMeta.DeepCopy()
	d.Spec.Tags = each(s.Spec.Tags, func(t TagReference) TagReference {
		t.From, t.Annotations = copied(t.From), maps.Clone(t.Annotations)
		return t
	})
	d.Status.Tags = each(s.Status.Tags, func(t NamedTagEventList) NamedTagEventList {
		t.Items = slices.Clone(t.Items)
		return t
	})
	return &d
}

// DeepCopyObject implements runtime.Object.
func (i *Image) DeepCopyObject() runtime.Object {
	d := *i
	d.ObjectMeta = *i.ObjectMeta.DeepCopy()
	d.DockerLabels, d.Manifests = maps.Clone(i.DockerLabels), slices.Clone(i.Manifests)
	return &d
}

// DeepCopyObject implements runtime.Object.
func (i *ImageStreamImport) DeepCopyObject() runtime.Object {
	d := *i
	d.ObjectMeta = *i.ObjectMeta.DeepCopy()
	d.Spec.Images = slices.Clone(i.Spec.Images)
	d.Status.Images = each(i.Status.Images, func(s ImageImportStatus) ImageImportStatus {
		s.Image = copied(s.Image)
		return s
	})
	return &d
}

// DeepCopyObject implements runtime.Object.
func (j *ProwJob) DeepCopyObject() runtime.Object {
	d := *j
	d.ObjectMeta = *j.ObjectMeta.DeepCopy()
	d.Spec.Refs, d.Spec.Args, d.Spec.Env = copied(j.Spec.Refs), slices.Clone(j.Spec.Args), maps.Clone(j.Spec.Env)
	d.Status.CompletionTime = j.Status.CompletionTime.DeepCopy()
	return &d
}

// DeepCopyObject implements runtime.Object.
func (i *TestImageStreamTagImport) DeepCopyObject() runtime.Object {
	d := *i
	d.ObjectMeta = *i.ObjectMeta.DeepCopy()
	return &d
}

// DeepCopyObject implements runtime.Object.
func (c *EphemeralCluster) DeepCopyObject() runtime.Object {
	d := *c
	d.ObjectMeta = *c.ObjectMeta.DeepCopy()
	if c.Spec.TimeToLive != nil {
		ttl := *c.Spec.TimeToLive
		d.Spec.TimeToLive = &ttl
	}
	from, to := &c.Spec.CIOperator, &d.Spec.CIOperator
	to.BuildRoot = from.BuildRoot.DeepCopy()
	to.BaseImages, to.ExternalImages = raws(from.BaseImages), raws(from.ExternalImages)
	to.Releases, to.Resources = raws(from.Releases), raws(from.Resources)
	to.Test.Env, to.Test.ClusterClaim = maps.Clone(from.Test.Env), from.Test.ClusterClaim.DeepCopy()
	d.Status.Conditions = each(c.Status.Conditions, func(c metav1.Condition) metav1.Condition { return *c.DeepCopy() })
	return &d
}

// DeepCopyObject implements runtime.Object.
func (l *ImageStreamList) DeepCopyObject() runtime.Object {
	return &ImageStreamList{l.TypeMeta, *l.ListMeta.DeepCopy(), items(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *ImageList) DeepCopyObject() runtime.Object {
	return &ImageList{l.TypeMeta, *l.ListMeta.DeepCopy(), items(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *ImageStreamImportList) DeepCopyObject() runtime.Object {
	return &ImageStreamImportList{l.TypeMeta, *l.ListMeta.DeepCopy(), items(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *ProwJobList) DeepCopyObject() runtime.Object {
	return &ProwJobList{l.TypeMeta, *l.ListMeta.DeepCopy(), items(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *TestImageStreamTagImportList) DeepCopyObject() runtime.Object {
	return &TestImageStreamTagImportList{l.TypeMeta, *l.ListMeta.DeepCopy(), items(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *EphemeralClusterList) DeepCopyObject() runtime.Object {
	return &EphemeralClusterList{l.TypeMeta, *l.ListMeta.DeepCopy(), items(l.Items)}
}
