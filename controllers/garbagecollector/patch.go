package garbagecollector

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// There are two kinds of patches. A strategic merge patch has only the entries that change, and applies only if the
// object still has the UID. Resources that do not support it, such as custom ones, get a merge patch. It replaces the
// whole list, and applies only if the object still has the resource version at which the list was read.

// mergePatch is a patch of the metadata.
type mergePatch struct {
	Metadata any `json:"metadata"`
}

type disownEntry struct {
	Patch string    `json:"$patch"`
	UID   types.UID `json:"uid"`
}

// strategicDisown returns the patch that removes the references to owners from the object.
func strategicDisown(object types.UID, owners []types.UID) ([]byte, error) {
	var entries []disownEntry
	for _, uid := range owners {
		entries = append(entries, disownEntry{Patch: "delete", UID: uid})
	}
	return json.Marshal(mergePatch{struct {
		OwnerReferences []disownEntry `json:"ownerReferences"`
		UID             types.UID     `json:"uid"`
	}{entries, object}})
}

// mergeDisown returns the merge patch that removes the references to owners from latest.
func mergeDisown(latest *metav1.PartialObjectMetadata, owners []types.UID) ([]byte, error) {
	return replaceOwners(latest,
		slices.DeleteFunc(slices.Clone(latest.OwnerReferences), func(ref metav1.OwnerReference) bool {
			return slices.Contains(owners, ref.UID)
		}))
}

// strategicUnblock returns the patch that clears blockOwnerDeletion in the references.
func strategicUnblock(latest *metav1.PartialObjectMetadata) ([]byte, error) {
	return json.Marshal(mergePatch{struct {
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		UID             types.UID               `json:"uid"`
	}{unblocked(latest.OwnerReferences, true), latest.UID}})
}

// mergeUnblock returns the merge patch for the same.
func mergeUnblock(latest *metav1.PartialObjectMetadata) ([]byte, error) {
	return replaceOwners(latest, unblocked(latest.OwnerReferences, false))
}

// unblocked returns refs with blockOwnerDeletion cleared. With onlyChanged, it omits the references that did not block.
func unblocked(refs []metav1.OwnerReference, onlyChanged bool) []metav1.OwnerReference {
	var list []metav1.OwnerReference
	for _, ref := range refs {
		switch {
		case blocking(ref):
			no := false
			ref.BlockOwnerDeletion = &no
			list = append(list, ref)
		case !onlyChanged:
			list = append(list, ref)
		}
	}
	return list
}

func replaceOwners(latest *metav1.PartialObjectMetadata, refs []metav1.OwnerReference) ([]byte, error) {
	return json.Marshal(mergePatch{struct {
		ResourceVersion string                  `json:"resourceVersion"`
		UID             types.UID               `json:"uid"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"` // null removes the list
	}{latest.ResourceVersion, latest.UID, refs}})
}

// finalizerPatch returns the merge patch that removes one finalizer from latest.
func finalizerPatch(latest *metav1.PartialObjectMetadata, finalizer string) ([]byte, error) {
	rest := slices.DeleteFunc(slices.Clone(latest.Finalizers), func(f string) bool { return f == finalizer })
	if len(rest) == 0 {
		rest = nil
	}
	return json.Marshal(mergePatch{struct {
		ResourceVersion string   `json:"resourceVersion"`
		Finalizers      []string `json:"finalizers"` // null removes the list
	}{latest.ResourceVersion, rest}})
}
