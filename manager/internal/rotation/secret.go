package rotation

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/certs"
)

// The keys of the Secret. The first three are those of cert-manager's Secrets.
const (
	certKey    = "tls.crt"
	keyKey     = "tls.key"
	bundleKey  = "ca.crt"
	signingKey = "ca.key"
	nextKey    = "next-ca.key"
)

var ownKeys = []string{certKey, keyKey, bundleKey, signingKey, nextKey}

// state is the content of the Secret. Each field may be missing.
type state struct {
	// signing is the authority that signs. next is its successor, which does not sign yet.
	signing, next *certs.Authority
	// trusted is the bundle: the certificates of present and former authorities, the newest first.
	trusted []*x509.Certificate
	// serving is the certificate with its key; its Leaf is set.
	serving *tls.Certificate
}

// lost reports whether there is no authority, so that no certificate can be signed.
func (s state) lost() bool { return s.signing == nil && s.next == nil }

// decode returns the state in the data of a Secret. If some of the data is invalid, it returns the rest and an error.
func decode(data map[string][]byte) (s state, err error) {
	var wrong []error
	if s.trusted, err = decodeBundle(data[bundleKey]); err != nil {
		wrong = append(wrong, fmt.Errorf("%s: %w", bundleKey, err))
	}
	if s.signing, err = load(data[signingKey], s.trusted); err != nil {
		wrong = append(wrong, fmt.Errorf("%s: %w", signingKey, err))
	}
	if s.next, err = load(data[nextKey], s.trusted); err != nil {
		wrong = append(wrong, fmt.Errorf("%s: %w", nextKey, err))
	}
	if len(data[certKey]) > 0 || len(data[keyKey]) > 0 {
		pair, err := tls.X509KeyPair(data[certKey], data[keyKey])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s and %s: %w", certKey, keyKey, err))
		} else {
			s.serving = &pair
		}
	}
	return s, errors.Join(wrong...)
}

// load returns nil without an error if there is no key.
func load(key []byte, trusted []*x509.Certificate) (*certs.Authority, error) {
	if len(key) == 0 {
		return nil, nil
	}
	return certs.Load(key, trusted)
}

// encode returns the data of the Secret.
func (s state) encode() (map[string][]byte, error) {
	data := map[string][]byte{bundleKey: encodeBundle(s.trusted)}
	var err1, err2, err3 error
	if s.signing != nil {
		data[signingKey], err1 = s.signing.Key()
	}
	if s.next != nil {
		data[nextKey], err2 = s.next.Key()
	}
	if s.serving != nil {
		data[certKey], data[keyKey], err3 = certs.PEM(*s.serving)
	}
	return data, errors.Join(err1, err2, err3)
}

// decodeBundle returns the certificates in a PEM text. Anything else in the text is an error.
func decodeBundle(text []byte) (all []*x509.Certificate, err error) {
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil {
			return all, errors.New("it is not in PEM")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return all, err
		}
		all, text = append(all, c), rest
	}
	return all, nil
}

func encodeBundle(all []*x509.Certificate) (text []byte) {
	for _, c := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(all, c.Equal)
}

// readSecret returns the Secret, or nil if it does not exist.
func readSecret(ctx context.Context, from client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(secretKind)
	err := from.Get(ctx, key, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return secret, nil
}

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")
