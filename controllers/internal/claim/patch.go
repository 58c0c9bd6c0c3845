package claim

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The API server compares metadata.uid in a patch with the stored object and refuses the patch when they differ:
// that makes the uid a precondition, so neither patch can hit an object that replaced the one we saw.

// adopting is the patch that makes an owner the controller of an object. Strategic merge joins ownerReferences by
// uid, so the references of others stay; the server rejects a second one with controller=true.
type adopting struct {
	Metadata struct {
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		UID             types.UID               `json:"uid"`
	} `json:"metadata"`
}

// releasing is the patch that removes one owner reference.
type releasing struct {
	Metadata struct {
		UID             types.UID    `json:"uid"`
		OwnerReferences []removedRef `json:"ownerReferences"`
	} `json:"metadata"`
}

type removedRef struct {
	Directive string    `json:"$patch"`
	UID       types.UID `json:"uid"`
}

func adoptPatch(owner metav1.Object, kind schema.GroupVersionKind, uid types.UID) ([]byte, error) {
	var p adopting
	p.Metadata.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	p.Metadata.UID = uid
	return encode(p)
}

func releasePatch(owner, uid types.UID) ([]byte, error) {
	var p releasing
	p.Metadata.UID = uid
	p.Metadata.OwnerReferences = []removedRef{{Directive: "delete", UID: owner}}
	return encode(p)
}

func encode(patch any) ([]byte, error) {
	b, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return b, nil
}
