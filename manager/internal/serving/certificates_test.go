package serving_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/flyball-dev/flyball/manager/internal/serving"
)

// writePair writes a new certificate of that name.
func writePair(t *testing.T, certFile, keyFile, name string) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(certFile, certPEM, 0o600), os.WriteFile(keyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		if _, err := serving.FromFiles(certFile, keyFile); err == nil {
			t.Error("a certificate out of nothing")
		}
		writePair(t, certFile, keyFile, "one.example")
		config, err := serving.FromFiles(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		served := func() string {
			t.Helper()
			pair, err := config.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return pair.Leaf.DNSNames[0]
		}
		if got := served(); got != "one.example" {
			t.Errorf("serving %s", got)
		}
		if err := os.WriteFile(keyFile, []byte("half a key"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := served(); got != "one.example" {
			t.Errorf("serving %s while the files do not fit together", got)
		}
		writePair(t, certFile, keyFile, "two.example.org")
		time.Sleep(time.Second)
		if got := served(); got != "two.example.org" {
			t.Errorf("serving %s after the change", got)
		}
	})
}
