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

// A Secret's volume replaces a symbolic link to a directory, so both files change at once.
func TestCertificatesOfASecretsVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		swap := func(version string) {
			t.Helper()
			at := filepath.Join(dir, version)
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if version != "empty" {
				writePair(t, filepath.Join(at, "tls.crt"), filepath.Join(at, "tls.key"), version+".example")
			}
			link := filepath.Join(dir, "..data")
			if err := errors.Join(os.Symlink(version, link+"_tmp"), os.Rename(link+"_tmp", link)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"tls.crt", "tls.key"} {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		files := serving.NewFiles(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if _, err := files.GetCertificate(nil); err == nil {
			t.Error("a certificate before there is one")
		}
		for _, c := range []struct {
			version, served string
			good            bool
		}{
			{"one", "one.example", true},
			{"two", "two.example", true},
			{"empty", "two.example", false},
			{"six", "six.example", true},
		} {
			swap(c.version)
			time.Sleep(time.Second)
			pair, err := files.GetCertificate(nil)
			if err != nil || pair.Leaf.DNSNames[0] != c.served {
				t.Errorf("%s: %v, %v", c.version, pair, err)
			}
			if err := files.Err(); (err == nil) != c.good {
				t.Errorf("%s: %v", c.version, err)
			}
		}
		if got, want := files.Loads(), (serving.Loads{Total: 5, Failed: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
