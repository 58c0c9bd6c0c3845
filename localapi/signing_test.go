package localapi_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// TestSigningRequest takes a request for a certificate through its life: somebody asks, another approves, a third
// signs. Each can write only their part.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/certificates/certificates/strategy.go.
func TestSigningRequest(t *testing.T) {
	server := localapi.NewTest(t)
	ann, err := kubernetes.NewForConfig(server.RESTConfigFor(auth.User{Name: "ann", Groups: []string{"dev"}}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, clients := t.Context(), kubernetes.NewForConfigOrDie(server.RESTConfig())
	requests := clients.CertificatesV1().CertificateSigningRequests()
	r, err := ann.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: requestPEM(t), SignerName: "example.com/signer",
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, Username: "root",
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Spec.Username != "ann" || len(r.Spec.Groups) != 2 {
		t.Errorf("who asks: %q in %q", r.Spec.Username, r.Spec.Groups)
	}
	approved := certificatesv1.CertificateSigningRequestCondition{
		Type:   certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue,
	}
	r.Status.Conditions = append(r.Status.Conditions, approved)
	if _, err := requests.UpdateStatus(ctx, r, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("approval by a write to the status: %v", err)
	}
	r.Status.Certificate = []byte("no certificate")
	r, err = requests.UpdateApproval(ctx, "mine", r, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Status.Conditions; len(c) != 1 || c[0].LastUpdateTime.IsZero() || len(r.Status.Certificate) > 0 {
		t.Errorf("after the approval: %+v", r.Status)
	}
	r.Status.Conditions = nil
	if _, err := requests.UpdateApproval(ctx, "mine", r, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an approval taken back: %v", err)
	}
	if r, err = requests.Get(ctx, "mine", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Status.Certificate = []byte("no certificate")
	if _, err := requests.UpdateStatus(ctx, r, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a certificate that is none: %v", err)
	}
	list, err := requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=example.com/signer"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("by signer: %v, %v", list, err)
	}
}

// requestPEM is a request for a certificate of a user in these groups.
func requestPEM(t *testing.T, groups ...string) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(nil,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann", Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
