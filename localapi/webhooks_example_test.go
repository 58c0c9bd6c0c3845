package localapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
)

// refuse is a webhook that allows nothing.
func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Result: &metav1.Status{Message: "not today"},
	}
	_ = json.NewEncoder(w).Encode(review)
}

// A webhook in the process takes the place of the Service that a configuration names.
func ExampleServer_HandleWebhook() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	err = server.Seed(context.Background(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "maps.shop.example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				Service: &registrationv1.ServiceReference{Namespace: "shop", Name: "webhooks"},
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
			SideEffects: ptr.To(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, maps := context.Background(), kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().ConfigMaps("default")

	server.HandleWebhook("shop/webhooks", http.HandlerFunc(refuse))
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	fmt.Println(err)
	// Output:
	// admission webhook "maps.shop.example.com" denied the request: not today
}
