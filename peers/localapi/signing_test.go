package localapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compareSigning compares which users may approve and issue certificates, by user, signer and change.
func compareSigning(t *testing.T, real, ours *server) {
	signers := []string{"example.com/a", "example.com/b", "other.com/a"}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain, masters := requestFor(t, key), requestFor(t, key, "dev", "system:masters")
	ask := func(name, signer string, request []byte) map[string]any {
		return map[string]any{
			"apiVersion": certificatesGroup + "/v1", "kind": "CertificateSigningRequest",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"request": request, "signerName": signer, "usages": []string{"client auth"}},
		}
	}
	const root = "/apis/" + certificatesGroup + "/v1/certificatesigningrequests"
	var requests []request
	for _, signer := range append(signers, certificatesv1.KubeAPIServerClientSignerName,
		certificatesv1.KubeletServingSignerName) {
		requests = append(requests,
			request{"POST", root, encode(ask("new", signer, plain))},
			request{"POST", root, encode(ask("new", signer, masters))},
			request{"POST", root, encode(ask("new", signer, []byte("no request")))})
	}
	condition := func(kinds ...string) map[string]any {
		var all []any
		for _, kind := range kinds {
			all = append(all, map[string]any{"type": kind, "status": "True", "reason": "r"})
		}
		return map[string]any{"conditions": all}
	}
	changes := []map[string]any{
		condition("Approved"), condition("Denied"), condition("Failed"), condition("Other"),
		condition("Approved", "Denied"), condition(),
		{"certificate": certificateFor(t, key)},
		{"certificate": []byte("none")},
		{"certificate": ""},
		{},
	}
	for i, signer := range signers {
		name := "r" + string(rune('0'+i))
		for _, s := range []*server{real, ours} {
			csr := &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					Request: plain, SignerName: signer,
					Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
				},
			}
			if _, err := s.admin.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr,
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, status := range changes {
			whole := ask(name, signer, plain)
			whole["status"] = status
			for _, subresource := range []string{"", "/approval", "/status"} {
				path := root + "/" + name + subresource
				applied := map[string]any{
					"apiVersion": whole["apiVersion"], "kind": whole["kind"],
					"metadata": whole["metadata"], "status": status,
				}
				requests = append(requests, request{"PUT", path, encode(whole)},
					request{"PATCH", path, encode(map[string]any{"status": status})},
					request{"APPLY", path, encode(applied)},
					request{
						"PATCH", path,
						encode(map[string]any{"status": status, "metadata": map[string]any{"resourceVersion": "1"}}),
					},
					request{
						"PATCH", path,
						encode(
							map[string]any{"status": status, "spec": map[string]any{"signerName": "example.com/a"}},
						),
					})
			}
		}
	}
	compareWrites(t, real, ours, requests, "clerk-0", "approver-0", "domain-0", "signer-0", "notary-0", "nobody-0",
		"root")
}

// requestFor is a request for a certificate of a user in these groups.
func requestFor(t *testing.T, key *ecdsa.PrivateKey, groups ...string) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "joe", Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func certificateFor(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "joe"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
