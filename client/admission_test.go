package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
)

// admit installs a webhook that reviews writes of ConfigMaps. review returns nil to allow a write.
func (w *world) admit(mutating bool, review func(r *http.Request, asked *admissionv1.AdmissionRequest) *metav1.Status) {
	w.t.Helper()
	hook := registrationv1.WebhookClientConfig{
		Service: &registrationv1.ServiceReference{Namespace: "hooks", Name: "hook"},
	}
	rules := []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.OperationAll},
		Rule: registrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
		},
	}}
	none, versions := ptr.To(registrationv1.SideEffectClassNone), []string{"v1"}
	name := metav1.ObjectMeta{Name: "hook"}
	if mutating {
		w.must(w.api.Seed(w.ctx, &registrationv1.MutatingWebhookConfiguration{
			ObjectMeta: name, Webhooks: []registrationv1.MutatingWebhook{{
				Name: "hook.example.com", ClientConfig: hook, Rules: rules,
				SideEffects: none, AdmissionReviewVersions: versions,
			}},
		}))
	} else {
		w.must(w.api.Seed(w.ctx, &registrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: name, Webhooks: []registrationv1.ValidatingWebhook{{
				Name: "hook.example.com", ClientConfig: hook, Rules: rules,
				SideEffects: none, AdmissionReviewVersions: versions,
			}},
		}))
	}
	w.api.HandleWebhook("hooks/hook", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var asked admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		result := review(r, asked.Request)
		asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: result == nil, Result: result}
		_ = json.NewEncoder(rw).Encode(asked)
	}))
}

// A write that admission denies had no effect, whatever code a webhook chooses for its denial, and also if the webhook
// fails. No read waits for such a write or asks the server about it.
func TestAdmissionAnswersAreKnown(t *testing.T) {
	for _, mutating := range []bool{false, true} {
		for _, code := range []int32{400, 403, 500, 503, 504, 0} {
			t.Run(fmt.Sprintf("mutating %v, code %d", mutating, code), func(t *testing.T) {
				inWorld(t, client.Options{}, func(w *world) {
					w.warm(&corev1.ConfigMapList{})
					w.admit(mutating, func(_ *http.Request, asked *admissionv1.AdmissionRequest) *metav1.Status {
						if code == 0 {
							panic(http.ErrAbortHandler)
						}
						return &metav1.Status{Code: code, Message: "no"}
					})
					w.api.Audit().Reset()
					child := configMap("")
					child.GenerateName = "child-"
					began := time.Now()
					for what, err := range map[string]error{
						"create": w.Create(w.ctx, child),
						"patch": w.Patch(w.ctx, configMap("a"), client.RawPatch(types.MergePatchType,
							[]byte(`{"metadata":{"labels":{"v":"2"}}}`))),
					} {
						if err == nil {
							t.Errorf("%s: admitted", what)
						}
					}
					w.wantNames("a")
					w.must(w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
					w.must(w.Ready(w.ctx, "reconcile"))
					if took, reads := time.Since(began), w.calls("get", "list", "watch"); took != 0 || reads != 0 {
						t.Errorf("reads waited %v and asked the server %d times", took, reads)
					}
				}, configMap("a"))
			})
		}
	}
}

// A deletion of many objects that is refused for one has deleted the objects before it. Reads see that.
func TestDeleteAllOfRefusedForOne(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.admit(false, func(_ *http.Request, asked *admissionv1.AdmissionRequest) *metav1.Status {
			if asked.Operation == admissionv1.Delete && bytes.Contains(asked.OldObject.Raw, []byte(`"name":"b"`)) {
				return &metav1.Status{Code: 403, Message: "no"}
			}
			return nil
		})
		w.set(func() { w.lag = 200 * time.Millisecond })
		w.warm(&corev1.ConfigMapList{})
		if err := w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default")); err == nil {
			t.Fatal("all are deleted")
		}
		w.wantNames("b")
	}, configMap("a"), configMap("b"))
}

// A webhook that is called because of a reconcile's write does not read as a part of that reconcile, even in the same
// process.
func TestWebhookOfAReconcileIsNone(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.lose(true)
		child := configMap("")
		child.GenerateName = "child-"
		if err := w.Create(w.ctx, child); err == nil {
			t.Fatal("the answer was not lost")
		}
		w.set(func() { w.after = nil })
		reviews := 0
		w.admit(false, func(r *http.Request, _ *admissionv1.AdmissionRequest) *metav1.Status {
			reviews++
			w.must(w.List(r.Context(), &corev1.ConfigMapList{}))
			return nil
		})
		w.must(w.Update(w.ctx, configMap("a", "v", "2")))
		if err := w.List(w.ctx, &corev1.ConfigMapList{}); !errors.Is(err, client.ErrStale) || reviews != 1 {
			t.Errorf("list in the reconcile: %v, after %d reviews", err, reviews)
		}
	}, configMap("a"))
}
