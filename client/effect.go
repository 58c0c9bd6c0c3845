package client

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reply is what an answer says about itself: an object, or a Status.
type reply struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Details           *metav1.StatusDetails `json:"details"`
}

// effect is what the answer to w says about the object. told is false when it does not say; a nil entry is no effect.
func (w *write) effect(data []byte) (e *entry, told bool) {
	var r reply
	if w.all || decode(data, &r) != nil {
		return nil, false
	}
	e = &entry{key: ObjectKey{Namespace: r.Namespace, Name: r.Name}, uid: r.UID, version: r.ResourceVersion, owner: w.owner, at: time.Now(), raw: data}
	e.kind.gvk = r.GroupVersionKind()
	switch {
	case r.Kind == "Status" && w.deletes:
		if r.Details == nil || r.Details.UID == "" {
			return nil, false
		}
		return w.vanished(r.Details.UID), true
	case r.Kind == "Status":
		return nil, false
	case w.deletes && (r.DeletionTimestamp == nil || isGone(&r.ObjectMeta)):
		return w.vanished(r.UID), true
	case isGone(&r.ObjectMeta):
		gone := w.vanished(r.UID)
		gone.version = later(gone.version, r.ResourceVersion)
		return gone, true
	case r.ResourceVersion == "":
		return nil, true // A subresource that changes nothing, as a token.
	case w.place.subresource != "" && e.key != w.key:
		return nil, false
	}
	return e, true
}

// vanished is the entry of the object with that uid, which is no more.
func (w *write) vanished(uid types.UID) *entry {
	e := &entry{key: w.key, uid: uid, gone: true, owner: w.owner, at: time.Now()}
	for _, known := range w.known {
		if known.uid == uid && known.version != "" {
			e.version = later(e.version, known.version)
		}
	}
	return e
}
